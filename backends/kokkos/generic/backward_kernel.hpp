#pragma once
// The generic backward kernels. None needs another's sums, so that every gradient is written once,
// by one team, in a fixed order:
//
//     kernel           a team                                loops over                    gives
//     RowStatistics    some rows                                                           lse, δ
//     QueryGradient    a block of rows of one query head     tiles of keys                 dQ
//     KeyGradient      a block of keys of one key head       query heads, tiles of rows    dK, dV
//     BiasGradient     a block of the bias's gradient        what it is broadcast over     dbias
//     SinkGradient     one query head                        rows                          dsink

#include "backends/kokkos/generic/bias_gradient.hpp"
#include "backends/kokkos/generic/gradients.hpp"
#include "core/kernel/softmax.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::kokkos::generic {

// --- Statistics of the rows ------------------------------------------------------------------

// The sum of dO∘O runs in the order in which `multiply` adds up dO·V: in a row whose one weight is
// 1, O is V and dS is 0 to the bit.
template <class Element>
class RowStatistics {
 public:
  explicit RowStatistics(const Gradients& gradients) : g_(gradients) {}

  TESSERA_FN static Index rows(const kernel::ForwardArguments& a) {
    return (a.packed() ? 1 : a.batch) * a.head_q * a.total_q;
  }
  static Index tasks(const kernel::ForwardArguments& a) {
    return kernel::count_blocks(rows(a), kRows);
  }
  // Of scratch memory: a sum a row and run.
  TESSERA_FN static std::size_t bytes(Index dim_v) {
    return static_cast<std::size_t>(kRows * kernel::count_blocks(dim_v, kRun)) * sizeof(float);
  }

  KOKKOS_FUNCTION void operator()(const Member& team, Index task, float* sums) const {
    const int runs = static_cast<int>(kernel::count_blocks(g_.arguments.forward.dim_v, kRun));
    const Index row_first = task * kRows;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, kRows),
                         [&](int i) { compute(team, row_first + i, runs, sums + i * runs); });
  }

 private:
  KOKKOS_FUNCTION void compute(const Member& team, Index row, int runs, float* sums) const {
    const kernel::BackwardArguments& b = g_.arguments;
    const kernel::ForwardArguments& a = b.forward;
    if (row >= rows(a)) return;
    const Index seq = row % a.total_q, head = row / a.total_q % a.head_q;
    const Index batch = row / a.total_q / a.head_q;
    const int dim_v = static_cast<int>(a.dim_v);
    const Element* const out = row_of<Element>(a.out, batch, head, seq);
    const Element* const dout = row_of<Element>(b.dout, batch, head, seq);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, runs), [&](int run) {
      float sum = 0;
      for (int d = run * kRun; d < run * kRun + kRun && d < dim_v; ++d)
        sum += dout[d * b.dout_column].load() * out[d].load();
      sums[run] = sum;
    });
    Kokkos::single(Kokkos::PerThread(team), [&] {
      float delta = 0;
      for (int run = 0; run < runs; ++run) delta += sums[run];
      const auto at = [&](const auto& operand) {
        return batch * operand.batch + head * operand.head + seq * operand.seq;
      };
      const float lse = a.lse.data[at(a.lse)];
      g_.statistics.lse[row] =
          lse == kernel::kMinusInfinity ? -kernel::kMinusInfinity : kernel::to_base2<Lanes>(lse);
      g_.statistics.delta[row] = b.dlse.data != nullptr ? delta - b.dlse.data[at(b.dlse)] : delta;
    });
  }

  Gradients g_;
};

// --- dQ --------------------------------------------------------------------------------------

template <class Element, int kWidth>
class QueryGradient : GradientKernel<Element, kWidth> {
 public:
  TESSERA_FN static Index sums(Index dim, Index) { return kRows * dim; }

  QueryGradient(const Gradients& gradients, const kernel::WorkOrder& order)
      : Base(gradients, sums(gradients.arguments.forward.dim, 0)), order_(order) {}

  KOKKOS_FUNCTION void operator()(const Member& team, Index task, float* scratch) const;

 private:
  using Base = GradientKernel<Element, kWidth>;
  kernel::WorkOrder order_;  // of blocks of kRows rows
};

template <class Element, int kWidth>
KOKKOS_FUNCTION void QueryGradient<Element, kWidth>::operator()(const Member& team, Index task,
                                                                float* scratch) const {
  const kernel::ForwardArguments& a = this->a();
  if (task >= order_.size()) return;
  const kernel::WorkItem item = order_.item(task);
  const kernel::Sequence s = kernel::sequence(a, item.batch);
  const Index row_first = item.block * kRows;
  const int rows = static_cast<int>(kernel::smaller(s.rows - row_first, kRows));
  if (rows <= 0) return;
  const int live = static_cast<int>(kernel::clamp_index(s.query_end - row_first, 0, rows));
  const int dim = this->dim();
  const Head head = head_of(a, item.batch, item.head);
  const Index key_head = kernel::key_head(a, item.head);

  const auto m = this->open(team, scratch);
  this->load_rows(team, m, s, item.head, row_first, live);
  const kernel::LoopSplit loop = kernel::split_loop(s.band, row_first, row_first + live, kKeys);
  for (Index step = loop.first; step < loop.last; ++step) {
    const Tile tile = tile_of(s, row_first, live, step * kKeys);
    this->load_keys(team, m, s, key_head, tile.key_first, tile.from, tile.to);
    this->compute(team, m, head, tile, Of::Product);
    load_slots<Element>(team, a.key, s.batch, key_head, s.key + tile.key_first, tile.from, tile.to,
                        dim, m.key);  // no longer transposed
    team.team_barrier();
    accumulate<kWidth>(team, {m.gradient, kKeys, 1}, 0, groups_of(live), tile.from, tile.to, m.key,
                       dim, m.sum, m.rest);
    team.team_barrier();
  }
  team.team_barrier();
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int i) {
    // A row that sees nothing gives 0 whatever the keys of its tiles were.
    const bool sees = i < live && m.lse[i] != -kernel::kMinusInfinity;
    const Index seq = s.query + row_first + i;
    Element* const dq = row_of<Element>(this->b().dq, s.batch, item.head, seq);
    if (sees) {
      this->store_row(team, m.sum + i * dim, a.scale, dim, dq);
    } else {
      this->clear_row(team, dim, dq);
    }
  });
}

