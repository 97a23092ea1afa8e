#pragma once
// What the generic kernels share: how a team moves tiles between tensors and its scratch memory,
// multiplies them, and turns products into scores. Nothing here waits: barriers are the kernels'.

#include <type_traits>

#include "backends/kokkos/element.hpp"
#include "backends/kokkos/generic/config.hpp"
#include "backends/kokkos/space.hpp"
#include "core/kernel/kahan.hpp"
#include "core/kernel/mask.hpp"
#include "core/kernel/modifiers.hpp"
#include "core/kernel/philox.hpp"
#include "core/kernel/sequence.hpp"

namespace tessera::kokkos::generic {

using Policy = Kokkos::TeamPolicy<Space, Kokkos::Schedule<Kokkos::Dynamic>>;
using Member = typename Policy::member_type;
using Lanes = kernel::ScalarLanes;

// --- Between tensors and tiles ---------------------------------------------------------------

// Row `seq` of an operand of Elements.
template <class Element, class Void>
KOKKOS_FUNCTION auto row_of(const kernel::Operand<Void>& operand, Index batch, Index head,
                            Index seq) {
  using Pointer = std::conditional_t<std::is_const_v<Void>, const Element*, Element*>;
  return static_cast<Pointer>(operand.data) +
         (batch * operand.batch + head * operand.head + seq * operand.seq);
}

// to[step · d] = row[stride · d], over the lanes of one thread; 0 where there is no row.
template <class Element>
KOKKOS_FUNCTION void load_row(const Member& team, const Element* row, int count, float* to,
                              int step = 1, Index stride = 1) {
  if (row != nullptr) {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, count),
                         [&](int d) { to[d * step] = row[d * stride].load(); });
  } else {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, count), [&](int d) { to[d * step] = 0; });
  }
}

// to[d][kKeys], the keys of a tile transposed. Slots outside [from, to_slot) are 0 and not read.
template <class Element>
KOKKOS_FUNCTION void load_transposed(const Member& team, const kernel::Operand<const void>& operand,
                                     Index batch, Index head, Index seq, int from, int to_slot,
                                     int dim, float* to) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, kKeys), [&](int j) {
    const bool there = from <= j && j < to_slot;
    load_row(team, there ? row_of<Element>(operand, batch, head, seq + j) : nullptr, dim, to + j,
             kKeys);
  });
}

// to[slot][dim] for slots [from, to_slot); the others keep what they hold.
template <class Element>
KOKKOS_FUNCTION void load_slots(const Member& team, const kernel::Operand<const void>& operand,
                                Index batch, Index head, Index seq, int from, int to_slot, int dim,
                                float* to) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, from, to_slot), [&](int j) {
    load_row(team, row_of<Element>(operand, batch, head, seq + j), dim, to + j * dim);
  });
}

// --- Products --------------------------------------------------------------------------------

// kWidth neighbouring numbers.
template <int kWidth>
struct Neighbours {
  using Part = typename Pack<kWidth>::Part;
  static constexpr int kPart = Pack<kWidth>::kPart;
  static constexpr int kParts = kWidth / kPart;
  static_assert(kKeys % kWidth == 0 && 8 % kWidth == 0);

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
};

TESSERA_FN constexpr int groups_of(int count) { return (count + kGroup - 1) / kGroup; }

// product[i][kKeys] = rows[i][dim] · keys[dim][kKeys], for rows [0, count) rounded up to groups and
// keys [from, to) rounded to neighbours.
template <int kWidth>
KOKKOS_FUNCTION void multiply(const Member& team, const float* rows, const float* keys, int dim,
                              int count, int from, int to, float* product) {
  using N = Neighbours<kWidth>;
  const int first = from / kWidth, last = (to + kWidth - 1) / kWidth;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, groups_of(count)), [&](int group) {
    const float* const row = rows + group * kGroup * dim;
    float* const result = product + group * kGroup * kKeys;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, first, last), [&](int chunk) {
      const float* const key = keys + chunk * kWidth;
      typename N::Part sum[kGroup][N::kParts] = {};
      for (int first_d = 0; first_d < dim; first_d += kRun) {
        typename N::Part run[kGroup][N::kParts] = {};
        for (int d = first_d; d < first_d + kRun && d < dim; ++d) {
          N::add_products(row + d, dim, key + d * kKeys, run);
        }
        TESSERA_UNROLL
        for (int i = 0; i < kGroup; ++i) {
          TESSERA_UNROLL
          for (int p = 0; p < N::kParts; ++p) sum[i][p] += run[i][p];
        }
      }
      TESSERA_UNROLL
      for (int i = 0; i < kGroup; ++i) N::store(sum[i], result + i * kKeys + chunk * kWidth);
    });
  });
}

TESSERA_FN float round_to_fp16(float x) { return kernel::fp16_to_float(kernel::float_to_fp16(x)); }

// A matrix in scratch memory, or its transpose: element (i, x) is data[i · row + x · step].
struct Factors {
  const float* data;
  int row;
  int step;
};

struct Unscaled {
  TESSERA_FN constexpr float operator()(int) const { return 1.0f; }
};

