#pragma once
// Tasks of the backward pass, from tensors to tensors.

#include <type_traits>

#include "backends/kokkos/vector/backward.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

// Calls f with the rows of dO from `first` on.
template <class T, class F>
TESSERA_FN void with_dout(const kernel::BackwardArguments& b, Index batch, Index head, Index first,
                          F f) {
  const Rows<T> rows = rows_of<T>(b.dout, batch, head, first);
  if (b.dout_column == 0) {
    f(RepeatedRows<T>{rows.data, rows.stride});
  } else {
    f(rows);
  }
}

// --- Row statistics
// ---------------------------------------------------------------------------------

// dO·O runs over the columns in the order in which dO·V is summed: where one key has the whole
// weight O is V, and the gradient of its score exactly 0.
template <class T, class Dout>
TESSERA_FN void compute_rows(const RowsTask& task, const Dout& dout) {
  const kernel::BackwardArguments& b = *task.arguments;
  const kernel::ForwardArguments& a = b.forward;
  const kernel::Sequence& s = *task.sequence;
  const Rows<T> out = rows_of<T>(a.out, s.batch, task.head, s.query);
  const Index last = smaller(task.row_last, s.query_end);
  for (Index first = task.row_first; first < last; first += 8) {
    Float8 sum{};
    for (Index column = 0; column < a.dim_v; column += 8) {
      Float8 o[8], g[8];
      load_transposed(out, first, 0, last, column, o);
      load_transposed(dout, first, 0, last, column, g);
      TESSERA_UNROLL
      for (int i = 0; i < 8; ++i) sum += o[i] * g[i];
    }
    for (Index row = first; row < smaller(first + 8, last); ++row) {
      const Index at = s.query + row;
      float delta = sum[row - first];
      if (b.dlse.data) {
        delta -= b.dlse.data[s.batch * b.dlse.batch + task.head * b.dlse.head + at * b.dlse.seq];
      }
      const float lse = a.lse.data[s.batch * a.lse.batch + task.head * a.lse.head + at * a.lse.seq];
      task.lse[row] = lse == kernel::kMinusInfinity ? -kernel::kMinusInfinity
                                                    : kernel::to_base2<kernel::ScalarLanes>(lse);
      task.delta[row] = delta;
    }
  }
}

template <class T>
static void rows_task(const RowsTask& task) {
  const kernel::Sequence& s = *task.sequence;
  with_dout<T>(*task.arguments, s.batch, task.head, s.query,
               [&](const auto& dout) { compute_rows<T>(task, dout); });
}

// --- Packing
// ----------------------------------------------------------------------------------------

// Strips of [row][column], see each_strip; `columns` rounded up to whole vectors and `count` to
// `lanes` with zeros.
template <class Source>
TESSERA_FN void pack_rows(const Source& source, Index count, Index columns, Index lanes,
                          float* to) {
  constexpr Index kPiece = kWidth >= 8 ? 8 : 4;
  each_strip(whole_vectors(columns), [&](auto vectors, Index at) {
    for (Index row = 0; row < lanes; ++row) {
      for (Index column = at; column < at + vectors.value * kWidth;
           column += kPiece, to += kPiece) {
        const Float8 eight =
            row < count && column < columns ? source.at(row, column / 8 * 8) : Float8{};
        if constexpr (kPiece == 8) {
          store_as(to, eight);
        } else {
          store_as(to, column % 8 == 0 ? Float4(__builtin_shufflevector(eight, eight, 0, 1, 2, 3))
                                       : Float4(__builtin_shufflevector(eight, eight, 4, 5, 6, 7)));
        }
      }
    }
  });
}

