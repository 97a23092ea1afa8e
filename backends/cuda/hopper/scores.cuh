#pragma once
// What a flavour does to scores, weights and sums: nothing but the mask, or everything.

#include "backends/cuda/common/fragment.cuh"
#include "backends/cuda/hopper/task.cuh"

namespace tessera::cuda::hopper {

template <class S>
__device__ __forceinline__ kernel::TileBand band_of(const Task<S>& task, int block) {
  return kernel::relative_to(task.band, task.row_first, block * S::kKeys);
}

// The same number, of which the compiler no longer knows that all threads have it: there are far
// too few uniform registers for what the general flavour computes of it, and they would be spilled.
__device__ __forceinline__ int in_register(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

// As cuda::modify, in core/kernel's order, but one modifier after another: each is a branch for all
// of the thread's scores, and what it needs lives in registers for its own loop alone.
template <int kCount>
__device__ __forceinline__ void scale_and_cap(float (&score)[kCount],
                                              const kernel::ScoreModifiers& m) {
  if (m.softcap == 0) {
    TESSERA_UNROLL
    for (int i = 0; i < kCount; ++i) score[i] *= m.scale;
  } else {
    TESSERA_UNROLL
    for (int i = 0; i < kCount; ++i) score[i] = kernel::scale_and_cap<FragmentLanes>(m, score[i]);
  }
}

template <int kCount>
__device__ __forceinline__ void add_alibi(float (&score)[kCount], float slope,
                                          const kernel::TileDistance& distance, int row) {
  const int own = own_column();
  TESSERA_UNROLL
  for (int i = 0; i < kCount; ++i)
    score[i] = kernel::add_alibi<FragmentLanes>(
        score[i], slope,
        kernel::distance<FragmentLanes>(distance, row + 8 * half_of(i), own + column_of(i)));
}

// The thread's two rows of a bias or mask, at its first column. `column` is 0 where one number
// stands for all.
template <class T>
struct Lines {
  const T* line[2];
  int column;
  bool exists[2];
  int keys;

  __device__ __forceinline__ Lines(const void* data, Index at, Index row_stride,
                                   Index column_stride, const ScoreData& d, int row)
      : column(static_cast<int>(column_stride)), keys(d.keys - own_column()) {
    TESSERA_UNROLL
    for (int r = 0; r < 2; ++r) {
      line[r] = static_cast<const T*>(data) + at + (row + 8 * r) * row_stride +
                own_column() * column_stride;
      exists[r] = row + 8 * r < d.rows;
    }
  }
  __device__ __forceinline__ T at(int i, T otherwise) const {
    const int c = column_of(i);
    return exists[half_of(i)] && c < keys ? line[half_of(i)][c * column] : otherwise;
  }
};

template <class Element, int kCount>
__device__ __forceinline__ void add_bias(float (&score)[kCount], const ScoreData& d, int row) {
  if (d.bias_fp32) {
    const Lines<float> bias(d.bias, d.bias_at, d.bias_row, d.bias_column, d, row);
    TESSERA_UNROLL
    for (int i = 0; i < kCount; ++i)
      score[i] = kernel::add_bias<FragmentLanes>(score[i], bias.at(i, 0.0f));
  } else {
    using Type = typename Element::Type;
    const Lines<Type> bias(d.bias, d.bias_at, d.bias_row, d.bias_column, d, row);
    TESSERA_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const Type number = bias.at(i, Type(0.0f));
      score[i] = kernel::add_bias<FragmentLanes>(score[i], Element::load(&number, 0));
    }
  }
}

template <int kCount>
__device__ __forceinline__ void hide_masked(float (&score)[kCount], const ScoreData& d, int row) {
  const Lines<std::uint8_t> mask(d.mask, d.mask_at, d.mask_row, d.mask_column, d, row);
  TESSERA_UNROLL
  for (int i = 0; i < kCount; ++i)
    score[i] = FragmentLanes::select(mask.at(i, 1) != 0, score[i], kernel::kMinusInfinity);
}

template <class Element, class S, bool kGeneral>
class ScoreState;

// Scores stay products: the softmax multiplies them by the scale, which is positive.
template <class Element, class S>
class ScoreState<Element, S, false> {
 public:
  __device__ __forceinline__ ScoreState(const Parameters& p, const Task<S>&) : p_(p) {}

  __device__ __forceinline__ float scale() const { return p_.scale; }

  template <bool kMasked, int kCount>
  __device__ __forceinline__ void prepare(float (&score)[kCount], const Task<S>& task, int block,
                                          int row) const {
    if constexpr (kMasked) hide(score, band_of(task, block), row);
  }
  template <int kCount>
  __device__ __forceinline__ void drop(float (&)[kCount], const Task<S>&, int, int) const {}

  __device__ __forceinline__ Finished finish(const Rows& rows, const Task<S>&,
                                             const bool (&live)[2]) const {
    return cuda::finish(rows, scale(), live, kernel::kMinusInfinity, kernel::Dropout{});
  }

 private:
  const Parameters& p_;
};

template <class Element, class S>
class ScoreState<Element, S, true> {
 public:
  __device__ __forceinline__ ScoreState(const Parameters& p, const Task<S>&)
      : p_(p), a_(p.arguments) {}

  __device__ __forceinline__ static constexpr float scale() { return 1.0f; }

  template <bool kMasked, int kCount>
  __device__ __forceinline__ void prepare(float (&score)[kCount], const Task<S>& task, int block,
                                          int row) const {
    block = in_register(block);
    const Index key_first = static_cast<Index>(block) * S::kKeys;
    const kernel::ScoreModifiers& m = p_.modifiers;
    scale_and_cap(score, m);
    if (m.alibi) {
      const float slope =
          a_.alibi_slopes[task.segment * a_.alibi_batch + task.head * a_.alibi_head];
      add_alibi(score, kernel::to_base2<FragmentLanes>(slope),
                kernel::distance_to(task.diagonal, task.row_first, key_first), row);
    }
    if (m.bias || m.mask) {
      const ScoreData data = score_data(a_, task.segment, task.head, task.row_first, key_first,
                                        task.live, task.band.end - key_first);
      if (m.bias) add_bias<Element>(score, data, row);
      if (m.mask) hide_masked(score, data, row);
    }
    if constexpr (kMasked) hide(score, band_of(task, block), row);
  }
  template <int kCount>
  __device__ __forceinline__ void drop(float (&weight)[kCount], const Task<S>& task, int block,
                                       int row) const {
    if (a_.dropout.threshold == 0) return;
    block = in_register(block);
    const kernel::DropoutStream stream = kernel::dropout_stream(
        a_.dropout, a_.head_q, in_register(task.segment), in_register(task.head));
    cuda::drop(weight, stream, task.row_first, row, static_cast<Index>(block) * S::kKeys);
  }

  __device__ __forceinline__ Finished finish(const Rows& rows, const Task<S>& task,
                                             const bool (&live)[2]) const {
    const float sink = a_.sinks ? a_.sinks[task.head * a_.sinks_head] : kernel::kMinusInfinity;
    // (A quotient more here, where all of O is in registers, would cost some of them.)
    Finished f = cuda::finish(rows, scale(), live, sink, kernel::Dropout{});
    TESSERA_UNROLL
    for (int r = 0; r < 2; ++r) {
      f.factor[r] *= p_.keep_scale;
      f.seen[r] = f.seen[r] && p_.keep_scale != 0;
    }
    return f;
  }

 private:
  const Parameters& p_;
  const kernel::ForwardArguments& a_;
};

}  // namespace tessera::cuda::hopper
