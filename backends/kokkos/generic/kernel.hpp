#pragma once
// The generic forward kernel: one team a block of query rows of one head.
//
//     O = softmax(scale · Q Kᵀ + …) V        Q [rows, dim]   K [keys, dim]   V [keys, dim_v]
//
//     phase        threads         lanes         reads                 writes
//     load_query   rows            dims          Q                     query, out = 0, empty state
//     load_keys    keys            dims          K                     tile
//     multiply     groups of rows  kWidth keys   query, tile           score
//     load_values  keys            dims          V                     tile
//     weigh        rows            keys          score, bias, mask     score (now P), state, factor
//     accumulate   groups of rows  kWidth dims   score, tile, factor   out
//     finish       rows            dims          out, state, sinks     O, log-sum-exp
//
// A barrier stands between phases of which one writes what the other touches. Every number is
// computed by one lane in a fixed order (or by a reduction over the lanes of one thread): bits
// depend on the machine, not on the number of threads.

#include "backends/kokkos/element.hpp"
#include "backends/kokkos/generic/config.hpp"
#include "backends/kokkos/space.hpp"
#include "core/kernel/mask.hpp"
#include "core/kernel/modifiers.hpp"
#include "core/kernel/philox.hpp"
#include "core/kernel/sequence.hpp"
#include "core/kernel/softmax.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::kokkos::generic {

// Element: of query, key, value and out. kWidth: neighbouring keys or dims that one vector lane
// computes, which a host compiler turns into vector registers.
template <class Element, int kWidth>
class ForwardKernel {
  static_assert(kKeys % kWidth == 0 && 8 % kWidth == 0 && kKeys % 8 == 0 && kRows % kGroup == 0);

 public:
  using Policy = Kokkos::TeamPolicy<Space, Kokkos::Schedule<Kokkos::Dynamic>>;
  using Member = typename Policy::member_type;
  using Lanes = kernel::ScalarLanes;
  using State = kernel::SoftmaxState<float>;

  // Computes the tasks from `first` on, one a team; scratch memory is of `level`.
  ForwardKernel(const kernel::ForwardArguments& arguments, const kernel::WorkOrder& order,
                Index first, int level)
      : a_(arguments),
        order_(order),
        scratch_(Scratch::of(arguments.dim, arguments.dim_v)),
        first_(first),
        level_(level) {}

  KOKKOS_FUNCTION void operator()(const Member& team) const;

 private:
  // What a team works on.
  struct Block {
    kernel::Sequence sequence;
    Index batch = 0;      // or segment
    Index head = 0;       // of query
    Index row_first = 0;  // inside the sequence
    int rows = 0;         // with an output
    int live = 0;         // of these, before query_end
    bool general = false;
    kernel::ScoreModifiers modifiers;
    kernel::DropoutStream dropout;
    float *query, *out, *score, *max, *sum, *factor, *tile;
  };
  // A step's keys [first, first + kKeys), of which those in [from, to), relative to first, are
  // read.
  struct Step {
    Index first = 0;
    int from = 0;
    int to = 0;
    bool whole = false;  // every row sees every key
  };

  using Part = typename Pack<kWidth>::Part;
  static constexpr int kPart = Pack<kWidth>::kPart;
  static constexpr int kParts = kWidth / kPart;

  TESSERA_FN static void load(const float* from, Part (&to)[kParts]) {
    TESSERA_UNROLL
    for (int p = 0; p < kParts; ++p) __builtin_memcpy(&to[p], from + p * kPart, sizeof to[p]);
  }
  TESSERA_FN static void store(const Part (&from)[kParts], float* to) {
    TESSERA_UNROLL
    for (int p = 0; p < kParts; ++p) __builtin_memcpy(to + p * kPart, &from[p], sizeof from[p]);
  }
  // One step of kGroup dot products' kWidth neighbours: sum[i] += left[i · stride] · right.
  TESSERA_FN static void add_products(const float* left, int stride, const float* right,
                                      Part (&sum)[kGroup][kParts]) {
    Part neighbours[kParts];
    load(right, neighbours);
    TESSERA_UNROLL
    for (int i = 0; i < kGroup; ++i) {
      TESSERA_UNROLL
      for (int p = 0; p < kParts; ++p) sum[i][p] += left[i * stride] * neighbours[p];
    }
  }