template <class T, int kV>
static void pack_gradient_panel(const kernel::BackwardArguments& b, const kernel::Sequence& s,
                                Index head, float scale, const float* lse, const float* delta,
                                bool with_rows, const GradientPanel<kV>& panel) {
  constexpr Index kLanes = GradientPanel<kV>::kLanes;
  const kernel::ForwardArguments& a = b.forward;
  const Rows<T> query = rows_of<T>(a.query, s.batch, head, s.query + panel.row);
  pack_panel(query, panel.count, a.dim, scale, kLanes, const_cast<float*>(panel.query));
  with_dout<T>(b, s.batch, head, s.query + panel.row, [&](const auto& dout) {
    pack_panel(dout, panel.count, a.dim_v, 1.0f, kLanes, const_cast<float*>(panel.dout));
    if (with_rows) {
      pack_rows(dout, panel.count, a.dim_v, kLanes, const_cast<float*>(panel.dout_rows));
    }
  });
  if (with_rows) {
    pack_rows(query, panel.count, a.dim, kLanes, const_cast<float*>(panel.query_rows));
    for (Index i = 0; i < kLanes * a.dim; i += kWidth) {
      store(panel.dq + i, Float{});
      if (panel.earlier) store(panel.earlier + i, Float{});
    }
  }
  auto* to_lse = const_cast<float*>(panel.lse);
  auto* to_delta = const_cast<float*>(panel.delta);
  for (Index i = 0; i < kLanes; ++i) {
    to_lse[i] = i < panel.count ? lse[panel.row + i] : -kernel::kMinusInfinity;
    to_delta[i] = i < panel.count ? delta[panel.row + i] : 0.0f;
  }
}

// --- One panel and one block
// ------------------------------------------------------------------------

TESSERA_FN constexpr Index whole_groups(Index keys) { return round_up(keys, Index{kGroup}); }

// Weights and gradients of the panel and the block. Returns the keys [begin, end) that they are
// there for, whole groups up to where `end` is rounded; begin >= end: none.
template <int kV, Flavour kFlavour, bool kScore>
static kernel::Interval<Index> gradients(const kernel::BackwardArguments& b,
                                         const kernel::Sequence& s, Index batch, Index head,
                                         const GradientPanel<kV>& panel, const GradientBlock& block,
                                         const GradientPass& pass) {
  const kernel::ForwardArguments& a = b.forward;
  const Index last = panel.row + panel.count;
  const auto any = kernel::within(s.band.any_of(panel.row, last), block.first, block.count);
  if (any.begin >= any.end) return {0, 0};
  const Index from = any.begin / kGroup * kGroup, to = any.end;
  kernel::Interval<Int> see[kV];
  const kernel::TileBand tile_band = kernel::relative_to(s.band, panel.row, block.first);
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) see[v] = tile_band.row<Lanes>(iota() + Lanes::whole(v * kWidth));
  if constexpr (kFlavour == Flavour::Plain) {
    const auto all = kernel::within(s.band.all_of(panel.row, last), block.first, block.count);
    const Index whole_from = smaller(larger((all.begin + kGroup - 1) / kGroup * kGroup, from), to);
    const Index whole_to = larger(smaller(all.end / kGroup * kGroup, to), whole_from);
    plain_gradients<kV, true>(panel, block, a.dim, a.dim_v, from, whole_from, see, pass);
    plain_gradients<kV, false>(panel, block, a.dim, a.dim_v, whole_from, whole_to, see, pass);
    plain_gradients<kV, true>(panel, block, a.dim, a.dim_v, whole_to, to, see, pass);
  } else {
    const Index end = whole_groups(to);
    store_products<kV>(block.key_groups, panel.query, a.dim, from, end, pass.weight);
    store_products<kV>(block.value_groups, panel.dout, a.dim_v, from, end, pass.gradient);
    modify_gradients<kV, kScore>(b, s, batch, head, panel, block, from, end, see, pass);
  }
  return {from, to};
}

// --- Tasks
// ------------------------------------------------------------------------------------------

template <class T>
TESSERA_FN void clear_rows_of(const kernel::Operand<void>& operand, Index batch, Index head,
                              Index first, Index last, Index columns) {
  const Rows<T> rows = rows_of<T>(operand, batch, head, 0);
  for (Index row = first; row < last; ++row) {
    for (Index column = 0; column < columns; column += 8)
      store8(const_cast<T*>(rows[row]) + column, Float8{});
  }
}

// Panels whose weights and gradients wait for one another before dK and dV are added to.
inline constexpr Index kTogether = kRowsTogether / kPanel;

