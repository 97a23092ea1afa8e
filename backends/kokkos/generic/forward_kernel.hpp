#pragma once
// The generic forward kernel: one team a block of query rows of one head.
//
//     O = softmax(scale · Q Kᵀ + …) V        Q [rows, dim]   K [keys, dim]   V [keys, dim_v]
//
//     phase        threads         lanes         reads                 writes
//     load_query   rows            dims          Q                     query, out = 0, empty state
//     load keys    keys            dims          K                     tile
//     multiply     groups of rows  kWidth keys   query, tile           score
//     load values  keys            dims          V                     tile
//     weigh        rows            keys          score, bias, mask     score (now P), state, factor
//     accumulate   groups of rows  kWidth dims   score, tile, factor   out
//     finish       rows            dims          out, state, sinks     O, log-sum-exp
//
// A barrier stands between phases of which one writes what the other touches. Every number is
// computed by one lane in a fixed order (or by a reduction over the lanes of one thread): bits
// depend on the machine, not on the number of threads.

#include "backends/kokkos/generic/config.hpp"
#include "backends/kokkos/generic/tile.hpp"
#include "core/kernel/softmax.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::kokkos::generic {

// Element: of query, key, value and out. kWidth: neighbouring keys or dims that one vector lane
// computes, which a host compiler turns into vector registers.
template <class Element, int kWidth>
class ForwardKernel {
  static_assert(kKeys % 8 == 0 && kRows % kGroup == 0);

 public:
  using State = kernel::SoftmaxState<float>;

  ForwardKernel(const kernel::ForwardArguments& arguments, const kernel::WorkOrder& order)
      : a_(arguments), order_(order), scratch_(Scratch::of(arguments.dim, arguments.dim_v)) {}

  // `scratch`: Scratch::bytes.
  KOKKOS_FUNCTION void operator()(const Member& team, Index task, float* scratch) const;

 private:
  // What a team works on.
  struct Block {
    kernel::Sequence sequence;
    Head head;
    Index row_first = 0;  // inside the sequence
    int rows = 0;         // with an output
    int live = 0;         // of these, before query_end
    float *query, *out, *score, *max, *sum, *factor, *sum_rest, *rest, *tile;
  };

  KOKKOS_FUNCTION bool open(Index task, float* scratch, Block& b) const;
  KOKKOS_FUNCTION void load_query(const Member& team, const Block& b) const;
  KOKKOS_FUNCTION void weigh(const Member& team, const Block& b, const Tile& tile) const;
  KOKKOS_FUNCTION void drop(const Member& team, const Block& b, const Tile& tile, int i) const;
  KOKKOS_FUNCTION void finish(const Member& team, const Block& b) const;

  kernel::ForwardArguments a_;
  kernel::WorkOrder order_;
  Scratch scratch_;
};

template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::operator()(const Member& team, Index task,
                                                                float* scratch) const {
  Block b;
  if (!open(task, scratch, b)) return;
  load_query(team, b);
  team.team_barrier();
  const int dim = static_cast<int>(a_.dim), dim_v = static_cast<int>(a_.dim_v);
  const Index batch = b.sequence.batch, key_head = kernel::key_head(a_, b.head.head);
  const kernel::LoopSplit loop =
      kernel::split_loop(b.sequence.band, b.row_first, b.row_first + b.live, kKeys);
  for (Index step = loop.first; step < loop.last; ++step) {
    const Tile tile = tile_of(b.sequence, b.row_first, b.live, step * kKeys);
    const Index seq = b.sequence.key + tile.key_first;
    load_transposed<Element>(team, a_.key, batch, key_head, seq, tile.from, tile.to, dim, b.tile);
    team.team_barrier();
    multiply<kWidth>(team, b.query, b.tile, dim, b.live, tile.from, tile.to, b.score);
    team.team_barrier();
    load_slots<Element>(team, a_.value, batch, key_head, seq, tile.from, tile.to, dim_v, b.tile);
    weigh(team, b, tile);
    team.team_barrier();
    accumulate<kWidth>(
        team, {b.score, kKeys, 1}, 0, groups_of(b.live), tile.from, tile.to, b.tile, dim_v, b.out,
        b.rest, [&](int i) { return b.factor[i]; }, a_.accumulate_fp16);
    team.team_barrier();
  }
  finish(team, b);
}

// Finds the task's block; false if there is nothing to do.
template <class Element, int kWidth>
KOKKOS_FUNCTION bool ForwardKernel<Element, kWidth>::open(Index task, float* scratch,
                                                          Block& b) const {
  if (task >= order_.size()) return false;
  const kernel::WorkItem item = order_.item(task);
  b.row_first = item.block * kRows;
  b.sequence = kernel::sequence(a_, item.batch);
  b.rows = static_cast<int>(kernel::smaller(b.sequence.rows - b.row_first, kRows));
  if (b.rows <= 0) return false;
  b.live = static_cast<int>(kernel::clamp_index(b.sequence.query_end - b.row_first, 0, b.rows));
  b.head = head_of(a_, item.batch, item.head);
  b.query = scratch + scratch_.query;
  b.out = scratch + scratch_.out;
  b.score = scratch + scratch_.score;
  b.max = scratch + scratch_.max;
  b.sum = scratch + scratch_.sum;
  b.factor = scratch + scratch_.factor;
  b.sum_rest = scratch + scratch_.sum_rest;
  b.rest = scratch + scratch_.rest;
  b.tile = scratch + scratch_.tile;
  return true;
}

