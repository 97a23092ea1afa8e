#pragma once
// out = softmax(scale · Q Kᵀ) V of one task, queries in SIMD lanes: Sᵀ = K·Qᵀ and Oᵀ = Vᵀ·Pᵀ, so
// that a row's maximum and sum are lane-wise and no register is ever summed across.
//
//     for each block of keys                 K and V copied, dense, in reading order (L2)
//       for each panel of rows               panel: kVectors registers of rows
//         for each group of keys   Sᵀ tile   kGroup keys x panel in registers, maximum on the way;
//                                            to `score` (L1)
//         advance                            factor for what the panel has accumulated
//         weigh                              scores become weights, added to the sum
//         for each group of dims   Oᵀ tile   kGroup dims x panel in registers, scaled by the factor
//                                            first

#include "backends/kokkos/vector/fetch.hpp"
#include "backends/kokkos/vector/pack_pairs.hpp"
#include "backends/kokkos/vector/task.hpp"
#include "core/kernel/mask.hpp"
#include "core/kernel/sequence.hpp"
#include "core/kernel/softmax.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

using kernel::larger;
using kernel::smaller;

using Lanes = VectorLanes;
using State = kernel::SoftmaxState<Float>;

// Row numbers of a vector's lanes.
TESSERA_FN Int iota() {
  Int lanes{};
  TESSERA_UNROLL
  for (int i = 0; i < kWidth; ++i) lanes[i] = i;
  return lanes;
}

// Calls f with the number of vectors that hold `count` rows.
template <int kV>
struct Vectors {
  static constexpr int value = kV;
};
template <class F>
TESSERA_FN void with_vectors(Index count, F f) {
  if (count > 2 * kWidth) {
    f(Vectors<3>{});
  } else if (count > kWidth) {
    f(Vectors<2>{});
  } else {
    f(Vectors<1>{});
  }
}

// One panel of rows and what it shares with the others of its task.
template <int kV>
struct Panel {
  float* query;  // [words of dim][lanes]
  float* out;    // [dim_v][lanes]
  float* max;    // [lanes]
  float* sum;
  Index row = 0;    // first row
  Index count = 0;  // rows; lanes beyond compute something that nobody reads

  static constexpr int kVectorCount = kV;
  static constexpr Index kLanes = kV * kWidth;
};

// A block of keys as packed.
struct KeyBlock {
  const float* key;
  const float* value;
  Index first;     // its key 0
  Index count;     // keys
  Index capacity;  // keys that `value` has room for in each group
};

// Rows of key and value that the next block will pack: fetched into the second-level cache a few at
// a time between register tiles, because packing itself is too short to wait for memory.
struct Ahead {
  Fetch key;
  Fetch value;
  Index per_tile;  // rows a register tile

  TESSERA_FN void fetch() {
    key.fetch_rows(per_tile);
    value.fetch_rows(per_tile);
  }
};

// Scores of keys [from, to) of the block, `words` of an operand a key; `see` hides what the rows do
// not see if kMasked. Raises `top`, the tile maxima.
template <int kV, bool kMasked>
TESSERA_FN void score_groups(const Panel<kV>& panel, const KeyBlock& block, Index words,
                             [[maybe_unused]] Float scale, Index from, Index to,
                             const kernel::Interval<Int> (&see)[kV], Float (&top)[kV], float* score,
                             Ahead& ahead) {
  for (Index key = from; key < to; key += kGroup) {
    ahead.fetch();
    Float tile[kGroup][kV] = {};
    float* const scores = score + key * Panel<kV>::kLanes;
    if constexpr (kTiles) {
      multiply_tiles<kV, false>(scores, block.key + key * words, panel.query, words);
    } else {
      multiply<kV>(tile, block.key + key * words, panel.query, words);
    }
    // The group's own maxima: while a tile takes its registers, `top` lies in memory.
    Float highest[kV];
    TESSERA_UNROLL
    for (int r = 0; r < kGroup; ++r) {
      TESSERA_UNROLL
      for (int v = 0; v < kV; ++v) {
        float* const at = scores + (r * kV + v) * kWidth;
        Float one = kTiles ? load(at) : tile[r][v];
        if constexpr (kPair == 2) one *= scale;  // fp32 queries are scaled when packed
        if constexpr (kMasked)
          one = kernel::hide<Lanes>(one, see[v], Lanes::whole(static_cast<int>(key) + r));
        highest[v] = r == 0 ? one : kernel::observe<Lanes>(highest[v], one);
        store(at, one);
      }
    }
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) top[v] = kernel::observe<Lanes>(top[v], highest[v]);
  }
}