  template <class Void>
  KOKKOS_FUNCTION static auto at(const kernel::Operand<Void>& operand, Index batch, Index head,
                                 Index seq) {
    using Pointer = std::conditional_t<std::is_const_v<Void>, const Element*, Element*>;
    return static_cast<Pointer>(operand.data) +
           (batch * operand.batch + head * operand.head + seq * operand.seq);
  }
  KOKKOS_FUNCTION bool open(const Member& team, Block& b) const;
  KOKKOS_FUNCTION void load_query(const Member& team, const Block& b) const;
  KOKKOS_FUNCTION void load_keys(const Member& team, const Block& b, const Step& step) const;
  KOKKOS_FUNCTION void load_values(const Member& team, const Block& b, const Step& step) const;
  KOKKOS_FUNCTION void multiply(const Member& team, const Block& b, const Step& step) const;
  KOKKOS_FUNCTION void weigh(const Member& team, const Block& b, const Step& step) const;
  KOKKOS_FUNCTION float score(const Block& b, const Step& step,
                              const kernel::TileDistance& distance,
                              const kernel::Interval<int>& see, int i, int j, float product) const;
  KOKKOS_FUNCTION void drop(const Member& team, const Block& b, const Step& step, int i) const;
  KOKKOS_FUNCTION void accumulate(const Member& team, const Block& b, const Step& step) const;
  KOKKOS_FUNCTION void finish(const Member& team, const Block& b) const;

  kernel::ForwardArguments a_;
  kernel::WorkOrder order_;
  Scratch scratch_;
  Index first_;
  int level_;
};

template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::operator()(const Member& team) const {
  Block b;
  if (!open(team, b)) return;
  load_query(team, b);
  const kernel::LoopSplit loop =
      kernel::split_loop(b.sequence.band, b.row_first, b.row_first + b.live, kKeys);
  const kernel::Interval<Index> any =
      b.live > 0 ? b.sequence.band.any_of(b.row_first, b.row_first + b.live)
                 : kernel::Interval<Index>{};
  for (Index tile = loop.first; tile < loop.last; ++tile) {
    Step step;
    step.first = tile * kKeys;
    step.from = static_cast<int>(kernel::larger(any.begin - step.first, 0));
    step.to = static_cast<int>(kernel::smaller(any.end - step.first, kKeys));
    step.whole = loop.whole_first <= tile && tile < loop.whole_last;
    load_keys(team, b, step);
    team.team_barrier();
    multiply(team, b, step);
    team.team_barrier();
    load_values(team, b, step);
    weigh(team, b, step);
    team.team_barrier();
    accumulate(team, b, step);
    team.team_barrier();
  }
  finish(team, b);
}

// Finds the team's block; false if there is nothing to do.
template <class Element, int kWidth>
KOKKOS_FUNCTION bool ForwardKernel<Element, kWidth>::open(const Member& team, Block& b) const {
  const Index task = first_ + team.league_rank();
  if (task >= order_.size()) return false;
  const kernel::WorkItem item = order_.item(task);
  b.batch = item.batch;
  b.head = item.head;
  b.row_first = item.block * kRows;
  b.sequence = kernel::sequence(a_, b.batch);
  b.rows = static_cast<int>(kernel::smaller(b.sequence.rows - b.row_first, kRows));
  if (b.rows <= 0) return false;
  b.live = static_cast<int>(kernel::clamp_index(b.sequence.query_end - b.row_first, 0, b.rows));
  b.general = a_.general();
  b.modifiers = kernel::score_modifiers(a_, b.batch, b.head);
  b.dropout = kernel::dropout_stream(a_.dropout, a_.head_q, b.batch, b.head);
  auto* const scratch = static_cast<float*>(team.team_scratch(level_).get_shmem_aligned(
      static_cast<std::ptrdiff_t>(scratch_.bytes()), kAlign));
  b.query = scratch + scratch_.query;
  b.out = scratch + scratch_.out;
  b.score = scratch + scratch_.score;
  b.max = scratch + scratch_.max;
  b.sum = scratch + scratch_.sum;
  b.factor = scratch + scratch_.factor;
  b.tile = scratch + scratch_.tile;
  return true;
}

template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::load_query(const Member& team,
                                                                const Block& b) const {
  const int dim = static_cast<int>(a_.dim), dim_v = static_cast<int>(a_.dim_v);
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, kRows), [&](int i) {
    float* const query = b.query + i * dim;
    float* const out = b.out + i * dim_v;
    if (i < b.live) {
      const Element* const row =
          at(a_.query, b.sequence.batch, b.head, b.sequence.query + b.row_first + i);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, dim),
                           [&](int d) { query[d] = row[d].load(); });
    } else {
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, dim), [&](int d) { query[d] = 0; });
    }
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, dim_v), [&](int d) { out[d] = 0; });
    Kokkos::single(Kokkos::PerThread(team), [&] {
      const State empty = kernel::empty_state<Lanes>();
      b.max[i] = empty.max;
      b.sum[i] = empty.sum;
      b.factor[i] = 0;
    });
  });
}