template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::load_query(const Member& team,
                                                                const Block& b) const {
  const int dim = static_cast<int>(a_.dim), dim_v = static_cast<int>(a_.dim_v);
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, kRows), [&](int i) {
    load_row(team,
             i < b.live ? row_of<Element>(a_.query, b.sequence.batch, b.head.head,
                                          b.sequence.query + b.row_first + i)
                        : nullptr,
             dim, b.query + i * dim);
    float* const out = b.out + i * dim_v;
    float* const rest = b.rest + i * dim_v;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, dim_v),
                         [&](int d) { out[d] = rest[d] = 0; });
    Kokkos::single(Kokkos::PerThread(team), [&] {
      const State empty = kernel::empty_state<Lanes>();
      b.max[i] = empty.max;
      b.sum[i] = empty.sum;
      b.factor[i] = b.sum_rest[i] = 0;
    });
  });
}

// Scores to weights; the state moves on.
template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::weigh(const Member& team, const Block& b,
                                                           const Tile& tile) const {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, b.live), [&](int i) {
    float* const row = b.score + i * kKeys;
    const kernel::Interval<int> see = tile.see(i);
    float tile_max = kernel::kMinusInfinity;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, tile.from, tile.to),
        [&](int j, float& max) {
          row[j] = score_of<Element>(a_, b.head, tile, see, i, j, row[j]);
          max = kernel::observe<Lanes>(max, row[j]);
        },
        Kokkos::Max<float>(tile_max));
    State state{b.max[i], b.sum[i]};
    const float factor = kernel::advance_lazily<Lanes>(state, tile_max, a_.accumulate_fp16);
    const float origin = kernel::origin<Lanes>(state.max);
    float tile_sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, tile.from, tile.to),
        [&](int j, float& sum) {
          row[j] = kernel::weight<Lanes>(row[j], origin);
          sum += row[j];
        },
        tile_sum);
    Kokkos::single(Kokkos::PerThread(team), [&] {
      b.max[i] = state.max;
      b.sum_rest[i] *= factor;
      kernel::add_keeping_rest(state.sum, b.sum_rest[i], tile_sum);
      b.sum[i] = state.sum;
      b.factor[i] = factor;
    });
    if (a_.dropout.threshold != 0) drop(team, b, tile, i);
  });
}

// Weights that are dropped become 0, after the sum has counted them.
template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::drop(const Member& team, const Block& b,
                                                          const Tile& tile, int i) const {
  Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, tile.from / 8, (tile.to + 7) / 8),
                       [&](int group) {
                         float* const weight = b.score + i * kKeys + group * 8;
                         std::uint32_t words[4];
                         draw(b.head, tile, i, group, words);
                         TESSERA_UNROLL
                         for (std::uint32_t j = 0; j < 8; ++j) {
                           if (!kernel::kept<Lanes>(b.head.dropout, words, j)) weight[j] = 0;
                         }
                       });
}

// Divides by the sums and writes. A row that saw nothing gives 0 whatever the values were.
template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::finish(const Member& team,
                                                            const Block& b) const {
  const int dim_v = static_cast<int>(a_.dim_v);
  const Index head = b.head.head;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, b.rows), [&](int i) {
    State state = kernel::empty_state<Lanes>();
    bool seen = false;
    float factor = 0;
    if (i < b.live) {
      state = {b.max[i], b.sum[i] + b.sum_rest[i]};
      seen = state.sum != 0.0f && a_.dropout.threshold < 65536u;
      factor = a_.dropout.keep_scale();
      if (a_.sinks != nullptr) {
        factor *=
            kernel::add_sink<Lanes>(state, kernel::to_base2<Lanes>(a_.sinks[head * a_.sinks_head]));
      }
      factor *= kernel::inverse_sum<Lanes>(state);
    }
    // The rests, too: tiles without a visible key, of which a row's block may have some behind its
    // last one, add them.
    const float* const out = b.out + i * dim_v;
    const float* const rest = b.rest + i * dim_v;
    const Index seq = b.sequence.query + b.row_first + i;
    Element* const row = row_of<Element>(a_.out, b.sequence.batch, head, seq);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, dim_v),
                         [&](int d) { row[d].store(seen ? (out[d] + rest[d]) * factor : 0.0f); });
    if (a_.lse.data != nullptr) {
      Kokkos::single(Kokkos::PerThread(team), [&] {
        a_.lse.data[b.sequence.batch * a_.lse.batch + head * a_.lse.head + seq * a_.lse.seq] =
            kernel::log_sum_exp(state.max, state.sum);
      });
    }
  });
}

}  // namespace tessera::kokkos::generic
