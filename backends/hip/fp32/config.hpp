#pragma once
// Which fp32 forward kernels there are, and what each keeps where.

#include "core/kernel/arguments.hpp"

namespace tessera::hip::fp32 {

inline constexpr int kThreads = 256;

// Of the output, that a lane writes at once where rows are aligned to it.
inline constexpr int kBytesAtOnce = 8;

// Columns of the output that a work-group computes. RDNA's 256 registers hold queries of 256
// dimensions and half of their output, or a quarter beside what touches scores: work-groups share
// the rows there, and each computes their scores.
constexpr int columns_of(int dim_v, int wave, bool general) {
  if (wave != 32 || dim_v <= 128) return dim_v;
  return general && dim_v > 192 ? dim_v / 4 : dim_v / 2;
}

// A work-group has kRows query rows, and walks over keys, kKeys at a time, whose keys and then
// whose values have the same place in LDS.
//
//     registers  queries [kRows, kDim]   output [kRows, columns_of(kDimV)]
//     LDS        keys [kKeys, kDim]      rows padded by 4: those of 8 lanes meet no bank twice
//                values [kKeys, columns]
template <int kDim_, int kDimV_>
struct Shape {
  static constexpr int kDim = kDim_;
  static constexpr int kDimV = kDimV_;
  static constexpr int kRows = 128;
  static constexpr int kKeys = 32;
  static constexpr int kKeyPitch = kDim + 4;
  static constexpr int kNumbers = kKeys * (kKeyPitch > kDimV ? kKeyPitch : kDimV);
};

using Shape64 = Shape<64, 64>;
using Shape128 = Shape<128, 128>;
using Shape192x128 = Shape<192, 128>;
using Shape192 = Shape<192, 192>;
using Shape256 = Shape<256, 256>;

static_assert(4 * Shape256::kNumbers <= 64 * 1024, "LDS of a work-group");

}  // namespace tessera::hip::fp32
