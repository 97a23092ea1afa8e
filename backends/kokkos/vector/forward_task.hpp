#pragma once
// A task from tensors to tensors: packs queries, walks the key blocks, writes outputs and
// log-sum-exps.

#include <type_traits>

#include "backends/kokkos/vector/forward.hpp"
#include "backends/kokkos/vector/modify.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

// Adds one block of keys to one panel. Not a template of the element type: operands are fp32 by
// now.
template <int kV, Flavour kFlavour>
static void add_block(const ForwardTask& task, const Panel<kV>& panel, const KeyBlock& block,
                      const ScorePass& pass, Ahead& ahead) {
  const kernel::ForwardArguments& a = *task.arguments;
  const kernel::Band& band = task.sequence->band;
  const Index last = panel.row + panel.count;
  const auto any = kernel::within(band.any_of(panel.row, last), block.first, block.count);
  if (any.begin >= any.end) return;
  // Whole groups from `from` on; keys from `to` on exist in no result.
  const Index from = any.begin / kKeys * kKeys, to = any.end;
  const Index words = round_up(a.dim, kColumns) / kPair;

  kernel::Interval<Int> see[kV];
  const kernel::TileBand tile_band = kernel::relative_to(band, panel.row, block.first);
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) see[v] = tile_band.row<Lanes>(iota() + Lanes::whole(v * kWidth));

  Float top[kV];
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) top[v] = broadcast(kernel::kMinusInfinity);
  if constexpr (kFlavour == Flavour::Plain) {
    const auto all = kernel::within(band.all_of(panel.row, last), block.first, block.count);
    const Index whole_from = smaller(larger((all.begin + kGroup - 1) / kGroup * kGroup, from), to);
    const Index whole_to = larger(smaller(all.end / kGroup * kGroup, to), whole_from);
    const Float scale = broadcast(a.scale * kernel::kLog2E);
    const auto scores = [&](auto masked, auto long_product, Index begin, Index end) {
      score_groups<kV, masked.value, long_product.value>(panel, block, words, scale, begin, end,
                                                         see, top, pass.score, ahead);
    };
    if (is_long(words)) {
      scores(std::true_type{}, std::true_type{}, from, to);
    } else {
      scores(std::true_type{}, std::false_type{}, from, whole_from);
      scores(std::false_type{}, std::false_type{}, whole_from, whole_to);
      scores(std::true_type{}, std::false_type{}, whole_to, to);
    }
  } else {
    Float unused[kV] = {};
    const auto products = [&](auto long_product) {
      score_groups<kV, false, long_product.value>(panel, block, words, broadcast(1), from, to, see,
                                                  unused, pass.score, ahead);
    };
    if (is_long(words)) {
      products(std::true_type{});
    } else {
      products(std::false_type{});
    }
    if (kPair == 1 && a.accumulate_fp16) round_products<kV>(from, to, pass.score);
    modify_scores<kV>(task, panel, block, pass, from, to, see, top);
  }

  const bool rounds = kPair == 1 && kFlavour == Flavour::General && a.accumulate_fp16;
  State state[kV];
  Float factor[kV], sum[kV] = {};
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) {
    state[v] = {load(panel.max + v * kWidth), load(panel.sum + v * kWidth)};
    factor[v] = kernel::advance_lazily<Lanes>(state[v], top[v], rounds);
  }
  if constexpr (kPair == 2 && kFlavour == Flavour::Plain) {
    join_weights<kV, true>(state, block.first, from, to, pass.score, sum);
  } else {
    weigh<kV>(state, block.first, from, to, pass.score, sum);
    if constexpr (kFlavour == Flavour::General)
      drop_weights<kV>(task, panel, block, pass, from, to);
    if constexpr (kPair == 2)
      join_weights<kV, false>(state, block.first, from, to, pass.score, sum);
  }
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) {
    Float rest = load(panel.rest + v * kWidth) * factor[v];
    kernel::add_keeping_rest(state[v].sum, rest, sum[v]);
    store(panel.rest + v * kWidth, rest);
    store(panel.max + v * kWidth, state[v].max);
    store(panel.sum + v * kWidth, state[v].sum);
  }
  if constexpr (kTiles) {
    accumulate_tiles<kV>(panel, block, a.dim_v, from, to, factor, pass.score);
  } else if (rounds) {
    accumulate<kV, true>(panel, block, a.dim_v, from, to, factor, pass.score);
  } else {
    accumulate<kV>(panel, block, a.dim_v, from, to, factor, pass.score);
  }
}