TESSERA_FN void clear_keys(const GradientRows& panel, Index first, Index last) {
  for (Index i = first * kPanel; i < last * kPanel; i += kWidth) {
    store(panel.weight + i, Float{});
    store(panel.gradient + i, Float{});
  }
}

// dV and dK of the block += what `count` panels give.
static void add_key_gradients(const GradientBlock& block, Index dim, Index dim_v,
                              const GradientRows* panels, Index count) {
  Index from = panels[0].from, to = panels[0].to;
  for (Index p = 1; p < count; ++p) {
    from = smaller(from, panels[p].from);
    to = larger(to, panels[p].to);
  }
  for (Index p = 0; p < count; ++p) {
    const GradientRows& panel = panels[p];
    // A tile that holds the first or the last key that a panel sees holds others, too.
    clear_keys(panel, larger(from, panel.from - kTallRows), panel.from);
    clear_keys(panel, panel.to, smaller(to, panel.to + kTallRows));
  }
  add_key_gradient<true>(block.dv, whole_vectors(dim_v), panels, count, from, to);
  add_key_gradient<false>(block.dk, whole_vectors(dim), panels, count, from, to);
}

// Of panel `waiting` of those that wait for one another.
TESSERA_FN GradientPass gradient_pass(const GradientScratch& at, float* scratch, Index waiting,
                                      Index keys) {
  const Index skip = waiting * (keys + 8) * kPanel;
  return {scratch + at.weight + skip, scratch + at.gradient + skip, scratch + at.bias,
          scratch + at.mask};
}

template <int kV>
TESSERA_FN GradientPanel<kV> gradient_panel(const GradientScratch& at, float* scratch, Index index,
                                            Index dim, Index dim_v, Index row, Index row_last,
                                            bool by_stretches) {
  return {scratch + at.query + index * kPanel * dim,
          scratch + at.dout + index * kPanel * dim_v,
          scratch + at.rows + index * kPanel * gradient_columns(dim),
          scratch + at.rows_v + index * kPanel * gradient_columns(dim_v),
          scratch + at.lse + index * kPanel,
          scratch + at.delta + index * kPanel,
          scratch + at.dq + index * kPanel * dim,
          by_stretches ? scratch + at.earlier + index * kPanel * dim : nullptr,
          row,
          smaller(kPanel, row_last - row)};
}

// Rows that see nothing: their dQ is 0 by selection, a product of 0 and a key that is no number may
// stand there.
template <int kV>
TESSERA_FN void clear_blind_rows(const GradientPanel<kV>& panel, Index dim) {
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) {
    const Int blind = load(panel.lse + v * kWidth) == broadcast(-kernel::kMinusInfinity);
    if (!Lanes::any(blind)) continue;
    for (Index column = 0; column < dim; ++column) {
      float* const dq = panel.dq + (column * kV + v) * kWidth;
      store(dq, Lanes::select(blind, Float{}, load(dq)));
    }
  }
}

