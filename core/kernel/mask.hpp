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

#include <type_traits>

#include "core/kernel/arguments.hpp"
#include "core/kernel/macros.hpp"

namespace tessera::kernel {

// Keys from begin on, up to but without end; empty if begin >= end.
template <class I>
struct Interval {
  I begin{};
  I end{};
};

// I, without being deduced from the argument.
template <class I>
using Same = std::type_identity_t<I>;

TESSERA_FN constexpr Index larger(Index a, Index b) { return a > b ? a : b; }
TESSERA_FN constexpr Index smaller(Index a, Index b) { return a < b ? a : b; }

template <class I>
TESSERA_FN constexpr I between(I x, I low, I high) {
  return x < low ? low : (x > high ? high : x);
}

// The part of an interval that lies in [first, first + count), relative to first.
TESSERA_FN constexpr Interval<Index> within(const Interval<Index>& keys, Index first, Index count) {
  return {larger(0, smaller(count, keys.begin - first)),
          larger(0, smaller(count, keys.end - first))};
}

// What a band's ends are at least where it is open: farther than any position, yet small enough to
// be added to one. Positions of 32 bits stay below 2^29.
template <class I>
inline constexpr I kOpen = I{1} << (8 * sizeof(I) - 2);
template <>
inline constexpr Index kOpen<Index> = kUnbounded;

// The band of one sequence. Both ends of a row's interval grow with the row.
template <class I>
struct BasicBand {
  I low = -kOpen<I>;
  I high = kOpen<I>;
  I begin = 0;
  I end = 0;

  TESSERA_FN constexpr Interval<I> row(I i) const {
    return {latest(begin, i + low), earliest(end, i + high + 1)};
  }

  // Keys that at least one of the rows [first, last) sees; exact, since the rows' bands overlap or
  // touch.
  TESSERA_FN constexpr Interval<I> any_of(I first, I last) const {
    return {row(first).begin, row(last - 1).end};
  }

  // Keys that all of the rows [first, last) see.
  TESSERA_FN constexpr Interval<I> all_of(I first, I last) const {
    return {row(last - 1).begin, row(first).end};
  }

  // The other axis: rows that see key j, of rows [0, rows).
  TESSERA_FN constexpr Interval<I> column(I j, I rows) const {
    if (j < begin || j >= end) return {0, 0};
    return {latest(0, j - high), earliest(rows, j - low + 1)};
  }

  // Rows of [0, rows) that see at least one of the keys [first, last); exact for the same reason.
  TESSERA_FN constexpr Interval<I> seeing(I first, I last, I rows) const {
    first = latest(first, begin);
    last = earliest(last, end);
    if (first >= last) return {0, 0};
    return {column(first, rows).begin, column(last - 1, rows).end};
  }

 private:
  TESSERA_FN static constexpr I latest(I a, I b) { return a > b ? a : b; }
  TESSERA_FN static constexpr I earliest(I a, I b) { return a < b ? a : b; }
};

using Band = BasicBand<Index>;
// For machines whose 64-bit arithmetic is slow, where all positions lie below 2^29.
using NarrowBand = BasicBand<int>;

TESSERA_FN constexpr int narrow(Index x) {
  return static_cast<int>(larger(-kOpen<int>, smaller(kOpen<int>, x)));
}
TESSERA_FN constexpr NarrowBand narrow(const Band& band) {
  return {narrow(band.low), narrow(band.high), narrow(band.begin), narrow(band.end)};
}

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
template <class I>
struct BasicLoopSplit {
  I first = 0;
  I whole_first = 0;
  I whole_last = 0;
  I last = 0;
};
using LoopSplit = BasicLoopSplit<Index>;

// Rows, keys and tiles in the band's type, or one that becomes it.
template <class I>
TESSERA_FN constexpr BasicLoopSplit<I> split_loop(const BasicBand<I>& band, Same<I> row_first,
                                                  Same<I> row_last, Same<I> tile) {
  const Interval<I> any = band.any_of(row_first, row_last);
  if (row_first >= row_last || any.begin >= any.end) return {};
  const Interval<I> all = band.all_of(row_first, row_last);
  BasicLoopSplit<I> split{};
  split.first = any.begin / tile;
  split.last = (any.end + tile - 1) / tile;
  split.whole_first = between((all.begin + tile - 1) / tile, split.first, split.last);
  split.whole_last = between(all.end / tile, split.whole_first, split.last);
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
TESSERA_FN constexpr TileBand relative_to(const NarrowBand& band, int row_first, int key_first) {
  const int from = row_first - key_first;
  return {from + band.low, from + band.high, band.begin - key_first, band.end - key_first};
}

// Does the interval hold key j?
template <class L>
TESSERA_FN typename L::Predicate holds(const Interval<typename L::Index>& see,
                                       typename L::Index j) {
  return L::both(L::less(j, see.end), L::less(see.begin, j + L::whole(1)));
}

}  // namespace tessera::kernel
