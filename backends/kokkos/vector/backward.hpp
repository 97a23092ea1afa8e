#pragma once
// Gradients of one block of keys and one panel of rows, queries in SIMD lanes as in forward: five
// products of which two give the weights and their gradients,
//
//     Sᵀ = K·Qᵀ       dPᵀ = V·dOᵀ                              key groups x lanes
//     Pᵀ = 2^(Sᵀ − lse)      dSᵀ = Pᵀ∘(dPᵀ − δ)                δ = rowsum(dO∘O) − dlse
//
// and three use them; the last two sum over lanes, so that a weight is broadcast and the row of dO
// or Q that it meets is the vector:
//
//     dQᵀ += Kᵀ·dSᵀ       dV += Pᵀ·dO       dK += dSᵀ·Q

#include "backends/kokkos/vector/forward.hpp"
#include "backends/kokkos/vector/modify.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

// What a panel of rows needs for its gradients, [x][lanes] with one row a lane or [lanes][x] as in
// memory.
template <int kV>
struct GradientPanel {
  const float* query;       // [dim][lanes], times the scale and log2(e) in the plain flavour
  const float* dout;        // [dim_v][lanes]
  const float* query_rows;  // strips of [lanes][columns]: see each_strip
  const float* dout_rows;   // likewise
  const float* lse;         // [lanes], base 2; +infinity: the row sees nothing
  const float* delta;       // [lanes]
  float* dq;                // [dim][lanes], without the scale
  float* earlier;           // as dq, of earlier stretches of keys; null: there are none
  Index row = 0;
  Index count = 0;

  static constexpr int kVectorCount = kV;
  static constexpr Index kLanes = kV * kWidth;
};

// A block of keys as packed, and the rows of dK and dV that belong to it.
struct GradientBlock {
  const float* key_groups;    // [keys / group][dim][group]
  const float* value_groups;  // [keys / group][dim_v][group]
  const float* key_columns;   // [dim / group][capacity][group]
  Index first;                // its key 0
  Index count;
  Index capacity;
  float* dk;  // [keys][columns], without the scale
  float* dv;  // [keys][columns_v], without dropout's factor
};

// Columns of a row of dK, dV, Q or dO as the last two products read them: whole vectors.
TESSERA_FN constexpr Index whole_vectors(Index columns) {
  return (columns + kWidth - 1) / kWidth * kWidth;
}

// Register tiles of the products that sum over lanes, as much as the register file has room for:
// kTallRows keys x kWide vectors of columns, kRestRows keys where there are fewer columns. (An
// operand that is broadcast from memory, as AVX-512 does it, takes no register.)
inline constexpr int kWide = kRegisters == 32 ? 4 : 3;
inline constexpr int kTallRows = kWidth == 16 ? 6 : 4;
inline constexpr int kRestRows = kWidth == 16 ? 8 : 4;

// Columns are cut into strips, one a tile's width. The rows of a strip are neighbours in memory:
// as parts of whole rows they would share few of the first-level cache's sets. Calls f with the
// number of vectors of each strip and its first column.
template <class F>
TESSERA_FN void each_strip(Index columns, F f) {
  Index at = 0;
  for (Index left = columns / kWidth, vectors = 0; left > 0; left -= vectors) {
    // The widest tiles, but not so as to leave a single vector.
    vectors = left == kWide || left >= 2 * kWide - 1 ? kWide : smaller(left, kWide > 3 ? 3 : 2);
    if (vectors == kWide) {
      f(Vectors<kWide>{}, at);
    } else if (vectors == 3) {
      f(Vectors<3>{}, at);
    } else if (vectors == 2) {
      f(Vectors<2>{}, at);
    } else {
      f(Vectors<1>{}, at);
    }
    at += vectors * kWidth;
  }
}

// Weights and their gradients of a panel and a block, [key][kPanel]; its modifiers, [key][lanes].
struct GradientPass {
  float* weight;
  float* gradient;
  float* bias;
  float* mask;
};

// A panel's part in the gradients of a group of panels.
struct GradientRows {
  float* weight;  // [key][kPanel]
  float* gradient;
  const float* query_rows;
  const float* dout_rows;
  Index count;
  Index lanes;
  Index from;  // keys that it sees: whole groups
  Index to;
};