// Slots that no row of the block sees are not read.
template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::load_keys(const Member& team, const Block& b,
                                                               const Step& step) const {
  const int dim = static_cast<int>(a_.dim);
  const Index head = kernel::key_head(a_, b.head);
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, kKeys), [&](int j) {
    if (step.from <= j && j < step.to) {
      const Element* const row =
          at(a_.key, b.sequence.batch, head, b.sequence.key + step.first + j);
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, dim),
                           [&](int d) { b.tile[d * kKeys + j] = row[d].load(); });
    } else {
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, dim),
                           [&](int d) { b.tile[d * kKeys + j] = 0; });
    }
  });
}

template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::load_values(const Member& team, const Block& b,
                                                                 const Step& step) const {
  const int dim_v = static_cast<int>(a_.dim_v);
  const Index head = kernel::key_head(a_, b.head);
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, step.from, step.to), [&](int j) {
    const Element* const row =
        at(a_.value, b.sequence.batch, head, b.sequence.key + step.first + j);
    float* const value = b.tile + j * dim_v;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, dim_v),
                         [&](int d) { value[d] = row[d].load(); });
  });
}

template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::multiply(const Member& team, const Block& b,
                                                              const Step& step) const {
  const int dim = static_cast<int>(a_.dim);
  const int groups = (b.live + kGroup - 1) / kGroup;
  const int first = step.from / kWidth, last = (step.to + kWidth - 1) / kWidth;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, groups), [&](int group) {
    const float* const query = b.query + group * kGroup * dim;
    float* const score = b.score + group * kGroup * kKeys;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, first, last), [&](int chunk) {
      const float* const key = b.tile + chunk * kWidth;
      Part sum[kGroup][kParts] = {};
      for (int first_d = 0; first_d < dim; first_d += kRun) {
        Part run[kGroup][kParts] = {};
        for (int d = first_d; d < first_d + kRun && d < dim; ++d) {
          add_products(query + d, dim, key + d * kKeys, run);
        }
        TESSERA_UNROLL
        for (int i = 0; i < kGroup; ++i) {
          TESSERA_UNROLL
          for (int p = 0; p < kParts; ++p) sum[i][p] += run[i][p];
        }
      }
      TESSERA_UNROLL
      for (int i = 0; i < kGroup; ++i) store(sum[i], score + i * kKeys + chunk * kWidth);
    });
  });
}

// The score that the softmax sees, in base 2, of row i and key j of the tile. Nothing is read for a
// hidden key.
template <class Element, int kWidth>
KOKKOS_FUNCTION float ForwardKernel<Element, kWidth>::score(const Block& b, const Step& step,
                                                            const kernel::TileDistance& distance,
                                                            const kernel::Interval<int>& see, int i,
                                                            int j, float product) const {
  if (!kernel::holds<Lanes>(see, j)) return kernel::kMinusInfinity;
  if (!b.general) return product * b.modifiers.scale;
  const auto offset = [&](const kernel::ScoreOperand& operand) {
    return b.batch * operand.batch + b.head * operand.head + (b.row_first + i) * operand.row +
           (step.first + j) * operand.column;
  };
  float bias = 0;
  if (b.modifiers.bias) {
    bias = a_.bias_fp32 ? static_cast<const float*>(a_.bias.data)[offset(a_.bias)]
                        : static_cast<const Element*>(a_.bias.data)[offset(a_.bias)].load();
  }
  bool visible = true;
  if (b.modifiers.mask)
    visible = static_cast<const std::uint8_t*>(a_.boolean_mask.data)[offset(a_.boolean_mask)] != 0;
  return kernel::modify<Lanes>(b.modifiers, product, distance, i, j, bias, visible);
}

