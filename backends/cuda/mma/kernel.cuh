#pragma once
// FlashAttention forward (Dao 2023, arXiv:2307.08691) on mma.sync, from compute capability 8.0 on:
// a block holds the queries of its rows in shared memory and walks over keys from last to first;
// while scores of a block of keys are computed its values arrive, while they are weighed and
// multiplied the next keys do. Scores, weights and O never leave registers.

#include "backends/cuda/common/fragment.cuh"
#include "backends/cuda/mma/config.hpp"
#include "backends/cuda/mma/launch.hpp"
#include "backends/cuda/mma/tile.cuh"
#include "core/kernel/work_order.hpp"

namespace tessera::cuda::mma {

// What a block works on, in shared memory: registers are short.
struct Block {
  kernel::Sequence sequence;
  kernel::WorkItem item;
  Index row_first;  // of the sequence
  Index key_head;
  Index live;                  // end of the rows that see anything
  Index column;                // of values, the block's first
  const std::uint16_t* key;    // slot 0 of the sequence
  const std::uint16_t* value;  // likewise, at the block's first column
  kernel::LoopSplit loop;
  kernel::ScoreModifiers modifiers;
  kernel::DropoutStream dropout;
};

template <class S, bool kGeneral>
__device__ __forceinline__ void describe(const Parameters& p, Index task, int value_part,
                                         Block& b) {
  const kernel::ForwardArguments& a = p.arguments;
  b.item =
      task < (Index{1} << 32) ? p.order.item(static_cast<std::uint32_t>(task)) : p.order.item(task);
  b.sequence = kernel::sequence(a, b.item.batch);
  const kernel::Sequence& s = b.sequence;
  b.row_first = b.item.block * S::kRows;
  b.key_head = kernel::key_head(a, b.item.head);
  b.live = kernel::smaller(b.row_first + S::kRows, s.query_end);
  b.column = value_part * S::kDimV;
  b.key = static_cast<const std::uint16_t*>(a.key.data) + s.batch * a.key.batch +
          b.key_head * a.key.head + s.key * a.key.seq;
  b.value = static_cast<const std::uint16_t*>(a.value.data) + s.batch * a.value.batch +
            b.key_head * a.value.head + s.key * a.value.seq + b.column;
  b.loop = kernel::split_loop(s.band, b.row_first, b.live, S::kKeys);
  if (kGeneral) b.modifiers = kernel::score_modifiers(a, b.item.batch, b.item.head);
  if (a.dropout.threshold != 0)
    b.dropout = kernel::dropout_stream(a.dropout, a.head_q, b.item.batch, b.item.head);
}

template <class Element, class S, bool kGeneral>
class Forward {
 public:
  __device__ __forceinline__ Forward(const Parameters& p, const Block& block, unsigned char* shared)
      : p_(p),
        a_(p.arguments),
        b_(block),
        queries_{shared_address(shared)},
        keys_{queries_.base + 2 * S::kRows * S::kDim},
        values_{keys_.base + 2 * S::kKeys * S::kDim} {}

  __device__ __forceinline__ void run() {
    Rows rows[S::kGroups];
    float out[S::kGroups][S::kDimV / 2];
    TESSERA_UNROLL
    for (int g = 0; g < S::kGroups; ++g) {
      TESSERA_UNROLL
      for (int i = 0; i < S::kDimV / 2; ++i) out[g][i] = 0;
    }
    const int first = static_cast<int>(b_.loop.first);
    int tile = static_cast<int>(b_.loop.last) - 1;
    if (tile >= first) {
      load_queries();
      load_keys(tile);
      commit_copies();
      const int whole_last = static_cast<int>(b_.loop.whole_last);
      const int whole_first = static_cast<int>(b_.loop.whole_first);
      for (; tile >= whole_last; --tile) step<true>(tile, first, rows, out);
      for (; tile >= whole_first; --tile) step<false>(tile, first, rows, out);
      for (; tile >= first; --tile) step<true>(tile, first, rows, out);
    }
    store(rows, out);
  }

 private:
  static constexpr int kScores = S::kKeys / 2;

  __device__ __forceinline__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  // The thread's first row of group g, in the tile.
  __device__ __forceinline__ static int row_of(int g) {
    return (warp() * S::kGroups + g) * 16 + own_row();
  }
  // Of scores, to base 2.
  __device__ __forceinline__ float scale() const {
    return kGeneral ? 1.0f : a_.scale * kernel::kLog2E;
  }

