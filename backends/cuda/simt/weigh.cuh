#pragma once
// Scores to weights: modifiers, mask, online softmax, dropout, all of it core/kernel's.

#include "backends/cuda/simt/block.cuh"
#include "core/kernel/modifiers.hpp"
#include "core/kernel/philox.hpp"

namespace tessera::cuda::simt {

// The step's keys [from, to) are those that some line sees, relative to key_first.
struct Step {
  Index key_first = 0;
  int from = 0;
  int to = 0;
};

__device__ __forceinline__ Step step_of(const Block& b, Index key_first) {
  const kernel::Interval<Index> keys = kernel::within(b.any, key_first, kKeys);
  return {key_first, static_cast<int>(keys.begin), static_cast<int>(keys.end)};
}

// The score that the softmax sees of one product. Nothing is read for a key that the row does not
// see.
template <class T>
__device__ __forceinline__ float score_of(const kernel::ForwardArguments& a, const Block& b,
                                          const Line& line, const kernel::ScoreModifiers& m,
                                          const kernel::Interval<int>& see, Index key_first, int j,
                                          float product) {
  using L = typename T::Lanes;
  if (!kernel::holds<L>(see, j)) return kernel::kMinusInfinity;
  if (a.accumulate_fp16) product = round_to_fp16(product);
  const auto offset = [&](const kernel::ScoreOperand& operand) {
    return b.batch * operand.batch + line.head * operand.head +
           (b.row_first + line.row) * operand.row + (key_first + j) * operand.column;
  };
  float bias = 0;
  if (m.bias)
    bias = a.bias_fp32 ? Fp32::load(a.bias.data, offset(a.bias))
                       : T::Element::load(a.bias.data, offset(a.bias));
  bool visible = true;
  if (m.mask)
    visible = static_cast<const std::uint8_t*>(a.boolean_mask.data)[offset(a.boolean_mask)] != 0;
  const auto distance = kernel::distance_to(b.sequence.diagonal, b.row_first, key_first);
  return kernel::modify<L>(m, product, distance, line.row, j, bias, visible);
}

// A line's keys of the step; none if it is not live.
template <class L>
__device__ __forceinline__ kernel::Interval<int> seen_by(const kernel::TileBand& band,
                                                         const Line& line) {
  return line.live ? band.row<L>(line.row) : kernel::Interval<int>{0, 0};
}

// Products to scores in base 2 where more than the mask's geometry touches them: rare and long, so
// a loop over shared memory, where each thread has the weights that it will write.
template <class T>
__device__ __noinline__ void modify(const kernel::ForwardArguments& a, typename T::Shared& shared,
                                    Index key_first) {
  const Block& b = shared.block;
  const auto band = kernel::relative_to(b.sequence.band, b.row_first, key_first);
#pragma unroll 1
  for (int i = down(); i < T::kRows; i += kDown) {
    const Line line = line_of<T>(b, i);
    const auto see = seen_by<typename T::Lanes>(band, line);
    const auto modifiers = kernel::score_modifiers(a, b.batch, line.live ? line.head : b.head);
#pragma unroll 1
    for (int j = across(); j < kKeys; j += kAcross) {
      float& score = shared.weight[i][j];
      score = score_of<T>(a, b, line, modifiers, see, key_first, j, score);
    }
  }
}

// Weights that are dropped become 0, after the sums have counted them: the warp's lines, eight
// neighbouring keys a thread.
template <class T>
__device__ __noinline__ void drop(const kernel::ForwardArguments& a, typename T::Shared& shared,
                                  Index key_first) {
  using L = typename T::Lanes;
  constexpr int kGroups = kKeys / 8, kWarpLines = 32 / kAcross;
  const Block& b = shared.block;
  const int warp_line = static_cast<int>(threadIdx.x) / 32 * kWarpLines;
#pragma unroll 1
  for (int x = lane(); x < T::kOwn * kWarpLines * kGroups; x += 32) {
    const int group = x % kGroups, own = x / kGroups;
    const int i = warp_line + own % kWarpLines + own / kWarpLines * kDown;
    const Line line = line_of<T>(b, i);
    if (!line.live) continue;
    const auto stream = kernel::dropout_stream(a.dropout, a.head_q, b.batch, line.head);
    std::uint32_t words[4];
    kernel::draw<L>(stream, kernel::dropout_rows<L>(b.row_first, line.row),
                    static_cast<std::uint32_t>(key_first / 8 + group), words);
    float* const weight = &shared.weight[i][8 * group];
    TESSERA_UNROLL
    for (std::uint32_t c = 0; c < 8; ++c)
      if (!kernel::kept<L>(stream, words, c)) weight[c] = 0;
  }
}

// Over the 16 threads of a line. NaN is ignored: it shows in the sum.
__device__ __forceinline__ float line_max(float x) {
  TESSERA_UNROLL
  for (int m = kAcross / 2; m > 0; m /= 2) x = fmaxf(x, __shfl_xor_sync(kWarp, x, m));
  return x;
}
__device__ __forceinline__ float line_sum(float x) {
  TESSERA_UNROLL
  for (int m = kAcross / 2; m > 0; m /= 2) x += __shfl_xor_sync(kWarp, x, m);
  return x;
}

template <class T>
__device__ __forceinline__ void score_plainly(const kernel::ForwardArguments& a, const Block& b,
                                              Index key_first, float (&score)[T::kOwn][kOwnKeys]) {
  using L = typename T::Lanes;
  const float scale = kernel::score_modifiers(a, b.batch, b.head).scale;
  TESSERA_UNROLL
  for (int i = 0; i < T::kOwn; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < kOwnKeys; ++j)
      score[i][j] = __fmul_rn(score[i][j], scale);  // not fused: inf − inf must stay NaN
  }
  if (b.all.begin <= key_first && key_first + kKeys <= b.all.end) return;
  const auto band = kernel::relative_to(b.sequence.band, b.row_first, key_first);
  TESSERA_UNROLL
  for (int i = 0; i < T::kOwn; ++i) {
    const auto see = seen_by<L>(band, line_of<T>(b, down() + kDown * i));
    TESSERA_UNROLL
    for (int j = 0; j < kOwnKeys; ++j)
      score[i][j] = kernel::hide<L>(score[i][j], see, across() + kAcross * j);
  }
}