// --- dK, dV ----------------------------------------------------------------------------------

template <class Element, int kWidth>
class KeyGradient : GradientKernel<Element, kWidth> {
 public:
  TESSERA_FN static Index sums(Index dim, Index dim_v) { return kKeys * (dim + dim_v); }

  KeyGradient(const Gradients& gradients, const kernel::WorkOrder& order)
      : Base(gradients, sums(gradients.arguments.forward.dim, gradients.arguments.forward.dim_v)),
        order_(order) {}

  KOKKOS_FUNCTION void operator()(const Member& team, Index task, float* scratch) const;

 private:
  using Base = GradientKernel<Element, kWidth>;
  kernel::WorkOrder order_;  // of blocks of kKeys keys
};

template <class Element, int kWidth>
KOKKOS_FUNCTION void KeyGradient<Element, kWidth>::operator()(const Member& team, Index task,
                                                              float* scratch) const {
  const kernel::ForwardArguments& a = this->a();
  if (task >= order_.size()) return;
  const kernel::WorkItem item = order_.item(task);
  const kernel::Sequence s = kernel::sequence(a, item.batch);
  const Index key_first = item.block * kKeys;
  // Padding behind the sequence has gradients, too; packed, the next segment lies there.
  const Index key_last = kernel::smaller(key_first + kKeys, a.packed() ? s.keys : a.seq_k);
  const kernel::Interval<Index> rows = s.band.seeing(key_first, key_last, s.query_end);
  const int dim = this->dim(), dim_v = this->dim_v();
  const Index group = a.head_q / a.head_k;

  const auto m = this->open(team, scratch);
  float* const dk = m.sum;
  float* const dv = m.sum + kKeys * dim;
  float* const dk_rest = m.rest;
  float* const dv_rest = m.rest + kKeys * dim;
  const kernel::Interval<Index> keys = kernel::within({s.band.begin, s.band.end}, key_first, kKeys);
  this->load_keys(team, m, s, item.head, key_first, static_cast<int>(keys.begin),
                  static_cast<int>(keys.end));
  for (Index h = item.head * group; h < (item.head + 1) * group; ++h) {
    const Head head = head_of(a, item.batch, h);
    for (Index row_first = rows.begin; row_first < rows.end; row_first += kRows) {
      const int count = static_cast<int>(kernel::smaller(rows.end - row_first, kRows));
      const Tile tile = tile_of(s, row_first, count, key_first);
      this->load_rows(team, m, s, h, row_first, count);
      this->compute(team, m, head, tile, Of::Product);
      const int first = tile.from / kGroup, last = groups_of(tile.to);
      accumulate<kWidth>(team, {m.weight, 1, kKeys}, first, last, 0, count, m.dout, dim_v, dv,
                         dv_rest);
      accumulate<kWidth>(team, {m.gradient, 1, kKeys}, first, last, 0, count, m.query, dim, dk,
                         dk_rest);
      team.team_barrier();
    }
  }
  team.team_barrier();
  const int count = static_cast<int>(key_last - key_first);
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [&](int j) {
    const Index seq = s.key + key_first + j;
    Element* const to_dk = row_of<Element>(this->b().dk, s.batch, item.head, seq);
    Element* const to_dv = row_of<Element>(this->b().dv, s.batch, item.head, seq);
    const kernel::Interval<Index> seen_by = s.band.column(key_first + j, s.query_end);
    if (seen_by.begin < seen_by.end) {
      this->store_row(team, dk + j * dim, a.scale, dim, to_dk);
      this->store_row(team, dv + j * dim_v, a.dropout.keep_scale(), dim_v, to_dv);
    } else {  // its sums may be products of 0 and no number
      this->clear_row(team, dim, to_dk);
      this->clear_row(team, dim_v, to_dv);
    }
  });
}

// --- dsink -----------------------------------------------------------------------------------

// Σ P_sink·(dlse − D): a team of one thread a head.
class SinkGradient {
 public:
  explicit SinkGradient(const Gradients& gradients) : g_(gradients) {}

  KOKKOS_FUNCTION void operator()(const Member& team, Index head, float* /*scratch*/) const {
    const kernel::BackwardArguments& b = g_.arguments;
    const kernel::ForwardArguments& a = b.forward;
    const float sink = a.sinks[head * a.sinks_head];
    double total = 0;
    for (Index batch = 0; batch < a.batch && sink != kernel::kMinusInfinity; ++batch) {
      const kernel::Sequence s = kernel::sequence(a, batch);
      const float* const delta = g_.statistics.delta + statistics_at(a, s, head);
      const float* const lse =
          a.lse.data + s.batch * a.lse.batch + head * a.lse.head + s.query * a.lse.seq;
      double part = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, s.query_end),
          [&](Index row, double& sum) {
            sum -= kernel::sink_probability(sink, lse[row * a.lse.seq]) *
                   static_cast<double>(delta[row]);
          },
          part);
      total += part;
    }
    Kokkos::single(Kokkos::PerTeam(team),
                   [&] { b.dsink[head * b.dsink_head] = static_cast<float>(total); });
  }

 private:
  Gradients g_;
};

}  // namespace tessera::kokkos::generic
