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
//         for each group of dims   Oᵀ tile   kGroup dims x panel in registers, added to O times the
//                                            factor
//
// Long sums of fp32 are formed in parts: in one chain, what is added over and over again (keys that
// weigh alike) is rounded the same way every time, and the error grows with the number of keys.
// So runs of kRun keys are summed from zero, runs add up to a block's sum, blocks to a stretch's
// (kStretchKeys), and stretches to the row's, which keeps what rounding takes from it (Kahan 1965).

#include "backends/kokkos/vector/fetch.hpp"
#include "backends/kokkos/vector/pack_pairs.hpp"
#include "backends/kokkos/vector/task.hpp"
#include "core/kernel/kahan.hpp"
#include "core/kernel/mask.hpp"
#include "core/kernel/sequence.hpp"
#include "core/kernel/softmax.hpp"
#include "core/kernel/split.hpp"

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
  float* rest;         // [lanes]: what rounding took from `sum`
  float* earlier;      // as `out`, of the stretches of keys before this one; null: there is one
  float* earlier_max;  // [lanes]: maxima that `earlier` belongs to
  Index row = 0;       // first row
  Index count = 0;     // rows; lanes beyond compute something that nobody reads

  static constexpr int kVectorCount = kV;
  static constexpr Index kLanes = kV * kWidth;
};

// Keys that are summed apart, from a multiple of as many on: where runs begin depends on no task.
inline constexpr Index kRun = 64;

// The end of the run of key `key` of a block, and of keys [.., to) of it.
TESSERA_FN Index run_end(Index block_first, Index key, Index to) {
  return smaller(to, (block_first + key) / kRun * kRun + kRun - block_first);
}

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

// As multiply(), to memory, in parts that are summed apart. For head dimensions that show it.
inline constexpr Index kProductRun = 64 / kPair;
TESSERA_FN bool is_long(Index words) { return !kTiles && words > 256 / kPair; }
template <int kV>
[[gnu::noinline]] static void multiply_long(float* sums, const float* a, const float* b,
                                            Index words) {
  for (Index first = 0; first < words; first += kProductRun) {
    Float tile[kGroup][kV] = {};
    multiply<kV>(tile, a + first * kGroup, b + first * kV * kWidth,
                 smaller(kProductRun, words - first));
    TESSERA_UNROLL
    for (int r = 0; r < kGroup; ++r) {
      TESSERA_UNROLL
      for (int v = 0; v < kV; ++v) {
        float* const sum = sums + (r * kV + v) * kWidth;
        store(sum, first == 0 ? tile[r][v] : load(sum) + tile[r][v]);
      }
    }
  }
}

// Scores of keys [from, to) of the block, `words` of an operand a key; `see` hides what the rows do
// not see if kMasked. Raises `top`, the tile maxima.
template <int kV, bool kMasked, bool kLong>
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
    } else if constexpr (kLong) {
      multiply_long<kV>(scores, block.key + key * words, panel.query, words);
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
        Float one = kTiles || kLong ? load(at) : tile[r][v];
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

// Scores of the block's keys [from, to) become weights, `sum` those of the block.
template <int kV>
TESSERA_FN void weigh(const State (&state)[kV], Index block_first, Index from, Index to,
                      float* score, Float (&sum)[kV]) {
  Float origin[kV];
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) origin[v] = kernel::origin<Lanes>(state[v].max);
  for (Index key = from; key < to;) {
    const Index end = run_end(block_first, key, to);
    Float run[kV] = {};
    for (; key < end; ++key) {
      TESSERA_UNROLL
      for (int v = 0; v < kV; ++v) {
        float* p = score + (key * kV + v) * kWidth;
        const Float w = kernel::weight<Lanes>(load(p), origin[v]);
        run[v] += w;
        store(p, w);
      }
    }
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) sum[v] += run[v];
  }
}

