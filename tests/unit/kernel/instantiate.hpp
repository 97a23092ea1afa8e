#pragma once
// Calls everything in core/kernel once, with one Lanes policy: what has to compile wherever
// core/kernel does.

#include "core/kernel/arguments.hpp"
#include "core/kernel/convert.hpp"
#include "core/kernel/lanes.hpp"
#include "core/kernel/mask.hpp"
#include "core/kernel/modifiers.hpp"
#include "core/kernel/philox.hpp"
#include "core/kernel/sequence.hpp"
#include "core/kernel/softmax.hpp"
#include "core/kernel/split.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::kernel {

// One task of one row a lane over keys of one dimension, written to out[0], out[1].
template <class L>
TESSERA_FN void compute_task(const ForwardArguments& a, Index task, Index* prefix,
                             typename L::Index lane, typename L::Value (&out)[2]) {
  using Value = typename L::Value;
  constexpr Index kTile = 16;
  if (a.packed()) build_key_block_prefix(a, kTile, prefix);
  const Index key_tasks = key_work_order(a, kTile, prefix).size();
  if (a.packed()) build_block_prefix(a, kTile, prefix);
  const WorkItem item = work_order(a, kTile, prefix).item(task % key_tasks);
  const Sequence s = sequence(a, item.batch);
  const Index row_first = item.block * kTile, row_last = smaller(row_first + kTile, s.rows);
  const ScoreModifiers modifiers = score_modifiers(a, item.batch, item.head);
  const DropoutStream stream = dropout_stream(a.dropout, a.head_q, item.batch, item.head);
  const float* key = static_cast<const float*>(a.key.data) + key_head(a, item.head) * a.key.head;
  const KeySplit split = split_keys(s.keys, kTile, a.batch * a.head_q);
  const Interval<Index> part = split.part(0);
  const LoopSplit loop = split_loop(s.band, row_first, row_last, kTile);

  SoftmaxState<Value> state = empty_state<L>();
  for (Index t = loop.first; t < loop.last; ++t) {
    const Index key_first = t * kTile;
    if (classify(s.band, row_first, row_last, key_first, key_first + kTile) == TileClass::Skip)
      continue;
    const Interval<typename L::Index> see =
        relative_to(s.band, row_first, key_first).template row<L>(lane);
    const TileDistance tile = distance_to(s.diagonal, row_first, key_first);
    for (int j = 0; j < kTile && key_first + j < part.end; ++j) {
      typename L::Bits words[4];
      draw<L>(stream, dropout_rows<L>(row_first, lane),
              static_cast<std::uint32_t>((key_first + j) / 8), words);
      const typename L::Predicate keep = kept<L>(stream, words, static_cast<std::uint32_t>(j));
      Value score = modify<L>(modifiers, L::broadcast(key[key_first + j]), tile, lane, L::whole(j),
                              L::broadcast(1.0f), keep);
      score = hide<L>(score, see, L::whole(j));
      const Value factor = advance<L>(state, observe<L>(L::broadcast(kMinusInfinity), score)) *
                           advance_lazily<L>(state, score);
      const Value p = weight<L>(score, origin<L>(state.max));
      state.sum = state.sum + p;
      out[0] = out[0] * factor + L::select(keep, p, L::broadcast(0.0f));
    }
  }
  SoftmaxState<Value> other = merge_parts<L>(&state, 1);
  out[0] = out[0] * part_factor<L>(other, state) * merge<L>(state, other).a;
  out[0] = out[0] * add_sink<L>(state, to_base2<L>(L::broadcast(a.sinks[item.head]))) *
           inverse_sum<L>(state);
  out[1] = L::broadcast(
      log_sum_exp(1.0f, 2.0f) + fp16_to_float(float_to_fp16(1.5f)) +
      bf16_to_float(float_to_bf16(static_cast<float>(s.band.seeing(3, 5, s.rows).end))) +
      static_cast<float>(s.band.all_of(row_first, row_last).end) * a.dropout.keep_scale());
}

}  // namespace tessera::kernel