// sum[i][columns] = factor(i) · sum[i] + Σ left(i, x) · right[x][columns] over x in [from, to), for
// i in groups [first, last). With `round` (Accumulate::fp16) the product is rounded to fp16 before
// it is added. What rounding takes from `sum` is kept in `rest`, which is as large.
template <int kWidth, class Factor = Unscaled>
KOKKOS_FUNCTION void accumulate(const Member& team, const Factors& left, int first, int last,
                                int from, int to, const float* right, int columns, float* sum,
                                float* rest, const Factor& factor = {}, bool round = false) {
  using N = Neighbours<kWidth>;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, first, last), [&](int group) {
    const int i_first = group * kGroup;
    const float* const scalar = left.data + i_first * left.row;
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, columns / kWidth), [&](int chunk) {
      const float* const vector = right + chunk * kWidth;
      float* const result = sum + i_first * columns + chunk * kWidth;
      typename N::Part add[kGroup][N::kParts] = {};
      for (int x = from; x < to; ++x) {
        N::add_products(scalar + x * left.step, left.row, vector + x * columns, add);
      }
      TESSERA_UNROLL
      for (int i = 0; i < kGroup; ++i) {
        typename N::Part row[N::kParts];
        N::load(result + i * columns, row);
        if (round) {
          float numbers[kWidth];
          N::store(add[i], numbers);
          for (float& x : numbers) x = round_to_fp16(x);
          N::load(numbers, add[i]);
        }
        const float scale = factor(i_first + i);
        float* const left_over = rest + i_first * columns + chunk * kWidth + i * columns;
        typename N::Part kept[N::kParts];
        N::load(left_over, kept);
        TESSERA_UNROLL
        for (int p = 0; p < N::kParts; ++p) {
          row[p] *= scale;
          kept[p] *= scale;
          kernel::add_keeping_finite_rest(row[p], kept[p], add[i][p]);
        }
        N::store(kept, left_over);
        N::store(row, result + i * columns);
      }
    });
  });
}

// --- Scores ----------------------------------------------------------------------------------

// What is the same for all scores of one (batch, query head).
struct Head {
  Index batch = 0;  // or segment
  Index head = 0;   // of query
  bool general = false;
  kernel::ScoreModifiers modifiers;
  kernel::DropoutStream dropout;
};

KOKKOS_INLINE_FUNCTION Head head_of(const kernel::ForwardArguments& a, Index batch, Index head) {
  return {batch, head, a.general(), kernel::score_modifiers(a, batch, head),
          kernel::dropout_stream(a.dropout, a.head_q, batch, head)};
}

// A tile of scores: rows [row_first, row_first + rows), at least one and all before the sequence's
// query_end, against kKeys keys. Only keys [from, to), relative to key_first, are read: some row
// sees them.
struct Tile {
  Index row_first = 0;
  Index key_first = 0;
  int rows = 0;
  int from = 0;
  int to = 0;
  bool whole = false;  // every row sees every key
  kernel::TileBand band;
  kernel::TileDistance distance;

  // Keys that row i sees.
  KOKKOS_INLINE_FUNCTION kernel::Interval<int> see(int i) const {
    return whole ? kernel::Interval<int>{0, kKeys} : band.row<Lanes>(i);
  }
};

KOKKOS_INLINE_FUNCTION Tile tile_of(const kernel::Sequence& s, Index row_first, int rows,
                                    Index key_first) {
  const kernel::Interval<Index> any = s.band.any_of(row_first, row_first + rows);
  const kernel::Interval<Index> all = s.band.all_of(row_first, row_first + rows);
  Tile t;
  t.row_first = row_first;
  t.key_first = key_first;
  t.rows = rows;
  t.from = static_cast<int>(kernel::clamp_index(any.begin - key_first, 0, kKeys));
  t.to = static_cast<int>(kernel::clamp_index(any.end - key_first, 0, kKeys));
  t.whole = all.begin <= key_first && key_first + kKeys <= all.end;
  t.band = kernel::relative_to(s.band, row_first, key_first);
  t.distance = kernel::distance_to(s.diagonal, row_first, key_first);
  return t;
}

// The score that the softmax sees, in base 2, of row i and key j of the tile. Nothing is read for a
// key that is not among those that the row sees.
template <class Element>
KOKKOS_FUNCTION float score_of(const kernel::ForwardArguments& a, const Head& h, const Tile& t,
                               const kernel::Interval<int>& see, int i, int j, float product) {
  if (!kernel::holds<Lanes>(see, j)) return kernel::kMinusInfinity;
  if (!h.general) return product * h.modifiers.scale;
  if (a.accumulate_fp16) product = round_to_fp16(product);
  const auto offset = [&](const kernel::ScoreOperand& operand) {
    return h.batch * operand.batch + h.head * operand.head + (t.row_first + i) * operand.row +
           (t.key_first + j) * operand.column;
  };
  float bias = 0;
  if (h.modifiers.bias) {
    bias = a.bias_fp32 ? static_cast<const float*>(a.bias.data)[offset(a.bias)]
                       : static_cast<const Element*>(a.bias.data)[offset(a.bias)].load();
  }
  bool visible = true;
  if (h.modifiers.mask)
    visible = static_cast<const std::uint8_t*>(a.boolean_mask.data)[offset(a.boolean_mask)] != 0;
  return kernel::modify<Lanes>(h.modifiers, product, t.distance, i, j, bias, visible);
}

// Random words of the tile's eight columns from 8·group on in row i.
KOKKOS_INLINE_FUNCTION void draw(const Head& h, const Tile& t, int i, int group,
                                 std::uint32_t (&words)[4]) {
  kernel::draw<Lanes>(h.dropout, kernel::dropout_rows<Lanes>(t.row_first, i),
                      static_cast<std::uint32_t>(t.key_first / 8 + group), words);
}

}  // namespace tessera::kokkos::generic