// Scores become weights, which are added to the sums.
template <int kV>
TESSERA_FN void weigh(State (&state)[kV], Index from, Index to, float* score) {
  Float origin[kV];
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) origin[v] = kernel::origin<Lanes>(state[v].max);
  for (Index key = from; key < to; ++key) {
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) {
      float* p = score + (key * kV + v) * kWidth;
      const Float w = kernel::weight<Lanes>(load(p), origin[v]);
      state[v].sum += w;
      store(p, w);
    }
  }
}

// Weights of keys [from, to) become words, [pair of keys][lanes] where the weights of half as many
// keys stood, followed by zeros to whole steps. With kWeigh they are scores yet: see weigh(). The
// score after an odd number of them is hidden then.
template <int kV, bool kWeigh>
TESSERA_FN void join_weights(State (&state)[kV], Index from, Index to, float* score) {
  Float origin[kV];
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) origin[v] = kernel::origin<Lanes>(state[v].max);
  const Index end = from + round_up(to - from, kStep);
  Index key = from;
  for (; key < to; key += 2) {
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) {
      Float first = load(score + (key * kV + v) * kWidth);
      Float second = load(score + ((key + 1) * kV + v) * kWidth);
      if constexpr (kWeigh) {
        first = kernel::weight<Lanes>(first, origin[v]);
        second = kernel::weight<Lanes>(second, origin[v]);
        state[v].sum += first + second;
      } else if (key + 1 == to) {
        second = Float{};
      }
      store(score + (key / 2 * kV + v) * kWidth, pair(first, second));
    }
  }
  for (; key < end; key += 2) {
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) store(score + (key / 2 * kV + v) * kWidth, Float{});
  }
}

// Accumulate::fp16: a product as it is kept.
template <int kV>
TESSERA_FN void round_products(Index from, Index to, float* score) {
  for (Index i = from * kV * kWidth; i < to * kV * kWidth; i += kWidth)
    store(score + i, round_to_fp16(load(score + i)));
}

// Oᵀ = Oᵀ · factor + Vᵀ Pᵀ, by tiles.
template <int kV>
TESSERA_FN void accumulate_tiles(const Panel<kV>& panel, const KeyBlock& block, Index dim_v,
                                 Index from, Index to, const Float (&factor)[kV],
                                 const float* score) {
  Int changed{};
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) changed |= factor[v] != broadcast(1.0f);
  const bool rescale = Lanes::any(changed);
  for (Index column = 0; column < dim_v; column += kGroup) {
    float* const out = panel.out + column * Panel<kV>::kLanes;
    if (rescale) {
      TESSERA_UNROLL
      for (int r = 0; r < kGroup; ++r) {
        TESSERA_UNROLL
        for (int v = 0; v < kV; ++v) {
          float* const at = out + (r * kV + v) * kWidth;
          store(at, load(at) * factor[v]);
        }
      }
    }
    multiply_tiles<kV, true>(out, block.value + (column * block.capacity + from * kGroup) / kPair,
                             score + from / kPair * Panel<kV>::kLanes,
                             round_up(to - from, kStep) / kPair);
  }
}

// The same in registers; with kRound the product is rounded to fp16 before it is added.
template <int kV, bool kRound = false>
TESSERA_FN void accumulate(const Panel<kV>& panel, const KeyBlock& block, Index dim_v, Index from,
                           Index to, const Float (&factor)[kV], const float* score) {
  for (Index column = 0; column < dim_v; column += kGroup) {
    float* out = panel.out + column * Panel<kV>::kLanes;
    Float tile[kGroup][kV];
    TESSERA_UNROLL
    for (int r = 0; r < kGroup; ++r) {
      TESSERA_UNROLL
      for (int v = 0; v < kV; ++v)
        tile[r][v] = kRound ? Float{} : load(out + (r * kV + v) * kWidth) * factor[v];
    }
    multiply<kV>(tile, block.value + (column * block.capacity + from * kGroup) / kPair,
                 score + from / kPair * Panel<kV>::kLanes, round_up(to - from, kStep) / kPair);
    if constexpr (kRound) {
      TESSERA_UNROLL
      for (int r = 0; r < kGroup; ++r) {
        TESSERA_UNROLL
        for (int v = 0; v < kV; ++v) {
          tile[r][v] = load(out + (r * kV + v) * kWidth) * factor[v] + round_to_fp16(tile[r][v]);
        }
      }
    }
    TESSERA_UNROLL
    for (int r = 0; r < kGroup; ++r) {
      TESSERA_UNROLL
      for (int v = 0; v < kV; ++v) store(out + (r * kV + v) * kWidth, tile[r][v]);
    }
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
