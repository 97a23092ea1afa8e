#pragma once
// Which forward kernels there are for mma.sync, and what each keeps where.

#include <cstddef>
#include <cstdint>

namespace tessera::cuda::mma {

// A block of kWarps warps holds 16·kGroups query rows a warp and walks over keys, kKeys at a time.
// Values' columns beyond kDimV are another block's (the third axis of the grid).
template <int kDim_, int kDimV_, int kWarps_, int kGroups_, int kKeys_>
struct Shape {
  static constexpr int kDim = kDim_;
  static constexpr int kDimV = kDimV_;
  static constexpr int kWarps = kWarps_;
  static constexpr int kGroups = kGroups_;
  static constexpr int kKeys = kKeys_;
  static constexpr int kRows = 16 * kWarps * kGroups;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr std::size_t kSharedBytes =
      std::size_t{2} * (kRows * kDim + kKeys * kDim + kKeys * kDimV);
};

// Everything fits the 99 KB that a block of compute capability 8.6 and 8.9 may have.
using Shape64 = Shape<64, 64, 4, 2, 96>;
using Shape128 = Shape<128, 128, 4, 2, 64>;
using Shape192x128 = Shape<192, 128, 4, 1, 64>;
using Shape192 = Shape<192, 192, 4, 1, 64>;
using Shape256 = Shape<256, 256, 4, 1, 64>;
using Shape512 = Shape<512, 256, 2, 1, 32>;
// For the general flavour, which needs registers for what it does to scores.
using General64 = Shape<64, 64, 4, 1, 64>;
using General128 = Shape<128, 128, 4, 1, 64>;

template <class S>
inline constexpr bool kFits = S::kSharedBytes <= 99 * 1024;
static_assert(kFits<Shape64> && kFits<Shape128> && kFits<Shape192x128> && kFits<Shape192> &&
              kFits<Shape256> && kFits<Shape512>);

}  // namespace tessera::cuda::mma
