#pragma once
// Which forward kernels there are for sm_90a, and what each keeps where.

#include <cstddef>
#include <cstdint>

namespace tessera::cuda::hopper {

// Between the warpgroups of a block: each runs when it can, or they take turns at the tensor cores,
// so that one's softmax stands beside the others' products.
enum class Turns { Free, RoundRobin };

// A block holds 64 query rows a consumer warpgroup and walks over keys, kKeys at a time; one more
// warpgroup loads.
template <int kDim_, int kDimV_, int kWarpgroups_, int kKeys_, int kQueryStages_, Turns kTurns_>
struct Shape {
  static constexpr int kDim = kDim_;
  static constexpr int kDimV = kDimV_;
  static constexpr int kWarpgroups = kWarpgroups_;
  static constexpr int kKeys = kKeys_;
  static constexpr int kQueryStages = kQueryStages_;  // 2: the next task's queries arrive meanwhile
  static constexpr int kStages = 2;                   // of keys, and of values
  static constexpr Turns kTurns = kTurns_;

  static constexpr int kRows = 64 * kWarpgroups;
  static constexpr int kThreads = 128 * (kWarpgroups + 1);
  // A thread's, of the 64 K that a block is launched with; 160 hold about 128 of accumulators and
  // weights.
  static constexpr int kLoaderRegisters = kWarpgroups == 3 ? 32 : 24;
  static constexpr int kConsumerRegisters = kWarpgroups == 3 ? 160 : 240;

  // Panels of 64 columns.
  static constexpr int kPanels = (kDim + 63) / 64;
  static constexpr int kPanelsV = (kDimV + 63) / 64;
  static constexpr int kPanelBytes = kKeys * 128;
  static constexpr int kQueryBytes = kRows * 128 * kPanels;
  static constexpr int kKeyBytes = kPanelBytes * kPanels;
  static constexpr int kValueBytes = kPanelBytes * kPanelsV;
  static_assert(kWarpgroups == 2 || kWarpgroups == 3);
  static_assert(kDim % 16 == 0 && kDimV % 32 == 0 && kKeys % 16 == 0);
};

// Measured on an H200 as a prototype, full and causal from 512 to 16384 keys: the fastest of some
// sixty variants; whether they take turns was measured again here. The general flavour has a shape
// of its own where it needs more registers.
using Shape64 = Shape<64, 64, 3, 128, 2, Turns::RoundRobin>;
using Shape128 = Shape<128, 128, 3, 80, 2, Turns::RoundRobin>;
using Shape256 = Shape<256, 256, 2, 80, 1, Turns::RoundRobin>;
// Likewise the fastest up to 1024 keys: fewer rows are lost where a sequence ends.
using Short128 = Shape<128, 128, 2, 128, 2, Turns::Free>;
// Nobody measured these yet.
using Shape96 = Shape<96, 96, 3, 96, 2, Turns::RoundRobin>;
using Shape192x128 = Shape<192, 128, 3, 80, 1, Turns::RoundRobin>;
using Shape192 = Shape<192, 192, 2, 112, 1, Turns::Free>;
using General64 = Shape<64, 64, 2, 128, 2, Turns::Free>;
using General96 = Shape<96, 96, 2, 96, 2, Turns::Free>;
using General128 = Shape<128, 128, 2, 80, 2, Turns::Free>;
using General192x128 = Shape<192, 128, 2, 80, 1, Turns::Free>;
using General192 = Shape<192, 192, 2, 80, 1, Turns::Free>;
using General256 = Shape<256, 256, 2, 64, 1, Turns::Free>;

}  // namespace tessera::cuda::hopper