  __device__ __forceinline__ void load_queries() {
    const kernel::Sequence& s = b_.sequence;
    const auto* const query = static_cast<const std::uint16_t*>(a_.query.data) +
                              s.batch * a_.query.batch + b_.item.head * a_.query.head +
                              (s.query + b_.row_first) * a_.query.seq;
    load<S::kDim, S::kRows, S::kThreads>(
        queries_, {query, a_.query.seq, 0, static_cast<int>(b_.live - b_.row_first),
                   static_cast<int>(a_.dim), p_.aligned_q});
  }
  template <int kDim>
  __device__ __forceinline__ void load_slots(const Tile<kDim>& to, const std::uint16_t* from,
                                             Index stride, int tile, Index columns, bool aligned) {
    const Index first = Index{tile} * S::kKeys;
    const kernel::Band& band = b_.sequence.band;
    const kernel::Interval<Index> there = kernel::within({band.begin, band.end}, first, S::kKeys);
    load<kDim, S::kKeys, S::kThreads>(
        to, {from + first * stride, stride, static_cast<int>(there.begin),
             static_cast<int>(there.end), static_cast<int>(columns), aligned});
  }
  __device__ __forceinline__ void load_keys(int tile) {
    load_slots(keys_, b_.key, a_.key.seq, tile, a_.dim, p_.aligned_k);
  }
  __device__ __forceinline__ void load_values(int tile) {
    load_slots(values_, b_.value, a_.value.seq, tile, a_.dim_v - b_.column, p_.aligned_v);
  }

  // S = Q·Kᵀ: fragments of keys serve all of the warp's groups.
  __device__ __forceinline__ void products(float (&score)[S::kGroups][kScores]) const {
    const int l = lane();
    const std::uint32_t queries = queries_.address(warp() * S::kGroups * 16 + l % 16, l / 16);
    const std::uint32_t keys = keys_.address(l / 16 * 8 + l % 8, l / 8 % 2);
    TESSERA_UNROLL
    for (int g = 0; g < S::kGroups; ++g) {
      TESSERA_UNROLL
      for (int i = 0; i < kScores; ++i) score[g][i] = 0;
    }
    TESSERA_UNROLL
    for (int k = 0; k < S::kDim / 16; ++k) {
      std::uint32_t query[S::kGroups][4];
      TESSERA_UNROLL
      for (int g = 0; g < S::kGroups; ++g)
        load_matrices(query[g], queries_.at(queries, 16 * g, 2 * k));
      TESSERA_UNROLL
      for (int n = 0; n < S::kKeys / 16; ++n) {
        std::uint32_t key[4];
        load_matrices(key, keys_.at(keys, 16 * n, 2 * k));
        TESSERA_UNROLL
        for (int g = 0; g < S::kGroups; ++g) {
          multiply<Element>(score[g] + 8 * n, query[g], key[0], key[1]);
          multiply<Element>(score[g] + 8 * n + 4, query[g], key[2], key[3]);
        }
      }
    }
  }

  // O += P·V, P in the registers where the scores were.
  __device__ __forceinline__ void accumulate(const std::uint32_t (&weight)[S::kGroups][kScores / 2],
                                             float (&out)[S::kGroups][S::kDimV / 2]) const {
    const std::uint32_t values = values_.address(lane() % 16, lane() / 16);
    TESSERA_UNROLL
    for (int k = 0; k < S::kKeys / 16; ++k) {
      TESSERA_UNROLL
      for (int n = 0; n < S::kDimV / 16; ++n) {
        std::uint32_t value[4];
        load_transposed(value, values_.at(values, 16 * k, 2 * n));
        TESSERA_UNROLL
        for (int g = 0; g < S::kGroups; ++g) {
          multiply<Element>(out[g] + 8 * n, weight[g] + 4 * k, value[0], value[1]);
          multiply<Element>(out[g] + 8 * n + 4, weight[g] + 4 * k, value[2], value[3]);
        }
      }
    }
  }