template <class T>
__device__ __forceinline__ void score_generally(const kernel::ForwardArguments& a,
                                                typename T::Shared& shared, Index key_first,
                                                float (&score)[T::kOwn][kOwnKeys]) {
  const auto own = [&](int i, int j) -> float& {
    return shared.weight[down() + kDown * i][across() + kAcross * j];
  };
  TESSERA_UNROLL
  for (int i = 0; i < T::kOwn; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < kOwnKeys; ++j) own(i, j) = score[i][j];
  }
  modify<T>(a, shared, key_first);
  TESSERA_UNROLL
  for (int i = 0; i < T::kOwn; ++i) {
    TESSERA_UNROLL
    for (int j = 0; j < kOwnKeys; ++j) score[i][j] = own(i, j);
  }
}

// Products to weights, in shared memory, as is what O must be scaled by; the states move on, their
// sums of the thread's own keys. Lines are a warp's own: no other waits for them.
template <class T>
__device__ __forceinline__ void weigh(const kernel::ForwardArguments& a, typename T::Shared& shared,
                                      Index key_first, float (&score)[T::kOwn][kOwnKeys],
                                      kernel::SoftmaxState<float> (&state)[T::kOwn]) {
  using L = typename T::Lanes;
  if (a.general()) {
    score_generally<T>(a, shared, key_first, score);
  } else {
    score_plainly<T>(a, shared.block, key_first, score);
  }
  TESSERA_UNROLL
  for (int i = 0; i < T::kOwn; ++i) {
    float tile_max = kernel::kMinusInfinity;
    TESSERA_UNROLL
    for (int j = 0; j < kOwnKeys; ++j) tile_max = fmaxf(tile_max, score[i][j]);
    const int line = down() + kDown * i;
    const float factor = kernel::advance_lazily<L>(state[i], line_max(tile_max), a.accumulate_fp16);
    const float origin = kernel::origin<L>(state[i].max);
    if (across() == 0) shared.factor[line] = factor;
    float sum = 0;
    TESSERA_UNROLL
    for (int j = 0; j < kOwnKeys; ++j) {
      const float weight = kernel::weight<L>(score[i][j], origin);
      shared.weight[line][across() + kAcross * j] = weight;
      sum += weight;
    }
    state[i].sum += sum;
  }
  __syncwarp();
  if (a.dropout.threshold != 0) {
    drop<T>(a, shared, key_first);
    __syncwarp();
  }
}

}  // namespace tessera::cuda::simt