// Rows [row_first, row_last) of one query head against all keys that they see.
template <class T, Flavour kFlavour>
static void backward_chunk(const BackwardTask& task, Index head, Index row_first, Index row_last) {
  const kernel::BackwardArguments& b = *task.arguments;
  const kernel::ForwardArguments& a = b.forward;
  const kernel::Sequence& s = *task.sequence;
  const Blocking& blocking = task.blocking;
  const GradientScratch at =
      gradient_layout(blocking, a.dim, a.dim_v, kFlavour == Flavour::General, task.by_stretches);
  float* const scratch = task.scratch;
  const Index statistics = (s.batch * a.head_q + head) * a.total_q + s.query;
  const auto each_panel = [&](auto f) {
    for (Index row = row_first; row < row_last; row += kPanel) {
      with_vectors(row_last - row, [&](auto vectors) {
        f(gradient_panel<decltype(vectors)::value>(at, scratch, (row - row_first) / kPanel, a.dim,
                                                   a.dim_v, row, row_last, task.by_stretches));
      });
    }
  };
  const float scale = kFlavour == Flavour::Plain ? a.scale * kernel::kLog2E : 1.0f;
  each_panel([&](const auto& panel) {
    pack_gradient_panel<T>(b, s, head, scale, task.lse + statistics, task.delta + statistics, true,
                           panel);
  });

  const kernel::Interval<Index> any = s.band.any_of(row_first, row_last);
  float* const dk = task.sums;
  float* const dv = task.sums + (s.keys + 8) * gradient_columns(a.dim);
  for (Index start = any.begin / blocking.keys * blocking.keys; start < any.end;
       start += blocking.keys) {
    const Index first = larger(start, any.begin / 8 * 8);
    const Index last = smaller(start + blocking.keys, any.end);
    const Index readable = larger(0, s.band.begin - first);
    const GradientBlock block{scratch + at.key,
                              scratch + at.value,
                              scratch + at.columns,
                              first,
                              last - first,
                              blocking.keys,
                              dk + first * whole_vectors(a.dim),
                              dv + first * whole_vectors(a.dim_v)};
    const Rows<T> key = rows_of<T>(a.key, s.batch, task.key_head, s.key + first);
    const Rows<T> value = rows_of<T>(a.value, s.batch, task.key_head, s.key + first);
    pack_keys(key, readable, block.count, a.dim, scratch + at.key);
    pack_keys(value, readable, block.count, a.dim_v, scratch + at.value);
    pack_values(key, readable, block.count, a.dim, blocking.keys, scratch + at.columns);
    GradientRows together[kTogether];
    Index waiting = 0;
    const auto add_waiting = [&] {
      add_key_gradients(block, a.dim, a.dim_v, together, waiting);
      waiting = 0;
    };
    each_panel([&](const auto& panel) {
      constexpr int kV = std::remove_cvref_t<decltype(panel)>::kVectorCount;
      const GradientPass pass = gradient_pass(at, scratch, waiting, blocking.keys);
      if constexpr (kFlavour == Flavour::General) {
        load_modifiers<T>(a, task.batch, head, panel.row, panel.count, block.first, block.count,
                          panel.kLanes, pass.bias, pass.mask);
      }
      const auto keys = gradients<kV, kFlavour, false>(b, s, task.batch, head, panel, block, pass);
      if (keys.begin >= keys.end) return;
      add_query_gradient<kV>(panel, block, a.dim, keys.begin, keys.end, pass.gradient);
      together[waiting++] = {pass.weight, pass.gradient, panel.query_rows, panel.dout_rows,
                             panel.count, panel.kLanes,  keys.begin,       whole_groups(keys.end)};
      if (waiting == kTogether) add_waiting();
    });
    if (waiting > 0) add_waiting();
    if (task.by_stretches && (start + blocking.keys) % kStretchKeys == 0)
      each_panel([&](const auto& panel) { end_stretch(panel, a.dim); });
  }
  float* const factor = scratch + at.weight;
  each_panel([&](const auto& panel) {
    constexpr Index kLanes = std::remove_cvref_t<decltype(panel)>::kLanes;
    if (panel.earlier) {
      end_stretch(panel, a.dim);
      for (Index i = 0; i < kLanes * a.dim; i += kWidth)
        store(panel.dq + i, load(panel.earlier + i) + load(panel.dq + i));
    }
    clear_blind_rows(panel, a.dim);
    for (Index i = 0; i < kLanes; i += kWidth) store(factor + i, broadcast(a.scale));
    const Rows<T> dq = rows_of<T>(b.dq, s.batch, head, s.query + panel.row);
    unpack_panel(panel.dq, factor, kLanes, panel.count, a.dim, const_cast<T*>(dq.data), dq.stride);
  });
}

