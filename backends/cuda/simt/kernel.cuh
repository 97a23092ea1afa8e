#pragma once
// O = softmax(scale · Q Kᵀ + …) V with fp32 multiply-adds: one thread block a block of query rows.
//
//     Q [rows, dim]   K [keys, dim]   V [keys, dim_v]      keys in steps of kKeys
//
// Keys and values come through shared memory in panels of kPanel dims, in the order K₀ K₁ … V₀ V₁ …
// of a step, then the next step's. Each is fetched while the one before it is multiplied, if there
// is memory for two (kStages):
//
//     next       waits for the panel; a barrier, after which everybody sees it and has done with
//                the one before, whose place the fetch of the next one takes
//     multiply   score += Q · panelᵀ                      registers
//     weigh      score → P, softmax states                shared memory, each warp its lines
//     accumulate O = factor · O + P · panel               registers
//
// Every number is computed by one thread in a fixed order, or by a fixed exchange of 16: results
// are reproducible.

#include "backends/cuda/simt/block.cuh"
#include "backends/cuda/simt/weigh.cuh"
#include "core/kernel/kahan.hpp"

namespace tessera::cuda::simt {

__device__ __forceinline__ int panels_of(Index dim) {
  return static_cast<int>((dim + kPanel - 1) / kPanel);
}
// Dims of panel p that exist.
__device__ __forceinline__ int width_of(Index dim, int p) {
  return static_cast<int>(kernel::smaller(kPanel, dim - Index{p} * kPanel));
}

// The panels of keys and values, one after another.
template <class T>
class Panels {
 public:
  __device__ __forceinline__ Panels(const Work& work, typename T::Shared& shared, Index first,
                                    Index last)
      : work_(work), shared_(shared), key_first_(first), last_(last) {
    if (T::kStages > 1 && first < last) fetch();
  }

  // Valid until the next call.
  __device__ __forceinline__ const typename T::Panel& next() {
    if constexpr (T::kStages == 1) {
      __syncthreads();
      fetch();
    }
    ptx::cp_async_wait_all();
    __syncthreads();
    const typename T::Panel& panel = shared_.panel[T::kStages == 1 ? 0 : stage_ ^ 1];
    if (T::kStages > 1 && key_first_ < last_) fetch();
    return panel;
  }

 private:
  __device__ __forceinline__ void fetch() {
    const kernel::ForwardArguments& a = work_.arguments;
    const int key_panels = panels_of(a.dim);
    const bool key = panel_ < key_panels;
    fetch(key ? a.key : a.value, key ? panel_ : panel_ - key_panels, key ? a.dim : a.dim_v,
          key ? work_.aligned.key : work_.aligned.value);
    stage_ ^= T::kStages - 1;
    if (++panel_ == key_panels + panels_of(a.dim_v)) {
      panel_ = 0;
      key_first_ += kKeys;
    }
  }

  // Keys that nobody sees are 0 and not read.
  __device__ __forceinline__ void fetch(const kernel::Operand<const void>& from, int p, Index dim,
                                        bool aligned) {
    if (kVector * across() >= width_of(dim, p)) return;
    const Block& b = shared_.block;
    const Step step = step_of(b, key_first_);
    const auto* const first = static_cast<const typename T::Type*>(from.data) +
                              b.sequence.batch * from.batch + b.key_head * from.head +
                              (b.sequence.key + key_first_) * from.seq + p * kPanel +
                              kVector * across();
    typename T::Panel& to = shared_.panel[stage_];
#pragma unroll 4
    for (int n = 0; n < kKeys / kDown; ++n) {
      const int j = down() + kDown * n;
      const bool there = step.from <= j && j < step.to;
      copy4<typename T::Element>(&to[j][kVector * across()], there ? first + j * from.seq : first,
                                 there, aligned);
    }
  }

  const Work& work_;
  typename T::Shared& shared_;
  Index key_first_;
  Index last_;
  int panel_ = 0;
  int stage_ = 0;  // where the next fetch goes
};

// The block's rows of Q; 0 from query_end on.
template <class T>
__device__ __forceinline__ void load_query(const Work& work, typename T::Shared& shared) {
  const kernel::Operand<const void>& query = work.arguments.query;
  const Block& b = shared.block;
  for (int i = down(); i < T::kRows; i += kDown) {
    const Line line = line_of<T>(b, i);
    const auto* row = static_cast<const typename T::Type*>(query.data);
    if (line.live)
      row += b.sequence.batch * query.batch + line.head * query.head + seq_of(b, line) * query.seq;
    for (int d = kVector * across(); d < work.arguments.dim; d += kPanel)
      copy4<typename T::Element>(&shared.query[i][d], row + d, line.live, work.aligned.query);
  }
}

// Softmax states and O of a thread's lines. Of a state's sum a thread has its own keys' part.
template <class T>
struct Result {
  kernel::SoftmaxState<float> state[T::kOwn];
  float out[T::kPanels][T::kOwn][kVector];
};

// Sum of the stretches that a thread has done with. In local memory, touched once a stretch.
template <class T>
struct Stretches {
  Result<T> sum;
  Result<T> rest;  // what rounding took, max unused

