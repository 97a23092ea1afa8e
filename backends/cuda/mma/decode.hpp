#pragma once
// Decode: a few query rows against many keys. All query heads of a key head are rows of one tile of
// 16, so that keys and values are read once; the keys of a row are cut into parts, one a block, and
// each warp of a block has every kWarps-th tile of its part. What limits it is memory.

#include "backends/cuda/mma/config.hpp"
#include "core/kernel/arguments.hpp"
#include "core/kernel/split.hpp"

namespace tessera::cuda::mma {

using kernel::Index;

inline constexpr int kDecodeRows = 16;  // (position, query head of the group), of a block

template <int kDim_, int kWarps_ = kDim_ <= 128 ? 4 : 2, int kKeys_ = 16,
          int kStages_ = kDim_ == 64 ? 4 : 3>
struct DecodeShape {
  static constexpr int kDim = kDim_;  // of queries and of values
  static constexpr int kWarps = kWarps_;
  static constexpr int kRows = kDecodeRows;
  static constexpr int kKeys = kKeys_;      // a warp's tile
  static constexpr int kStages = kStages_;  // fewer would leave memory idle
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kStageBytes = 2 * kKeys * 2 * kDim;  // keys, then values
  static constexpr std::size_t kSharedBytes = std::size_t{kStageBytes} * kStages * kWarps;
  static_assert(kSharedBytes >= 4 * kRows * kDim, "where warps add up their outputs");
};

// The keys of a part are a multiple of this, but the last's.
inline constexpr Index kDecodeTile = 64;

// Numbers of tasks, blocks and rows of a sequence fit 31 bits. Rows in memory: index (batch ·
// head_q + head) · total_q + row; each has `parts` states and O.
struct DecodeParameters {
  kernel::ForwardArguments arguments;
  int group;       // query heads of a key head
  int row_blocks;  // of 16 (position, query head of the group)
  int parts;
  float* out;                          // [rows][parts][dim_v]; null: one part
  kernel::SoftmaxState<float>* state;  // [rows][parts]
};

template <class Element, class S>
const void* decode_kernel();
template <class Element>
const void* combine_kernel();

inline constexpr unsigned kCombineThreads = 128;
static_assert(kCombineThreads >= kernel::kMaxParts, "a thread a part");

}  // namespace tessera::cuda::mma