template <class T, Flavour kFlavour>
static void backward_task(const BackwardTask& task) {
  const kernel::BackwardArguments& b = *task.arguments;
  const kernel::ForwardArguments& a = b.forward;
  const kernel::Sequence& s = *task.sequence;
  for (Index i = 0; i < gradient_sums(s.keys, a.dim, a.dim_v); i += 8)
    store_as(task.sums + i, Float8{});
  const Index rows = task.blocking.panel * task.blocking.panels, group = a.head_q / a.head_k;
  Index chunk = 0;
  for (Index head = task.key_head * group; head < (task.key_head + 1) * group; ++head) {
    for (Index first = 0; first < s.rows; first += rows, ++chunk) {
      if (chunk % task.parts != task.part) continue;
      const Index last = smaller(first + rows, s.rows), seeing = smaller(last, s.query_end);
      clear_rows_of<T>(b.dq, s.batch, head, s.query + larger(first, seeing), s.query + last, a.dim);
      if (first < seeing) backward_chunk<T, kFlavour>(task, head, first, seeing);
    }
  }
}

// row[column] = factor · Σ_part sums[part][column].
template <class T>
TESSERA_FN void store_sums(const float* sums, Index stride, Index parts, Index columns,
                           float factor, T* row) {
  for (Index column = 0; column < columns; column += 8) {
    Float8 sum = load8(sums + column);
    for (Index part = 1; part < parts; ++part) sum += load8(sums + part * stride + column);
    store8(row + column, sum * factor);
  }
}

template <class T>
static void keys_task(const KeysTask& task) {
  const kernel::BackwardArguments& b = *task.arguments;
  const kernel::ForwardArguments& a = b.forward;
  const kernel::Sequence& s = *task.sequence;
  const Rows<T> dk = rows_of<T>(b.dk, s.batch, task.key_head, s.key);
  const Rows<T> dv = rows_of<T>(b.dv, s.batch, task.key_head, s.key);
  const float* const sums_v = task.sums + (s.keys + 8) * gradient_columns(a.dim);
  const float keep_scale = a.dropout.threshold != 0 ? a.dropout.keep_scale() : 1.0f;
  for (Index key = task.key_first; key < smaller(task.key_last, s.keys); ++key) {
    const auto seen_by = s.band.column(key, s.query_end);
    if (seen_by.begin >= seen_by.end) {  // its sums may be products of 0 and no number
      clear_rows_of<T>(b.dk, s.batch, task.key_head, s.key + key, s.key + key + 1, a.dim);
      clear_rows_of<T>(b.dv, s.batch, task.key_head, s.key + key, s.key + key + 1, a.dim_v);
      continue;
    }
    store_sums(task.sums + key * whole_vectors(a.dim), task.stride, task.parts, a.dim, a.scale,
               const_cast<T*>(dk[key]));
    store_sums(sums_v + key * whole_vectors(a.dim_v), task.stride, task.parts, a.dim_v, keep_scale,
               const_cast<T*>(dv[key]));
  }
  // Padding behind the sequence.
  const Index first = s.key + larger(task.key_first, s.keys), last = s.key + task.key_last;
  clear_rows_of<T>(b.dk, s.batch, task.key_head, first, last, a.dim);
  clear_rows_of<T>(b.dv, s.batch, task.key_head, first, last, a.dim_v);
}

// Adds what one panel gives to the block of the bias's gradient, [key][lanes] or, where all keys
// share a bias, [lanes].
template <int kV>
static void add_bias_gradient(const BiasTask& task, const kernel::Sequence& s, Index batch,
                              Index head, const GradientPanel<kV>& panel,
                              const GradientBlock& block, const GradientPass& pass, float* sum,
                              float* rest) {
  constexpr Index kLanes = GradientPanel<kV>::kLanes;
  const auto keys =
      gradients<kV, Flavour::General, true>(*task.arguments, s, batch, head, panel, block, pass);
  const bool each = task.arguments->dbias.each_column;
  for (Index key = keys.begin; key < keys.end; ++key) {
    for (Index lane = 0; lane < kLanes; lane += kWidth) {
      const Index at = (each ? (block.first + key - task.key_first) * kPanel : 0) + lane;
      Float total = load(sum + at), left = load(rest + at);
      kernel::add_keeping_finite_rest(total, left, load(pass.gradient + key * kPanel + lane));
      store(sum + at, total);
      store(rest + at, left);
    }
  }
}

