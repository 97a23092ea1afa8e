#pragma once
// Split-KV: where there are too few rows to keep a machine busy, the keys of a row are cut into
// parts that are computed apart, as one softmax state and one unnormalised O each (fp32), and
// merged.
//
//     keys   0 ─────────────────────────────────────── keys       tile multiples inside, the end
//     ragged part   │    0    │     1     │    2    │     3     │
//
// The cut depends on the shape alone, never on the number of threads, and states are merged in the
// order of the parts: results are reproducible. A part whose keys a row does not see leaves the
// empty state, which changes nothing.

#include "core/kernel/arguments.hpp"
#include "core/kernel/macros.hpp"
#include "core/kernel/mask.hpp"
#include "core/kernel/softmax.hpp"

namespace tessera::kernel {

inline constexpr Index kMinPart = 512;      // keys: below, merging costs more than it spares
inline constexpr Index kMaxParts = 64;      // bounds the workspace
inline constexpr Index kEnoughTasks = 256;  // more tasks than that need no split

struct KeySplit {
  Index keys = 0;
  Index tile = 1;
  Index parts = 1;

  // Keys of part i of [0, parts). Neighbours touch; lengths differ by at most two tiles.
  TESSERA_FN constexpr Interval<Index> part(Index i) const {
    return {boundary(i), i + 1 == parts ? keys : boundary(i + 1)};
  }

 private:
  // Whole tiles are dealt evenly: i · (tiles / parts), without a product that could overflow.
  TESSERA_FN constexpr Index boundary(Index i) const {
    const Index tiles = keys / tile;
    return (i * (tiles / parts) + i * (tiles % parts) / parts) * tile;
  }
};

// `keys` of a sequence in tiles of `tile` keys; `tasks`: what else runs at the same time, (batch,
// head, row block)s. To make a row's bits independent of the batch, pass those of its own sequence.
TESSERA_FN constexpr KeySplit split_keys(Index keys, Index tile, Index tasks) {
  const Index shortest = (kMinPart + tile - 1) / tile;  // tiles
  const Index wanted = (kEnoughTasks + larger(tasks, 1) - 1) / larger(tasks, 1);
  const Index parts = smaller(smaller(wanted, kMaxParts), keys / tile / shortest);
  return {keys, tile, larger(parts, 1)};
}

// Union of the states of a row's parts, part 0 first. NaN in one is NaN in all.
template <class L>
TESSERA_FN SoftmaxState<typename L::Value> merge_parts(
    const SoftmaxState<typename L::Value>* states, Index parts) {
  SoftmaxState<typename L::Value> all = empty_state<L>();
  for (Index i = 0; i < parts; ++i) all.max = L::max(all.max, states[i].max);
  const auto zero = origin<L>(all.max);
  for (Index i = 0; i < parts; ++i)
    all.sum = L::fma(states[i].sum, L::exp2(states[i].max - zero), all.sum);
  return all;
}

// The factor by which a part's O enters the union's: O = Σ factor · O_part, in the order of the
// parts.
template <class L>
TESSERA_FN typename L::Value part_factor(const SoftmaxState<typename L::Value>& all,
                                         const SoftmaxState<typename L::Value>& part) {
  return L::exp2(part.max - origin<L>(all.max));
}

}  // namespace tessera::kernel
