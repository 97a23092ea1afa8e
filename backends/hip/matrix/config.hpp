#pragma once
// Which forward kernels there are for matrix instructions, and what a work-group of each takes on.

namespace tessera::hip::matrix {

// Head dimensions that a kernel holds.
template <int kDim_, int kDimV_>
struct Shape {
  static constexpr int kDim = kDim_;
  static constexpr int kDimV = kDimV_;
};

using Shape64 = Shape<64, 64>;
using Shape128 = Shape<128, 128>;
using Shape192x128 = Shape<192, 128>;
using Shape192 = Shape<192, 192>;
using Shape256 = Shape<256, 256>;

// A work-group holds `rows` query rows and walks over keys, `keys` at a time.
struct Blocking {
  int threads = 256;
  int rows = 128;
  int keys = 32;
};

// On CDNA a wave holds 32 rows. Eight waves, two on each SIMD unit, take turns at its matrix unit
// where 256 registers suffice for each; else four have 512. 64 keys halve what a step costs besides
// its products; two blocks of so many fill gfx942's 64 KB of LDS at head dimension 128.
constexpr Blocking blocking(bool cdna, int dim, int dim_v, bool general) {
  if (!cdna) return {};
  const bool eight = !general && dim + dim_v <= 256;
  return {eight ? 512 : 256, eight ? 256 : 128, !general && dim <= 128 ? 64 : 32};
}

}  // namespace tessera::hip::matrix