// Scores to weights; the state moves on.
template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::weigh(const Member& team, const Block& b,
                                                           const Step& step) const {
  const kernel::TileBand band = kernel::relative_to(b.sequence.band, b.row_first, step.first);
  const kernel::TileDistance distance =
      kernel::distance_to(b.sequence.diagonal, b.row_first, step.first);
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, b.live), [&](int i) {
    float* const row = b.score + i * kKeys;
    const kernel::Interval<int> see =
        step.whole ? kernel::Interval<int>{0, kKeys} : band.row<Lanes>(i);
    float tile_max = kernel::kMinusInfinity;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, step.from, step.to),
        [&](int j, float& max) {
          row[j] = score(b, step, distance, see, i, j, row[j]);
          max = kernel::observe<Lanes>(max, row[j]);
        },
        Kokkos::Max<float>(tile_max));
    State state{b.max[i], b.sum[i]};
    const float factor = kernel::advance<Lanes>(state, tile_max);
    const float origin = kernel::origin<Lanes>(state.max);
    float tile_sum = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, step.from, step.to),
        [&](int j, float& sum) {
          row[j] = kernel::weight<Lanes>(row[j], origin);
          sum += row[j];
        },
        tile_sum);
    Kokkos::single(Kokkos::PerThread(team), [&] {
      b.max[i] = state.max;
      b.sum[i] = state.sum + tile_sum;
      b.factor[i] = factor;
    });
    if (a_.dropout.threshold != 0) drop(team, b, step, i);
  });
}

// Weights that are dropped become 0, after the sum has counted them.
template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::drop(const Member& team, const Block& b,
                                                          const Step& step, int i) const {
  Kokkos::parallel_for(
      Kokkos::ThreadVectorRange(team, step.from / 8, (step.to + 7) / 8), [&](int group) {
        float* const weight = b.score + i * kKeys + group * 8;
        std::uint32_t words[4];
        kernel::draw<Lanes>(b.dropout, kernel::dropout_rows<Lanes>(b.row_first, i),
                            static_cast<std::uint32_t>(step.first / 8 + group), words);
        TESSERA_UNROLL
        for (std::uint32_t j = 0; j < 8; ++j) {
          if (!kernel::kept<Lanes>(b.dropout, words, j)) weight[j] = 0;
        }
      });
}

template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::accumulate(const Member& team, const Block& b,
                                                                const Step& step) const {
  const int dim_v = static_cast<int>(a_.dim_v);
  const int groups = (b.live + kGroup - 1) / kGroup;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, groups), [&](int group) {
    const float* const weight = b.score + group * kGroup * kKeys;
    const float* const factor = b.factor + group * kGroup;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, dim_v / kWidth), [&](int chunk) {
      const float* const value = b.tile + chunk * kWidth;
      float* const out = b.out + group * kGroup * dim_v + chunk * kWidth;
      Part sum[kGroup][kParts] = {};
      for (int j = step.from; j < step.to; ++j) {
        add_products(weight + j, kKeys, value + j * dim_v, sum);
      }
      TESSERA_UNROLL
      for (int i = 0; i < kGroup; ++i) {
        Part row[kParts];
        load(out + i * dim_v, row);
        TESSERA_UNROLL
        for (int p = 0; p < kParts; ++p) row[p] = row[p] * factor[i] + sum[i][p];
        store(row, out + i * dim_v);
      }
    });
  });
}

// Divides by the sums and writes. A row that saw nothing gives 0 whatever the values were.
template <class Element, int kWidth>
KOKKOS_FUNCTION void ForwardKernel<Element, kWidth>::finish(const Member& team,
                                                            const Block& b) const {
  const int dim_v = static_cast<int>(a_.dim_v);
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, b.rows), [&](int i) {
    State state = kernel::empty_state<Lanes>();
    bool seen = false;
    float factor = 0;
    if (i < b.live) {
      state = {b.max[i], b.sum[i]};
      seen = state.sum != 0.0f && a_.dropout.threshold < 65536u;
      factor = a_.dropout.keep_scale();
      if (a_.sinks != nullptr) {
        factor *= kernel::add_sink<Lanes>(
            state, kernel::to_base2<Lanes>(a_.sinks[b.head * a_.sinks_head]));
      }
      factor *= kernel::inverse_sum<Lanes>(state);
    }
    const float* const out = b.out + i * dim_v;
    const Index seq = b.sequence.query + b.row_first + i;
    Element* const row = at(a_.out, b.sequence.batch, b.head, seq);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, dim_v),
                         [&](int d) { row[d].store(seen ? out[d] * factor : 0.0f); });
    if (a_.lse.data != nullptr) {
      Kokkos::single(Kokkos::PerThread(team), [&] {
        a_.lse.data[b.sequence.batch * a_.lse.batch + b.head * a_.lse.head + seq * a_.lse.seq] =
            kernel::log_sum_exp(state.max, state.sum);
      });
    }
  });
}

}  // namespace tessera::kokkos::generic
