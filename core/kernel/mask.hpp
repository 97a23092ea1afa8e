#pragma once
// Visibility, defined once: a row sees the keys of one interval. Length, padding, causal masks of
// either alignment and sliding windows are all bands; tile classes, loop bounds and the test of an
// element follow from the interval.
//
//     keys →    begin          end     row i sees [max(begin, i + low), min(end, i + high + 1))
//     row 0       │■ ■ □ □ □ □ □ │
//     row 1       │■ ■ ■ □ □ □ □ │     low = diagonal − left, high = diagonal + right
//     row 2       │□ ■ ■ ■ □ □ □ │
//     row 3       │□ □ ■ ■ ■ □ □ │     (left = 1, right = 1, diagonal = 0)

#include "core/kernel/arguments.hpp"
#include "core/kernel/macros.hpp"

namespace tessera::kernel {

// Keys from begin on, up to but without end; empty if begin >= end.
template <class I>
struct Interval {
  I begin{};
  I end{};
};

TESSERA_FN constexpr Index larger(Index a, Index b) { return a > b ? a : b; }
TESSERA_FN constexpr Index smaller(Index a, Index b) { return a < b ? a : b; }

// The part of an interval that lies in [first, first + count), relative to first.
TESSERA_FN constexpr Interval<Index> within(const Interval<Index>& keys, Index first, Index count) {
  return {larger(0, smaller(count, keys.begin - first)),
          larger(0, smaller(count, keys.end - first))};
}

// The band of one sequence. Both ends of a row's interval grow with the row.
struct Band {
  Index low = -kUnbounded;
  Index high = kUnbounded;
  Index begin = 0;
  Index end = 0;

  TESSERA_FN constexpr Interval<Index> row(Index i) const {
    return {larger(begin, i + low), smaller(end, i + high + 1)};
  }

  // Keys that at least one of the rows [first, last) sees; exact, since the rows' bands overlap or
  // touch.
  TESSERA_FN constexpr Interval<Index> any_of(Index first, Index last) const {
    return {row(first).begin, row(last - 1).end};
  }

  // Keys that all of the rows [first, last) see.
  TESSERA_FN constexpr Interval<Index> all_of(Index first, Index last) const {
    return {row(last - 1).begin, row(first).end};
  }

  // The other axis: rows that see key j, of rows [0, rows).
  TESSERA_FN constexpr Interval<Index> column(Index j, Index rows) const {
    if (j < begin || j >= end) return {0, 0};
    return {larger(0, j - high), smaller(rows, j - low + 1)};
  }

  // Rows of [0, rows) that see at least one of the keys [first, last); exact for the same reason.
  TESSERA_FN constexpr Interval<Index> seeing(Index first, Index last, Index rows) const {
    first = larger(first, begin);
    last = smaller(last, end);
    if (first >= last) return {0, 0};
    return {column(first, rows).begin, column(last - 1, rows).end};
  }
};

enum class TileClass { Skip, Whole, Partial };

// What a kernel does with the scores of rows [row_first, row_last) and keys [key_first, key_last),
// neither empty.
TESSERA_FN constexpr TileClass classify(const Band& band, Index row_first, Index row_last,
                                        Index key_first, Index key_last) {
  const Interval<Index> any = band.any_of(row_first, row_last);
  if (any.begin >= any.end || any.end <= key_first || any.begin >= key_last) return TileClass::Skip;
  const Interval<Index> all = band.all_of(row_first, row_last);
  return all.begin <= key_first && key_last <= all.end ? TileClass::Whole : TileClass::Partial;
}

// The key loop of some rows in tiles of equal size that start at multiples of it: tiles [first,
// whole_first) are partial, [whole_first, whole_last) are whole and need no mask, [whole_last,
// last) are partial; the rest is skipped.
struct LoopSplit {
  Index first = 0;
  Index whole_first = 0;
  Index whole_last = 0;
  Index last = 0;
};

TESSERA_FN constexpr LoopSplit split_loop(const Band& band, Index row_first, Index row_last,
                                          Index tile) {
  const Interval<Index> any = band.any_of(row_first, row_last);
  if (row_first >= row_last || any.begin >= any.end) return {};
  const Interval<Index> all = band.all_of(row_first, row_last);
  LoopSplit split{};
  split.first = any.begin / tile;
  split.last = (any.end + tile - 1) / tile;
  split.whole_first = smaller(larger((all.begin + tile - 1) / tile, split.first), split.last);
  split.whole_last = larger(smaller(all.end / tile, split.last), split.whole_first);
  return split;
}

// A band relative to a tile's first row and key, in 32 bits: what lanes compute with.
struct TileBand {
  int low = 0;
  int high = 0;
  int begin = 0;
  int end = 0;

  // Interval of keys, relative to the tile, that the tile's rows `i` see; one row a lane.
  template <class L>
  TESSERA_FN Interval<typename L::Index> row(typename L::Index i) const {
    const auto from = i + L::whole(low), to = i + L::whole(high + 1);
    const auto first = L::whole(begin), last = L::whole(end);
    return {L::select(L::less(from, first), first, from), L::select(L::less(to, last), to, last)};
  }
};

// Into the numbers that lanes can add without overflow, yet beyond any tile.
TESSERA_FN constexpr int tile_relative(Index x) {
  constexpr Index kFar = Index{1} << 29;
  return static_cast<int>(larger(-kFar, smaller(kFar, x)));
}

TESSERA_FN constexpr TileBand relative_to(const Band& band, Index row_first, Index key_first) {
  return {tile_relative(row_first + band.low - key_first),
          tile_relative(row_first + band.high - key_first), tile_relative(band.begin - key_first),
          tile_relative(band.end - key_first)};
}

// Does the interval hold key j?
template <class L>
TESSERA_FN typename L::Predicate holds(const Interval<typename L::Index>& see,
                                       typename L::Index j) {
  return L::both(L::less(j, see.end), L::less(see.begin, j + L::whole(1)));
}

}  // namespace tessera::kernel
