#pragma once
// Which forward kernels there are for matrix instructions, and what each keeps where.

#include <cstddef>
#include <cstdint>

namespace tessera::hip::matrix {

inline constexpr int kThreads = 256;

// A work-group of kThreads holds 128 query rows, one a lane of a half wave, and walks over keys,
// kKeys at a time.
//
//     LDS   keys      [kKeys, kDim]      rows padded by 8 numbers
//           values    [kDimV, kKeys]     transposed, padded by 4
//
// Padded so, lanes that read one column of neighbouring rows meet no bank twice, and every place is
// a constant away from one address a lane.
template <int kDim_, int kDimV_, int kKeys_>
struct Shape {
  static constexpr int kDim = kDim_;
  static constexpr int kDimV = kDimV_;
  static constexpr int kKeys = kKeys_;
  static constexpr int kRows = 128;
  static constexpr int kKeyPitch = kDim + 8;  // numbers
  static constexpr int kValuePitch = kKeys + 4;
  static constexpr int kKeyNumbers = kKeys * kKeyPitch;
  static constexpr int kNumbers = kKeyNumbers + kDimV * kValuePitch;
};

using Shape64 = Shape<64, 64, 32>;
using Shape128 = Shape<128, 128, 32>;
using Shape192x128 = Shape<192, 128, 32>;
using Shape192 = Shape<192, 192, 32>;
using Shape256 = Shape<256, 256, 32>;

// Two work-groups share a compute unit's 64 KB, where registers allow it.
static_assert(2 * 2 * Shape128::kNumbers <= 64 * 1024 && 2 * Shape256::kNumbers <= 64 * 1024);

}  // namespace tessera::hip::matrix