  __device__ __forceinline__ void clear() {
    *this = {};
    TESSERA_UNROLL
    for (int i = 0; i < T::kOwn; ++i) sum.state[i] = kernel::empty_state<typename T::Lanes>();
  }
};

__device__ __forceinline__ void add_scaled(float& sum, float& rest, float factor, float term) {
  sum = __fmul_rn(sum, factor);
  rest = __fmul_rn(rest, factor);
  kernel::add_keeping_finite_rest(sum, rest, term);
}

// Adds a stretch. A function of its own and by value, so that the registers of the loop over keys
// stay registers.
template <class T>
__device__ __noinline__ void add_stretch(Stretches<T>& all, const Result<T> stretch) {
  using L = typename T::Lanes;
#pragma unroll 1
  for (int i = 0; i < T::kOwn; ++i) {
    kernel::SoftmaxState<float>& state = all.sum.state[i];
    const float factor = kernel::part_factor<L>(stretch.state[i], state);
    state.max = stretch.state[i].max;
    add_scaled(state.sum, all.rest.state[i].sum, factor, stretch.state[i].sum);
#pragma unroll 1
    for (int p = 0; p < T::kPanels; ++p) {
      TESSERA_UNROLL
      for (int c = 0; c < kVector; ++c)
        add_scaled(all.sum.out[p][i][c], all.rest.out[p][i][c], factor, stretch.out[p][i][c]);
    }
  }
}

// Their sum, rounded.
template <class T>
__device__ __noinline__ Result<T> rounded(const Stretches<T>& all) {
  Result<T> result = all.sum;
#pragma unroll 1
  for (int i = 0; i < T::kOwn; ++i) {
    result.state[i].sum += all.rest.state[i].sum;
#pragma unroll 1
    for (int p = 0; p < T::kPanels; ++p) {
      TESSERA_UNROLL
      for (int c = 0; c < kVector; ++c) result.out[p][i][c] += all.rest.out[p][i][c];
    }
  }
  return result;
}

// Begins the next stretch: maxima stay.
template <class T>
__device__ __forceinline__ void clear_sums(Result<T>& now) {
  TESSERA_UNROLL
  for (int i = 0; i < T::kOwn; ++i) {
    now.state[i].sum = 0;
    TESSERA_UNROLL
    for (int p = 0; p < T::kPanels; ++p) {
      TESSERA_UNROLL
      for (int c = 0; c < kVector; ++c) now.out[p][i][c] = 0;
    }
  }
}

// Divides by the sums and writes, or leaves it to merge.
template <class T>
__device__ __forceinline__ void finish(const Work& work, const typename T::Shared& shared,
                                       const Result<T>& result) {
  const kernel::ForwardArguments& a = work.arguments;
  const Block& b = shared.block;
  const bool whole = work.partials.parts == 1;
  TESSERA_UNROLL
  for (int i = 0; i < T::kOwn; ++i) {
    const kernel::SoftmaxState<float> all{result.state[i].max, line_sum(result.state[i].sum)};
    const Line line = line_of<T>(b, down() + kDown * i);
    if (whole ? !line.exists : !line.live) continue;
    const Index slot = whole ? 0 : slot_of(work, b, line) + b.part;
    const Ending end = whole ? end_of<typename T::Lanes>(a, line, all) : Ending{1.0f, true, 0};
    TESSERA_UNROLL
    for (int p = 0; p < T::kPanels; ++p) {
      const int column = kPanel * p + kVector * across();
      if (column >= a.dim_v) continue;
      const float(&out)[kVector] = result.out[p][i];
      float4 x{0, 0, 0, 0};
      if (end.seen)
        x = {out[0] * end.factor, out[1] * end.factor, out[2] * end.factor, out[3] * end.factor};
      if (whole) {
        store4<typename T::Element>(out_row<T>(a, b, line) + column, x, work.aligned.out);
      } else {
        *reinterpret_cast<float4*>(work.partials.out + slot * a.dim_v + column) = x;
      }
    }
    if (across() != 0) continue;
    if (whole) {
      store_lse(a, b, line, end.lse);
    } else {
      work.partials.states[slot] = all;
    }
  }
}

template <class T>
__device__ __forceinline__ void attend(const Work& work, typename T::Shared& shared) {
  const kernel::ForwardArguments& a = work.arguments;
  const Block& b = shared.block;
  Result<T> now{};
  TESSERA_UNROLL
  for (int i = 0; i < T::kOwn; ++i) now.state[i] = kernel::empty_state<typename T::Lanes>();
  load_query<T>(work, shared);
  const kernel::LoopSplit loop =
      kernel::split_loop(b.sequence.band, b.rows.begin, b.rows.end, kKeys);
  Panels<T> panels(work, shared, loop.first * kKeys, loop.last * kKeys);
  [[maybe_unused]] Stretches<T> stretches;
  const bool by_stretches = T::kByStretches && loop.last - loop.first > kStretch;
  if (by_stretches) stretches.clear();
#pragma unroll 1
  for (Index step = loop.first; step < loop.last; ++step) {
    float score[T::kOwn][kOwnKeys] = {};
#pragma unroll 1
    for (int p = 0; p < panels_of(a.dim); ++p)
      multiply<T>(shared, panels.next(), p * kPanel, width_of(a.dim, p), score);
    weigh<T>(a, shared, step * kKeys, score, now.state);
    const Step keys = step_of(b, step * kKeys);
    TESSERA_UNROLL
    for (int p = 0; p < T::kPanels; ++p) {
      if (p * kPanel < a.dim_v)
        accumulate<T>(shared, panels.next(), keys.from, keys.to, a.accumulate_fp16, now.out[p]);
    }
    if constexpr (T::kByStretches) {
      if (by_stretches && ((step + 1) % kStretch == 0 || step + 1 == loop.last)) {
        add_stretch<T>(stretches, now);
        clear_sums(now);
      }
    }
  }
  ptx::cp_async_wait_all();
  if constexpr (T::kByStretches) {
    if (by_stretches) now = rounded<T>(stretches);
  }
  finish<T>(work, shared, now);
}

template <class T>
__global__ void __launch_bounds__(kThreads, T::kBlocks)
    attend_kernel(const __grid_constant__ Work work) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<typename T::Shared*>(memory);
  const Index tasks = work.order.size() * work.partials.parts;
  for (Index task = blockIdx.x; task < tasks; task += gridDim.x) {
    if (threadIdx.x == 0) open<T>(work, task, shared.block);
    __syncthreads();
    if (shared.block.lines > 0) attend<T>(work, shared);
    __syncthreads();
  }
}