// Lane sums to the bias's gradient.
template <class T>
static void store_bias_gradient(const BiasTask& task, const float* sum, const float* rest) {
  const kernel::ScoreGradient& d = task.arguments->dbias;
  T* const to = static_cast<T*>(d.data) + task.batch * d.batch + task.head * d.head;
  const Index keys = d.each_column ? task.key_last - task.key_first : 1;
  const Index rows = d.each_row ? task.row_last - task.row_first : 1;
  for (Index row = 0; row < rows; ++row) {
    for (Index key = 0; key < keys; ++key) {
      float value = sum[key * kPanel + row], left = rest[key * kPanel + row];
      for (Index lane = 1; !d.each_row && lane < kPanel; ++lane) {
        left += rest[key * kPanel + lane];
        kernel::add_keeping_finite_rest(value, left, sum[key * kPanel + lane]);
      }
      store1(to + (d.each_row ? (task.row_first + row) * d.row : 0) +
                 (d.each_column ? (task.key_first + key) * d.column : 0),
             value + left);
    }
  }
}

template <class T>
static void bias_task(const BiasTask& task) {
  const kernel::BackwardArguments& b = *task.arguments;
  const kernel::ForwardArguments& a = b.forward;
  const Blocking& blocking = task.blocking;  // one panel
  const GradientScratch at = gradient_layout(blocking, a.dim, a.dim_v, true, false);
  const GradientPass pass = gradient_pass(at, task.scratch, 0, blocking.keys);
  float* const sum = task.scratch + at.sum;
  float* const rest = task.scratch + at.rest;
  for (Index i = 0; i < (blocking.keys + 8) * kPanel; i += 8) {
    store_as(sum + i, Float8{});
    store_as(rest + i, Float8{});
  }
  const Index batches = b.dbias.each_batch ? task.batch + 1 : a.batch;
  const Index heads = b.dbias.each_head ? task.head + 1 : a.head_q;
  for (Index batch = b.dbias.each_batch ? task.batch : 0; batch < batches; ++batch) {
    const kernel::Sequence s = kernel::sequence(a, batch);
    for (Index head = b.dbias.each_head ? task.head : 0; head < heads; ++head) {
      const Index statistics = (s.batch * a.head_q + head) * a.total_q + s.query;
      const Index key_head = kernel::key_head(a, head);
      const Index row_last = smaller(task.row_last, s.query_end);
      for (Index row = task.row_first; row < row_last; row += kPanel) {
        with_vectors(row_last - row, [&](auto vectors) {
          constexpr int kV = decltype(vectors)::value;
          const auto panel =
              gradient_panel<kV>(at, task.scratch, 0, a.dim, a.dim_v, row, row_last, false);
          const auto seen = s.band.any_of(row, row + panel.count);
          const kernel::Interval<Index> any{larger(seen.begin, task.key_first),
                                            smaller(seen.end, task.key_last)};
          if (any.begin >= any.end) return;
          pack_gradient_panel<T>(b, s, head, 1.0f, task.lse + statistics, task.delta + statistics,
                                 false, panel);
          for (Index start = any.begin / blocking.keys * blocking.keys; start < any.end;
               start += blocking.keys) {
            const Index first = larger(start, any.begin / 8 * 8);
            const Index last = smaller(start + blocking.keys, any.end);
            const Index readable = larger(0, s.band.begin - first);
            const GradientBlock block{
                task.scratch + at.key, task.scratch + at.value, nullptr, first,
                last - first,          blocking.keys,           nullptr, nullptr};
            pack_keys(rows_of<T>(a.key, s.batch, key_head, s.key + first), readable, block.count,
                      a.dim, task.scratch + at.key);
            pack_keys(rows_of<T>(a.value, s.batch, key_head, s.key + first), readable, block.count,
                      a.dim_v, task.scratch + at.value);
            load_modifiers<T>(a, batch, head, panel.row, panel.count, block.first, block.count,
                              panel.kLanes, pass.bias, pass.mask);
            add_bias_gradient<kV>(task, s, batch, head, panel, block, pass, sum, rest);
          }
        });
      }
    }
  }
  if (a.bias_fp32) {
    store_bias_gradient<float>(task, sum, rest);
  } else {
    store_bias_gradient<T>(task, sum, rest);
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
