#pragma once

#include "backends/cuda/common/fragment.cuh"
#include "backends/cuda/mma/decode.hpp"
#include "backends/cuda/mma/tile.cuh"
#include "core/kernel/work_order.hpp"

namespace tessera::cuda::mma {

// Where a task's rows are.
struct TaskPlace {
  int batch, key_head, row_first;

  __device__ __forceinline__ TaskPlace(const DecodeParameters& p, unsigned task) {
    const unsigned blocks = static_cast<unsigned>(p.row_blocks);
    const unsigned heads = static_cast<unsigned>(p.arguments.head_k), item = task / blocks;
    batch = static_cast<int>(item / heads);
    key_head = static_cast<int>(item % heads);
    row_first = static_cast<int>(task % blocks) * kDecodeRows;
  }
};

template <class Element, class S>
class Decode {
 public:
  // What a block works on, in shared memory.
  struct Block {
    kernel::Sequence sequence;
    kernel::Interval<Index> keys;  // of the part, that any row sees
    int key_head, row_first;       // of the (position, head) rows
    const std::uint16_t* key;      // slot 0 of the sequence
    const std::uint16_t* value;
    float max[S::kWarps][S::kRows], sum[S::kWarps][S::kRows];
  };

  __device__ __forceinline__ Decode(const DecodeParameters& p, Block& block, unsigned char* shared)
      : p_(p),
        a_(p.arguments),
        b_(block),
        shared_(shared),
        stages_(shared_address(shared) + warp() * S::kStages * S::kStageBytes) {}

  __device__ __forceinline__ void run(unsigned task, unsigned part) {
    if (threadIdx.x == 0) describe(task, part);
    __syncthreads();
    if (b_.row_first >= b_.sequence.rows * p_.group) return;
    TESSERA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const int row = b_.row_first + own_row() + 8 * r;
      position_[r] = row / p_.group;
      head_[r] = row % p_.group;
    }
    std::uint32_t query[S::kDim / 16][4];
    load_queries(query);
    Rows rows;
    float out[S::kDim / 2];
    TESSERA_UNROLL
    for (int i = 0; i < S::kDim / 2; ++i) out[i] = 0;

    // The warp's tiles, from the part's first key on.
    const Index first = b_.keys.begin / S::kKeys;
    const Index last = kernel::count_blocks(kernel::larger(b_.keys.begin, b_.keys.end), S::kKeys);
    Index fetched = first + warp();
    TESSERA_UNROLL
    for (int i = 0; i < S::kStages - 1; ++i, fetched += S::kWarps) fetch(i, fetched, last);
    int stage = 0;
    for (Index tile = first + warp(); tile < last; tile += S::kWarps) {
      wait_copies<S::kStages - 2>();
      __syncwarp();
      const int next = stage == 0 ? S::kStages - 1 : stage - 1;
      fetch(next, fetched, last);
      fetched += S::kWarps;
      step(stage, tile, query, rows, out);
      stage = stage + 1 == S::kStages ? 0 : stage + 1;
    }
    wait_copies<0>();
    finish_block(rows, out, part);
  }

 private:
  __device__ __forceinline__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  // Of scores, to base 2. One that is not positive multiplies products before their maxima are
  // looked for.
  __device__ __forceinline__ bool scales_later() const { return a_.scale > 0; }
  __device__ __forceinline__ float scale() const {
    return scales_later() ? a_.scale * kernel::kLog2E : 1.0f;
  }