  // One block of keys, whose copy has been started.
  template <bool kMasked>
  __device__ __forceinline__ void step(int tile, int first, Rows (&rows)[S::kGroups],
                                       float (&out)[S::kGroups][S::kDimV / 2]) {
    wait_copies<0>();
    __syncthreads();  // keys are there, and nobody reads the values of before
    load_values(tile);
    commit_copies();
    float score[S::kGroups][kScores];
    products(score);
    wait_copies<0>();
    __syncthreads();  // values are there, and nobody reads these keys any more
    if (tile > first) {
      load_keys(tile - 1);
      commit_copies();
    }
    std::uint32_t weight[S::kGroups][kScores / 2];
    const Index key_first = Index{tile} * S::kKeys;
    TESSERA_UNROLL
    for (int g = 0; g < S::kGroups; ++g) {
      const int row = row_of(g);
      if constexpr (kGeneral) {
        modify<Element>(
            score[g], b_.modifiers,
            kernel::distance_to(b_.sequence.diagonal, b_.row_first, key_first),
            score_data(a_, b_.item.batch, b_.item.head, b_.row_first, key_first,
                       b_.sequence.query_end - b_.row_first, b_.sequence.keys - key_first),
            row);
      }
      if constexpr (kMasked)
        hide(score[g], kernel::relative_to(b_.sequence.band, b_.row_first, key_first), row);
      float factor[2];
      if (advance<Element>(score[g], rows[g], scale(), factor)) scale_rows(out[g], factor);
      weigh(score[g], rows[g], scale());
      if constexpr (kGeneral) {
        if (a_.dropout.threshold != 0) drop(score[g], b_.dropout, b_.row_first, row, key_first);
      }
      pack<Element>(score[g], weight[g]);
    }
    accumulate(weight, out);
  }

  __device__ __forceinline__ void store(const Rows (&rows)[S::kGroups],
                                        const float (&out)[S::kGroups][S::kDimV / 2]) const {
    const kernel::Sequence& s = b_.sequence;
    const Index seq = s.query + b_.row_first, head = b_.item.head;
    const OutRows to{
        static_cast<std::uint16_t*>(a_.out.data) + s.batch * a_.out.batch + head * a_.out.head +
            seq * a_.out.seq + b_.column,
        a_.out.seq,
        a_.lse.data == nullptr || b_.column != 0
            ? nullptr
            : a_.lse.data + s.batch * a_.lse.batch + head * a_.lse.head + seq * a_.lse.seq,
        a_.lse.seq,
        static_cast<int>(kernel::smaller(s.rows - b_.row_first, S::kRows)),
        static_cast<int>(a_.dim_v - b_.column)};
    const float sink =
        kGeneral && a_.sinks ? a_.sinks[head * a_.sinks_head] : kernel::kMinusInfinity;
    const int live_rows = static_cast<int>(b_.live - b_.row_first);  // may be negative
    TESSERA_UNROLL
    for (int g = 0; g < S::kGroups; ++g) {
      const int row = row_of(g);
      const bool live[2] = {row < live_rows, row + 8 < live_rows};
      const Finished f = finish(rows[g], scale(), live, sink, a_.dropout);
      if (p_.aligned_out) {
        store_out<Element>(out[g], f, to, row);
      } else {
        store_unaligned<Element>(out[g], f, to, row);
      }
      store_lse(f, to, row);
    }
  }

  const Parameters& p_;
  const kernel::ForwardArguments& a_;
  const Block& b_;
  Tile<S::kDim> queries_, keys_;
  Tile<S::kDimV> values_;
};

template <class Element, class S, bool kGeneral>
__global__ void __launch_bounds__(S::kThreads) forward(const __grid_constant__ Parameters p) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ Block block;
  const Index blocks = p.tasks * p.value_parts;
  for (Index i = blockIdx.x; i < blocks; i += gridDim.x) {
    __syncthreads();  // nobody reads what the block of before left
    if (threadIdx.x == 0)
      describe<S, kGeneral>(p, p.value_parts == 1 ? i : i / p.value_parts,
                            p.value_parts == 1 ? 0 : static_cast<int>(i % p.value_parts), block);
    __syncthreads();
    if (block.row_first < block.sequence.rows)
      Forward<Element, S, kGeneral>(p, block, shared).run();
  }
}

template <class Element, class S, bool kGeneral>
const void* kernel_of() {
  return reinterpret_cast<const void*>(&forward<Element, S, kGeneral>);
}

}  // namespace tessera::cuda::mma