// to[r][v] += Σ_panel Σ_i weights[r][i] · rows[i][v]: kRows keys from `key` on, kV vectors of
// columns. The panels follow one another in registers: loading and storing the tile for each would
// cost as much as a tenth of the products. Summed apart from what `to` holds: long sums of fp32
// lose less in parts.
template <int kRows, int kV, bool kValue>
TESSERA_FN void multiply_rows(float* to, Index columns, const GradientRows* panels, Index count,
                              Index key, Index at) {
  Float tile[kRows][kV] = {};
  for (Index p = 0; p < count; ++p) {
    const GradientRows& panel = panels[p];
    if (key + kRows <= panel.from || key >= panel.to) continue;
    const float* weights = (kValue ? panel.weight : panel.gradient) + key * kPanel;
    const float* rows = (kValue ? panel.dout_rows : panel.query_rows) + at * panel.lanes;
#pragma GCC unroll 2
    for (Index i = 0; i < panel.count; ++i) {
      Float operand[kV];
      TESSERA_UNROLL
      for (int v = 0; v < kV; ++v) operand[v] = load(rows + (i * kV + v) * kWidth);
      TESSERA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const Float scalar = broadcast(weights[r * kPanel + i]);
        TESSERA_UNROLL
        for (int v = 0; v < kV; ++v) tile[r][v] += scalar * operand[v];
      }
    }
  }
  TESSERA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) {
      float* const sum = to + r * columns + v * kWidth;
      store(sum, load(sum) + tile[r][v]);
    }
  }
}

template <int kV, bool kValue>
TESSERA_FN void multiply_columns(float* to, Index columns, const GradientRows* panels, Index count,
                                 Index from, Index to_key, Index at) {
  constexpr int kRows = kV == kWide ? kTallRows : kRestRows;
  Index key = from;
  for (; key + kRows <= to_key; key += kRows)
    multiply_rows<kRows, kV, kValue>(to + key * columns + at, columns, panels, count, key, at);
  for (; key < to_key; key += 2)
    multiply_rows<2, kV, kValue>(to + key * columns + at, columns, panels, count, key, at);
}

// dV (or dK) of keys [from, to_key), whole groups, += what a group of panels gives.
template <bool kValue>
TESSERA_FN void add_key_gradient(float* to, Index columns, const GradientRows* panels, Index count,
                                 Index from, Index to_key) {
  each_strip(columns, [&](auto vectors, Index at) {
    multiply_columns<vectors.value, kValue>(to, columns, panels, count, from, to_key, at);
  });
}

// The products of one group become weights and gradients. Not inlined: its constants would be kept
// in registers that the products' tiles need.
template <int kV, bool kMasked>
[[gnu::noinline]] static void weigh_gradients(const GradientPanel<kV>& panel, Index key,
                                              const kernel::Interval<Int> (&see)[kV], float* weight,
                                              float* gradient) {
  for (int r = 0; r < kGroup; ++r) {
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) {
      const Index at = r * kPanel + v * kWidth;
      Float score = load(weight + at) - load(panel.lse + v * kWidth);
      if constexpr (kMasked) {
        score = kernel::hide<Lanes>(score, see[v], Lanes::whole(static_cast<int>(key) + r));
      }
      const Float w = Lanes::exp2(score);
      store(weight + at, w);
      Float ds = w * (load(gradient + at) - load(panel.delta + v * kWidth));
      if constexpr (kMasked) {
        // By selection: δ or dP of a row may be NaN, and the key is another row's.
        ds = Lanes::select(kernel::holds<Lanes>(see[v], Lanes::whole(static_cast<int>(key) + r)),
                           ds, Float{});
      }
      store(gradient + at, ds);
    }
  }
}

// Products of keys [from, to), whole groups.
template <int kV>
TESSERA_FN void store_products(const float* groups, const float* rows, Index dim, Index from,
                               Index to, float* products) {
  for (Index key = from; key < to; key += kGroup) {
    Float tile[kGroup][kV] = {};
    multiply<kV>(tile, groups + key * dim, rows, dim);
    TESSERA_UNROLL
    for (int r = 0; r < kGroup; ++r) {
      TESSERA_UNROLL
      for (int v = 0; v < kV; ++v) store(products + (key + r) * kPanel + v * kWidth, tile[r][v]);
    }
  }
}

// Keys whose products are computed with the same operand, before the other's turn: together
// they may be more than the first-level cache holds.
inline constexpr Index kKeysInTurn = 64;

// Plain flavour: weights and gradients of keys [from, to), whole groups.
template <int kV, bool kMasked>
TESSERA_FN void plain_gradients(const GradientPanel<kV>& panel, const GradientBlock& block,
                                Index dim, Index dim_v, Index from, Index to,
                                const kernel::Interval<Int> (&see)[kV], const GradientPass& pass) {
  for (Index first = from; first < to; first += kKeysInTurn) {
    const Index last = smaller(first + kKeysInTurn, to);
    store_products<kV>(block.key_groups, panel.query, dim, first, last, pass.weight);
    store_products<kV>(block.value_groups, panel.dout, dim_v, first, last, pass.gradient);
    for (Index key = first; key < last; key += kGroup) {
      weigh_gradients<kV, kMasked>(panel, key, see, pass.weight + key * kPanel,
                                   pass.gradient + key * kPanel);
    }
  }
}