  __device__ __forceinline__ void describe(unsigned task, unsigned part) {
    const TaskPlace place(p_, task);
    b_.sequence = kernel::sequence(a_, place.batch);
    const kernel::Sequence& s = b_.sequence;
    const Index head = place.key_head;
    b_.key_head = place.key_head;
    b_.row_first = place.row_first;
    b_.key = static_cast<const std::uint16_t*>(a_.key.data) + s.batch * a_.key.batch +
             head * a_.key.head + s.key * a_.key.seq;
    b_.value = static_cast<const std::uint16_t*>(a_.value.data) + s.batch * a_.value.batch +
               head * a_.value.head + s.key * a_.value.seq;
    const Index row_end =
        kernel::smaller((b_.row_first + S::kRows - 1) / p_.group + 1, s.query_end);
    const Index row_begin = b_.row_first / p_.group;
    b_.keys = {0, 0};
    if (row_begin < row_end) {
      const kernel::Interval<Index> mine =
          kernel::KeySplit{s.keys, kDecodeTile, p_.parts}.part(part);
      const kernel::Interval<Index> any = s.band.any_of(row_begin, row_end);
      b_.keys = {kernel::larger(mine.begin, any.begin), kernel::smaller(mine.end, any.end)};
    }
  }

  __device__ __forceinline__ void load_queries(std::uint32_t (&query)[S::kDim / 16][4]) const {
    const kernel::Sequence& s = b_.sequence;
    TESSERA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const Index position = position_[r], head = Index{b_.key_head} * p_.group + head_[r];
      const bool there = position < s.query_end;
      const auto* const from = static_cast<const std::uint16_t*>(a_.query.data) +
                               (there ? s.batch * a_.query.batch + head * a_.query.head +
                                            (s.query + position) * a_.query.seq
                                      : 0);
      TESSERA_UNROLL
      for (int k = 0; k < S::kDim / 16; ++k) {
        TESSERA_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int column = 16 * k + 8 * half + own_column();
          std::uint32_t word = 0;
          if (there && column < a_.dim)
            word = *reinterpret_cast<const std::uint32_t*>(from + column);
          query[k][2 * half + r] = word;
        }
      }
    }
  }

  // Starts copying a tile; slots outside [begin, keys) become 0 and are not read.
  __device__ __forceinline__ void fetch(int stage, Index tile, Index last) {
    if (tile < last) {
      const Tile<S::kDim> keys{stages_ + stage * S::kStageBytes};
      const Tile<S::kDim> values{keys.base + S::kStageBytes / 2};
      const Index first = tile * S::kKeys;
      const int chunk = lane() % 8;
      TESSERA_UNROLL
      for (int i = 0; i < S::kKeys / 4; ++i) {
        const int row = lane() / 8 + 4 * i;
        const Index slot = first + row;
        const bool there = slot >= b_.keys.begin && slot < b_.keys.end;
        TESSERA_UNROLL
        for (int c = 0; c < S::kDim / 64; ++c) {
          const int column = 64 * c + 8 * chunk;
          copy_async(keys.address(row, chunk) + 128 * c,
                     there ? b_.key + slot * a_.key.seq + column : b_.key,
                     there && column < a_.dim);
          copy_async(values.address(row, chunk) + 128 * c,
                     there ? b_.value + slot * a_.value.seq + column : b_.value,
                     there && column < a_.dim_v);
        }
      }
    }
    commit_copies();
  }

  __device__ __forceinline__ void step(int stage, Index tile,
                                       const std::uint32_t (&query)[S::kDim / 16][4], Rows& rows,
                                       float (&out)[S::kDim / 2]) const {
    const int l = lane();
    const Tile<S::kDim> key_tile{stages_ + stage * S::kStageBytes};
    const Tile<S::kDim> value_tile{key_tile.base + S::kStageBytes / 2};
    const std::uint32_t keys = key_tile.address(l / 16 * 8 + l % 8, l / 8 % 2);
    const std::uint32_t values = value_tile.address(l % 16, l / 16);
    float score[S::kKeys / 2];
    TESSERA_UNROLL
    for (int i = 0; i < S::kKeys / 2; ++i) score[i] = 0;
    TESSERA_UNROLL
    for (int k = 0; k < S::kDim / 16; ++k) {
      TESSERA_UNROLL
      for (int n = 0; n < S::kKeys / 16; ++n) {
        std::uint32_t key[4];
        load_matrices(key, key_tile.at(keys, 16 * n, 2 * k));
        multiply<Element>(score + 8 * n, query[k], key[0], key[1]);
        multiply<Element>(score + 8 * n + 4, query[k], key[2], key[3]);
      }
    }
    if (!scales_later()) {
      TESSERA_UNROLL
      for (int i = 0; i < S::kKeys / 2; ++i) score[i] *= a_.scale * kernel::kLog2E;
    }
    const Index first = tile * S::kKeys;
    kernel::Band band = b_.sequence.band;
    band.begin = b_.keys.begin;  // of the part
    band.end = b_.keys.end;
    hide(score, kernel::relative_to(band, 0, first), position_);
    float factor[2];
    if (advance<Element>(score, rows, scale(), factor)) scale_rows(out, factor);
    weigh(score, rows, scale());
    std::uint32_t weight[S::kKeys / 4];
    pack<Element>(score, weight);
    TESSERA_UNROLL
    for (int k = 0; k < S::kKeys / 16; ++k) {
      TESSERA_UNROLL
      for (int n = 0; n < S::kDim / 16; ++n) {
        std::uint32_t value[4];
        load_transposed(value, value_tile.at(values, 16 * k, 2 * n));
        multiply<Element>(out + 8 * n, weight + 4 * k, value[0], value[1]);
        multiply<Element>(out + 8 * n + 4, weight + 4 * k, value[2], value[3]);
      }
    }
  }

  // The warps' states and outputs become one, in the order of the warps, and are written: as a
  // part, or as the result if there is only one.
  __device__ __forceinline__ void finish_block(Rows& rows, float (&out)[S::kDim / 2],
                                               unsigned part) {
    auto* const sums = reinterpret_cast<float*>(shared_);  // [row][column]
    TESSERA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const float sum = quad_sum(rows.sum[r]);
      if (lane() % 4 == 0) {
        b_.max[warp()][own_row() + 8 * r] = base2_origin(rows, r, scale());
        b_.sum[warp()][own_row() + 8 * r] = sum;
      }
    }
    __syncthreads();  // nobody's copies are on their way any more
    TESSERA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const kernel::SoftmaxState<float> all = merged(own_row() + 8 * r);
      const float factor =
          kernel::part_factor<FragmentLanes>(all, {base2_origin(rows, r, scale()), 0});
      TESSERA_UNROLL
      for (int i = 2 * r; i < S::kDim / 2; i += 4) {
        out[i] *= factor;
        out[i + 1] *= factor;
      }
    }
    for (int w = 0; w < S::kWarps; ++w) {
      if (warp() == w) {
        TESSERA_UNROLL
        for (int i = 0; i < S::kDim / 2; ++i) {
          float& sum = sums[(own_row() + 8 * half_of(i)) * S::kDim + own_column() + column_of(i)];
          sum = w == 0 ? out[i] : sum + out[i];
        }
      }
      __syncthreads();
    }
    const kernel::Sequence& s = b_.sequence;
    const int columns = static_cast<int>(a_.dim_v);
    for (int row = warp(); row < S::kRows; row += S::kWarps) {
      const int at = b_.row_first + row, position = at / p_.group;
      if (position >= s.rows) return;
      const Index head = Index{b_.key_head} * p_.group + at % p_.group, seq = s.query + position;
      kernel::SoftmaxState<float> state = merged(row);
      if (position >= s.query_end) state = kernel::empty_state<FragmentLanes>();
      if (p_.parts > 1) {
        const Index index = ((s.batch * a_.head_q + head) * a_.total_q + seq) * p_.parts + part;
        for (int d = lane(); d < columns; d += 32)
          p_.out[index * columns + d] = sums[row * S::kDim + d];
        if (lane() == 0) p_.state[index] = state;
        continue;
      }
      const float factor = kernel::inverse_sum<FragmentLanes>(state);
      auto* const to = static_cast<typename Element::Type*>(a_.out.data) + s.batch * a_.out.batch +
                       head * a_.out.head + seq * a_.out.seq;
      for (int d = lane(); d < columns; d += 32)
        to[d] = Element::round(state.sum != 0 ? sums[row * S::kDim + d] * factor : 0.0f);
      if (a_.lse.data != nullptr && lane() == 0)
        a_.lse.data[s.batch * a_.lse.batch + head * a_.lse.head + seq * a_.lse.seq] =
            kernel::log_sum_exp(state.max, state.sum);
    }
  }

  __device__ __forceinline__ kernel::SoftmaxState<float> merged(int row) const {
    kernel::SoftmaxState<float> part[S::kWarps];
    TESSERA_UNROLL
    for (int w = 0; w < S::kWarps; ++w) part[w] = {b_.max[w][row], b_.sum[w][row]};
    return kernel::merge_parts<FragmentLanes>(part, S::kWarps);
  }

  const DecodeParameters& p_;
  const kernel::ForwardArguments& a_;
  Block& b_;
  unsigned char* const shared_;
  const std::uint32_t stages_;  // the warp's
  int position_[2];             // of the thread's rows
  int head_[2];                 // likewise, inside the group
};