// The parts of a line's keys, part 0 first: one thread block a line.
template <class T>
__global__ void __launch_bounds__(kThreads) merge_kernel(const __grid_constant__ Work work) {
  using L = typename T::Lanes;
  const kernel::ForwardArguments& a = work.arguments;
  const Partials& partials = work.partials;
  __shared__ Block b;
  const Index tasks = work.order.size() * T::kRows;
  for (Index task = blockIdx.x; task < tasks; task += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) open<T>(work, task / T::kRows * partials.parts, b);
    __syncthreads();
    const Line line = line_of<T>(b, static_cast<int>(task % T::kRows));
    if (!line.exists) continue;
    const Index slot = slot_of(work, b, line);
    const kernel::SoftmaxState<float>* const states = partials.states + slot;
    const auto all =
        line.live ? kernel::merge_parts<L>(states, partials.parts) : kernel::empty_state<L>();
    const Ending end = end_of<L>(a, line, all);
    typename T::Type* const row = out_row<T>(a, b, line);
    for (Index d = kVector * threadIdx.x; d < a.dim_v; d += kVector * kThreads) {
      float4 sum{0, 0, 0, 0};
      for (Index part = 0; end.seen && part < partials.parts; ++part) {
        if (states[part].sum == 0.0f) continue;  // whatever its O
        const float factor = kernel::part_factor<L>(all, states[part]);
        const float4 x =
            *reinterpret_cast<const float4*>(partials.out + (slot + part) * a.dim_v + d);
        sum = {fmaf(x.x, factor, sum.x), fmaf(x.y, factor, sum.y), fmaf(x.z, factor, sum.z),
               fmaf(x.w, factor, sum.w)};
      }
      const float f = end.factor;
      if (end.seen) sum = {sum.x * f, sum.y * f, sum.z * f, sum.w * f};
      store4<typename T::Element>(row + d, sum, work.aligned.out);
    }
    if (threadIdx.x == 0) store_lse(a, b, line, end.lse);
  }
}

}  // namespace tessera::cuda::simt