// Rows that see nothing by position: output 0, log-sum-exp -infinity.
template <class T>
TESSERA_FN void clear_rows(const kernel::ForwardArguments& a, const kernel::Sequence& s,
                           const ForwardTask& task, Index first, Index last) {
  for (Index row = first; row < last; ++row) {
    T* out = const_cast<T*>(rows_of<T>(a.out, s.batch, task.head, s.query + row).data);
    for (Index column = 0; column < a.dim_v; column += 8) store8(out + column, Float8{});
    if (a.lse.data) {
      a.lse.data[s.batch * a.lse.batch + task.head * a.lse.head + (s.query + row) * a.lse.seq] =
          kernel::kMinusInfinity;
    }
  }
}

// Divides a panel by its sums and writes it. Rests are added in the end: blocks without a visible
// key, of which a row's task may have some behind its last one, do that too.
template <class T, int kV, Flavour kFlavour>
static void finish_panel(const ForwardTask& task, const Panel<kV>& panel, float* factor) {
  const kernel::ForwardArguments& a = *task.arguments;
  const kernel::Sequence& s = *task.sequence;
  if (panel.earlier) {
    end_stretch(panel, a.dim_v);
    for (Index i = 0; i < a.dim_v * Panel<kV>::kLanes; i += kWidth)
      store(panel.out + i, load(panel.earlier + i) + load(panel.out + i));
  }
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) {
    State state{load(panel.max + v * kWidth),
                load(panel.sum + v * kWidth) + load(panel.rest + v * kWidth)};
    Float scale = broadcast(1.0f);
    // 0 by selection: a product of weight 0 and a value that is no number may stand there.
    Int nothing = state.sum == Float{};
    if constexpr (kFlavour == Flavour::General) {
      if (a.dropout.threshold == 65536) nothing = Float{} == Float{};
    }
    if (Lanes::any(nothing)) {
      for (Index column = 0; column < a.dim_v; ++column) {
        float* out = panel.out + (column * kV + v) * kWidth;
        store(out, Lanes::select(nothing, Float{}, load(out)));
      }
    }
    if constexpr (kFlavour == Flavour::General) {
      if (a.sinks) {
        const float sink = a.sinks[task.head * a.sinks_head];
        scale = kernel::add_sink<Lanes>(state, kernel::to_base2<Lanes>(broadcast(sink)));
      }
      if (a.dropout.threshold != 0) scale *= broadcast(a.dropout.keep_scale());
    }
    store(panel.max + v * kWidth, state.max);
    store(panel.sum + v * kWidth, state.sum);
    // The factor, too: the inverse of a sum that is no number.
    store(factor + v * kWidth,
          Lanes::select(nothing, Float{}, kernel::inverse_sum<Lanes>(state) * scale));
  }
  const Rows<T> out = rows_of<T>(a.out, s.batch, task.head, s.query + panel.row);
  unpack_panel(panel.out, factor, Panel<kV>::kLanes, panel.count, a.dim_v, const_cast<T*>(out.data),
               out.stride);
  if (a.lse.data) {
    float* lse = a.lse.data + s.batch * a.lse.batch + task.head * a.lse.head +
                 (s.query + panel.row) * a.lse.seq;
    for (Index i = 0; i < panel.count; ++i)
      lse[i * a.lse.seq] = kernel::log_sum_exp(panel.max[i], panel.sum[i]);
  }
}

// [rows, a multiple of 8][kLanes].
template <Index kLanes>
TESSERA_FN void fill_zero(float* to, Index rows) {
  for (Index row = 0; row < rows; row += 8) {
    TESSERA_UNROLL
    for (Index i = 0; i < 8 * kLanes; i += kWidth) store(to + row * kLanes + i, Float{});
  }
}

// The `rows` keys from `first` on, spread over the register tiles of one block.
template <class T>
TESSERA_FN Ahead ahead_of(const ForwardTask& task, Index key_head, Index first, Index rows) {
  const kernel::ForwardArguments& a = *task.arguments;
  const kernel::Sequence& s = *task.sequence;
  const Rows<T> key = rows_of<T>(a.key, s.batch, key_head, s.key + first);
  const Rows<T> value = rows_of<T>(a.value, s.batch, key_head, s.key + first);
  const Index panels = (task.row_last - task.row_first + kPanel - 1) / kPanel;
  Ahead ahead{{key, 0, a.dim}, {value, 0, a.dim_v}, (kGroup + panels - 1) / panels};
  ahead.key.add(rows);
  ahead.value.add(rows);
  return ahead;
}