// Weights of keys [from, to) become words, [pair of keys][lanes] where the weights of half as many
// keys stood, followed by zeros to whole steps. With kWeigh they are scores yet: see weigh(). The
// score after an odd number of them is hidden then.
template <int kV, bool kWeigh>
TESSERA_FN void join_weights(const State (&state)[kV], Index block_first, Index from, Index to,
                             float* score, Float (&sum)[kV]) {
  Float origin[kV];
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) origin[v] = kernel::origin<Lanes>(state[v].max);
  const Index end = from + round_up(to - from, kStep);
  Index key = from;
  while (key < to) {
    const Index last = run_end(block_first, key, to);
    Float run[kV] = {};
    for (; key < last; key += 2) {
      TESSERA_UNROLL
      for (int v = 0; v < kV; ++v) {
        Float first = load(score + (key * kV + v) * kWidth);
        Float second = load(score + ((key + 1) * kV + v) * kWidth);
        if constexpr (kWeigh) {
          first = kernel::weight<Lanes>(first, origin[v]);
          second = kernel::weight<Lanes>(second, origin[v]);
          run[v] += first + second;
        } else if (key + 1 == to) {
          second = Float{};
        }
        store(score + (key / 2 * kV + v) * kWidth, pair(first, second));
      }
    }
    TESSERA_UNROLL
    for (int v = 0; kWeigh && v < kV; ++v) sum[v] += run[v];
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

// The same in registers, run by run; with kRound the product is rounded to fp16 before it is added.
template <int kV, bool kRound = false>
TESSERA_FN void accumulate(const Panel<kV>& panel, const KeyBlock& block, Index dim_v, Index from,
                           Index to, const Float (&factor)[kV], const float* score) {
  for (Index column = 0; column < dim_v; column += kGroup) {
    float* const out = panel.out + column * Panel<kV>::kLanes;
    alignas(64) float runs[kGroup * kV * kWidth];  // their sum
    for (Index key = from, end; key < to; key = end) {
      end = run_end(block.first, key, to);
      Float tile[kGroup][kV] = {};
      multiply<kV>(tile, block.value + (column * block.capacity + key * kGroup) / kPair,
                   score + key / kPair * Panel<kV>::kLanes, round_up(end - key, kStep) / kPair);
      const auto each = [&](auto f) {
        TESSERA_UNROLL
        for (int r = 0; r < kGroup; ++r) {
          TESSERA_UNROLL
          for (int v = 0; v < kV; ++v) f(tile[r][v], (r * kV + v) * kWidth, v);
        }
      };
      if (key > from) each([&](Float& sum, Index at, int) { sum += load(runs + at); });
      if (end < to) {
        each([&](Float sum, Index at, int) { store(runs + at, sum); });
      } else {
        each([&](Float sum, Index at, int v) {
          if constexpr (kRound) sum = round_to_fp16(sum);
          store(out + at, load(out + at) * factor[v] + sum);
        });
      }
    }
  }
}

// The stretch's O joins that of earlier ones. What rounding takes from it stays in `out`, where the
// next stretch is added to it.
template <int kV>
TESSERA_FN void end_stretch(const Panel<kV>& panel, Index dim_v) {
  Float factor[kV];
  TESSERA_UNROLL
  for (int v = 0; v < kV; ++v) {
    const Float max = load(panel.max + v * kWidth);
    factor[v] =
        kernel::part_factor<Lanes>({max, Float{}}, {load(panel.earlier_max + v * kWidth), Float{}});
    store(panel.earlier_max + v * kWidth, max);
  }
  for (Index column = 0; column < dim_v; ++column) {
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) {
      const Index at = (column * kV + v) * kWidth;
      Float sum = load(panel.earlier + at) * factor[v], rest{};
      kernel::add_keeping_finite_rest(sum, rest, load(panel.out + at));
      store(panel.earlier + at, sum);
      store(panel.out + at, rest);
    }
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