// General flavour: products become weights and gradients. `gradient` holds dO·V, and is given dS;
// `weight` holds Q·K, and is given P∘kept. With kScore the gradient is the score's, after cap, bias
// and mask; else that of scale·Q·K.
template <int kV, bool kScore>
TESSERA_FN void modify_gradients(const kernel::BackwardArguments& b, const kernel::Sequence& s,
                                 Index batch, Index head, const GradientPanel<kV>& panel,
                                 const GradientBlock& block, Index from, Index to,
                                 const kernel::Interval<Int> (&see)[kV], const GradientPass& pass) {
  const kernel::ForwardArguments& a = b.forward;
  const kernel::ScoreModifiers m = kernel::score_modifiers(a, batch, head);
  const kernel::TileDistance distance = kernel::distance_to(s.diagonal, panel.row, block.first);
  const bool drops = a.dropout.threshold != 0;
  const Float keep_scale = broadcast(a.dropout.keep_scale());
  kernel::DropoutStream stream{};
  if (drops) stream = kernel::dropout_stream(a.dropout, a.head_q, batch, head);
  for (Index group = from / 8 * 8; group < to; group += 8) {  // blocks start at multiples of 8
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) {
      const Float lse = load(panel.lse + v * kWidth), delta = load(panel.delta + v * kWidth);
      const Int row = iota() + Lanes::whole(v * kWidth);
      Bits words[4];
      if (drops) {
        kernel::draw<Lanes>(stream, kernel::dropout_rows<Lanes>(panel.row, row),
                            static_cast<std::uint32_t>((block.first + group) / 8), words);
      }
      for (int c = 0; c < 8; ++c) {
        const Index key = group + c;
        if (key < from || key >= to) continue;
        const Int column = Lanes::whole(static_cast<int>(key));
        const Index at = key * kPanel + v * kWidth, modifier = (key * kV + v) * kWidth;
        const Float bias = m.bias ? load(pass.bias + modifier) : Float{};
        const Int visible = m.mask ? load(pass.mask + modifier) != Float{} : Int{};
        const Float product = load(pass.weight + at);
        const Float score = kernel::hide<Lanes>(
            kernel::modify<Lanes>(m, product, distance, row, column, bias, visible), see[v],
            column);
        const Int hidden = score == broadcast(kernel::kMinusInfinity);
        Float weight = Lanes::exp2(score - lse);
        Float gradient = load(pass.gradient + at);
        Float dropped = weight;
        if (drops) {
          const Int kept = kernel::kept<Lanes>(stream, words, static_cast<std::uint32_t>(c));
          gradient = Lanes::select(kept, gradient * keep_scale, Float{});
          dropped = Lanes::select(kept, weight, Float{});
        }
        gradient = weight * (gradient - delta);
        if constexpr (!kScore) gradient *= kernel::cap_slope<Lanes>(m, product);
        store(pass.gradient + at, Lanes::select(hidden, Float{}, gradient));
        store(pass.weight + at, Lanes::select(hidden, Float{}, dropped));
      }
    }
  }
}

// dQᵀ += Kᵀ·dSᵀ over keys [from, to).
template <int kV>
TESSERA_FN void add_query_gradient(const GradientPanel<kV>& panel, const GradientBlock& block,
                                   Index dim, Index from, Index to, const float* gradient) {
  for (Index column = 0; column < dim; column += kGroup) {
    float* dq = panel.dq + column * GradientPanel<kV>::kLanes;
    Float tile[kGroup][kV] = {};
    multiply<kV, kPanel>(tile, block.key_columns + column * block.capacity + from * kGroup,
                         gradient + from * kPanel, to - from);
    TESSERA_UNROLL
    for (int r = 0; r < kGroup; ++r) {
      TESSERA_UNROLL
      for (int v = 0; v < kV; ++v) {
        float* const sum = dq + (r * kV + v) * kWidth;
        store(sum, load(sum) + tile[r][v]);
      }
    }
  }
}

// The stretch's dQ joins that of earlier ones. What rounding takes from it stays in `dq`, where the
// next stretch is added to it.
template <int kV>
TESSERA_FN void end_stretch(const GradientPanel<kV>& panel, Index dim) {
  for (Index i = 0; i < dim * GradientPanel<kV>::kLanes; i += kWidth) {
    Float sum = load(panel.earlier + i), rest{};
    kernel::add_keeping_finite_rest(sum, rest, load(panel.dq + i));
    store(panel.earlier + i, sum);
    store(panel.dq + i, rest);
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