template <class T, Flavour kFlavour>
static void forward_task(const ForwardTask& task) {
  const kernel::ForwardArguments& a = *task.arguments;
  const kernel::Sequence& s = *task.sequence;
  const Blocking& blocking = task.blocking;
  const Index dim = round_up(a.dim, kColumns), dim_v = round_up(a.dim_v, kColumns);
  const Scratch at = layout(blocking, dim, dim_v, kFlavour == Flavour::General, task.by_stretches);
  float* const scratch = task.scratch;

  const Index row_last = smaller(task.row_last, s.query_end);
  clear_rows<T>(a, s, task, larger(task.row_first, s.query_end), task.row_last);
  if (task.row_first >= row_last) return;

  [[maybe_unused]] const Multiplier multiplier;
  const auto panel_at = [&](Index row, auto vectors) {
    const Index index = (row - task.row_first) / kPanel;
    Panel<decltype(vectors)::value> panel;
    panel.query = scratch + at.query + index * kPanel * dim;
    panel.out = scratch + at.out + index * kPanel * dim_v;
    panel.max = scratch + at.max + index * kPanel;
    panel.sum = scratch + at.sum + index * kPanel;
    panel.rest = scratch + at.rest + index * kPanel;
    panel.earlier = task.by_stretches ? scratch + at.earlier + index * kPanel * dim_v : nullptr;
    panel.earlier_max = scratch + at.earlier_max + index * kPanel;
    panel.row = row;
    panel.count = smaller(kPanel, row_last - row);
    return panel;
  };
  const auto each_panel = [&](auto f) {
    for (Index row = task.row_first; row < row_last; row += kPanel) {
      with_vectors(row_last - row, [&](auto vectors) { f(panel_at(row, vectors)); });
    }
  };

  // The general flavour scales when it modifies.
  [[maybe_unused]] const float scale = kFlavour == Flavour::Plain ? a.scale * kernel::kLog2E : 1.0f;
  each_panel([&](const auto& panel) {
    constexpr Index kLanes = std::remove_cvref_t<decltype(panel)>::kLanes;
    const Rows<T> query = rows_of<T>(a.query, s.batch, task.head, s.query + panel.row);
    if constexpr (kPair == 2) {
      pack_panel_pairs(query, panel.count, a.dim, kLanes, panel.query);
    } else {
      pack_panel(query, panel.count, a.dim, scale, kLanes, panel.query);
    }
    fill_zero<kLanes>(panel.out, dim_v);
    if (panel.earlier) fill_zero<kLanes>(panel.earlier, dim_v);
    for (Index i = 0; i < kLanes; i += kWidth) {
      const State empty = kernel::empty_state<Lanes>();
      store(panel.max + i, empty.max);
      store(panel.sum + i, empty.sum);
      store(panel.rest + i, Float{});
      if (panel.earlier) store(panel.earlier_max + i, empty.max);
    }
  });

  const Index key_head = kernel::key_head(a, task.head);
  const kernel::Interval<Index> any = s.band.any_of(task.row_first, row_last);
  const ScorePass pass{scratch + at.score, scratch + at.bias, scratch + at.mask};
  for (Index start = any.begin / blocking.keys * blocking.keys; start < any.end;
       start += blocking.keys) {
    // Slots before the band's begin are padding: they are neither read nor seen. Whole steps of a
    // product, so that the order in which a row's keys are added does not depend on its task.
    constexpr Index kWhole = larger(Index{8}, kKeys);
    const Index first = larger(start, any.begin / kWhole * kWhole);
    const Index last = smaller(start + blocking.keys, any.end);
    const Index readable = larger(0, s.band.begin - first);
    const KeyBlock block{scratch + at.key, scratch + at.value, first, last - first, blocking.keys};
    const Rows<T> key = rows_of<T>(a.key, s.batch, key_head, s.key + first);
    const Rows<T> value = rows_of<T>(a.value, s.batch, key_head, s.key + first);
    if constexpr (kPair == 2) {
      pack_key_pairs(key, readable, block.count, a.dim, scratch + at.key);
      pack_value_pairs(value, readable, block.count, a.dim_v, blocking.keys, scratch + at.value);
    } else {
      pack_keys(key, readable, block.count, a.dim, scratch + at.key);
      pack_values(value, readable, block.count, a.dim_v, blocking.keys, scratch + at.value);
    }
    Ahead ahead =
        ahead_of<T>(task, key_head, first + block.count, smaller(block.count, any.end - last));
    each_panel([&](const auto& panel) {
      if constexpr (kFlavour == Flavour::General) {
        load_modifiers<T>(a, task.batch, task.head, panel.row, panel.count, block.first,
                          block.count, panel.kLanes, pass.bias, pass.mask);
      }
      add_block<std::remove_cvref_t<decltype(panel)>::kVectorCount, kFlavour>(task, panel, block,
                                                                              pass, ahead);
    });
    if (task.by_stretches && (start + blocking.keys) % kStretchKeys == 0 && last < any.end)
      each_panel([&](const auto& panel) { end_stretch(panel, a.dim_v); });
  }
  each_panel([&](const auto& panel) {
    finish_panel<T, std::remove_cvref_t<decltype(panel)>::kVectorCount, kFlavour>(task, panel,
                                                                                  pass.score);
  });
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