template <class Element, class S>
__global__ void __launch_bounds__(S::kThreads) decode(const __grid_constant__ DecodeParameters p) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ typename Decode<Element, S>::Block block;
  const unsigned parts = static_cast<unsigned>(p.parts);
  Decode<Element, S>(p, block, shared).run(blockIdx.x / parts, blockIdx.x % parts);
}

// The parts of every row become its output, in their order: a block a row, of which a task has
// kDecodeRows.
template <class Element>
__global__ void __launch_bounds__(kCombineThreads)
    combine(const __grid_constant__ DecodeParameters p) {
  __shared__ kernel::SoftmaxState<float> state[kernel::kMaxParts];
  __shared__ float factor[kernel::kMaxParts];
  const kernel::ForwardArguments& a = p.arguments;
  const int thread = static_cast<int>(threadIdx.x), columns = static_cast<int>(a.dim_v);
  const int parts = static_cast<int>(p.parts);
  const TaskPlace place(p, blockIdx.x / kDecodeRows);
  const kernel::Sequence s = kernel::sequence(a, place.batch);
  const int at = place.row_first + static_cast<int>(blockIdx.x % kDecodeRows);
  const int position = at / p.group;
  if (position >= s.rows) return;
  const Index head = Index{place.key_head} * p.group + at % p.group, seq = s.query + position;
  const Index row = (s.batch * a.head_q + head) * a.total_q + seq;
  if (thread < parts) state[thread] = p.state[row * parts + thread];
  __syncthreads();
  const kernel::SoftmaxState<float> all = kernel::merge_parts<FragmentLanes>(state, parts);
  const float inverse = kernel::inverse_sum<FragmentLanes>(all);
  if (thread < parts)
    factor[thread] = inverse * kernel::part_factor<FragmentLanes>(all, state[thread]);
  __syncthreads();
  auto* const to = static_cast<typename Element::Type*>(a.out.data) + s.batch * a.out.batch +
                   head * a.out.head + seq * a.out.seq;
  for (int d = thread; d < columns; d += kCombineThreads) {
    const float* const part = p.out + row * parts * columns + d;
    float sum = 0;
#pragma unroll 8
    for (int k = 0; k < parts; ++k) sum += factor[k] * part[k * columns];
    to[d] = Element::round(all.sum != 0 ? sum : 0.0f);
  }
  if (a.lse.data != nullptr && thread == 0)
    a.lse.data[s.batch * a.lse.batch + head * a.lse.head + seq * a.lse.seq] =
        kernel::log_sum_exp(all.max, all.sum);
}

template <class Element, class S>
const void* decode_kernel() {
  return reinterpret_cast<const void*>(&decode<Element, S>);
}
template <class Element>
const void* combine_kernel() {
  return reinterpret_cast<const void*>(&combine<Element>);
}

}  // namespace tessera::cuda::mma
