// Masks against the definition, exhaustively over small shapes: every band with edges in a small
// range, every interval of rows, every tile.

#include "core/kernel/mask.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/kernel/lanes.hpp"
#include "tests/unit/kernel/vector_lanes.hpp"

namespace tessera::testing {
namespace {

using kernel::Band;
using kernel::Index;
using kernel::kUnbounded;
using kernel::TileClass;

constexpr Index kRows = 6;
constexpr Index kKeys = 8;

bool sees(const Band& band, Index i, Index j) {
  const bool inside = band.begin <= j && j < band.end;
  const bool left = band.low == -kUnbounded || j >= i + band.low;
  const bool right = band.high == kUnbounded || j <= i + band.high;
  return inside && left && right;
}

std::vector<Band> small_bands() {
  std::vector<Band> bands;
  for (Index low = -8; low <= 9; ++low) {
    for (Index high = low; high <= 10; ++high) {
      for (Index begin = 0; begin <= kKeys; ++begin) {
        for (Index end = 0; end <= kKeys; ++end) {
          bands.push_back({low < -7 ? -kUnbounded : low, high > 9 ? kUnbounded : high, begin, end});
        }
      }
    }
  }
  return bands;
}

// Visible elements of any rectangle, from sums over the rectangles that start at the origin.
class Visible {
 public:
  explicit Visible(const Band& band) {
    for (Index i = 0; i < kRows; ++i) {
      for (Index j = 0; j < kKeys; ++j) {
        sum_[i + 1][j + 1] =
            sum_[i][j + 1] + sum_[i + 1][j] - sum_[i][j] + (sees(band, i, j) ? 1 : 0);
      }
    }
  }
  int count(Index row_first, Index row_last, Index key_first, Index key_last) const {
    return sum_[row_last][key_last] - sum_[row_first][key_last] - sum_[row_last][key_first] +
           sum_[row_first][key_first];
  }
  TileClass classify(Index row_first, Index row_last, Index key_first, Index key_last) const {
    const int n = count(row_first, row_last, key_first, key_last);
    if (n == 0) return TileClass::Skip;
    return n == (row_last - row_first) * (key_last - key_first) ? TileClass::Whole
                                                                : TileClass::Partial;
  }

 private:
  int sum_[kRows + 1][kKeys + 1] = {};
};

bool in(const kernel::Interval<Index>& interval, Index j) {
  return interval.begin <= j && j < interval.end;
}

TEST(Band, RowAndColumnAreTheDefinition) {
  for (const Band& band : small_bands()) {
    for (Index i = 0; i < kRows; ++i) {
      for (Index j = -1; j <= kKeys; ++j) {
        ASSERT_EQ(in(band.row(i), j), sees(band, i, j)) << i << ' ' << j;
        ASSERT_EQ(in(band.column(j, kRows), i), sees(band, i, j)) << i << ' ' << j;
      }
    }
  }
}

TEST(Band, SeeingIsTheUnionOfColumns) {
  for (const Band& band : small_bands()) {
    const Visible visible(band);
    for (Index first = 0; first < kKeys; ++first) {
      for (Index last = first; last <= kKeys; ++last) {
        const kernel::Interval<Index> rows = band.seeing(first, last, kRows);
        for (Index i = 0; i < kRows; ++i)
          ASSERT_EQ(in(rows, i), visible.count(i, i + 1, first, last) > 0) << i;
      }
    }
  }
}

TEST(Band, AnyAndAllOfRows) {
  for (const Band& band : small_bands()) {
    const Visible visible(band);
    for (Index first = 0; first < kRows; ++first) {
      for (Index last = first + 1; last <= kRows; ++last) {
        for (Index j = 0; j < kKeys; ++j) {
          const int n = visible.count(first, last, j, j + 1);
          ASSERT_EQ(in(band.any_of(first, last), j), n != 0) << first << ' ' << last << ' ' << j;
          ASSERT_EQ(in(band.all_of(first, last), j), n == last - first)
              << first << ' ' << last << ' ' << j;
        }
      }
    }
  }
}

TEST(Band, TilesAreClassified) {
  for (const Band& band : small_bands()) {
    const Visible visible(band);
    for (Index first = 0; first < kRows; ++first) {
      for (Index last = first + 1; last <= kRows; ++last) {
        for (Index from = 0; from < kKeys; ++from) {
          for (Index to = from + 1; to <= kKeys; ++to) {
            ASSERT_EQ(classify(band, first, last, from, to),
                      visible.classify(first, last, from, to))
                << band.low << ' ' << band.high << ' ' << band.begin << ' ' << band.end << ' '
                << first << ' ' << last << ' ' << from << ' ' << to;
          }
        }
      }
    }
  }
}

// Each tile of the key loop is in the part that its class says.
TEST(Band, LoopIsSplitByClass) {
  for (const Band& band : small_bands()) {
    const Visible visible(band);
    for (const Index tile : {1, 2, 4}) {
      for (Index first = 0; first < kRows; ++first) {
        for (Index last = first + 1; last <= kRows; ++last) {
          const kernel::LoopSplit split = split_loop(band, first, last, tile);
          ASSERT_LE(split.first, split.whole_first);
          ASSERT_LE(split.whole_first, split.whole_last);
          ASSERT_LE(split.whole_last, split.last);
          for (Index t = 0; t < kKeys / tile; ++t) {
            TileClass found = TileClass::Skip;
            if (split.first <= t && t < split.last) found = TileClass::Partial;
            if (split.whole_first <= t && t < split.whole_last) found = TileClass::Whole;
            ASSERT_EQ(found, visible.classify(first, last, t * tile, (t + 1) * tile))
                << band.low << ' ' << band.high << ' ' << band.begin << ' ' << band.end << " rows "
                << first << ' ' << last << " tile " << t << " of " << tile;
          }
        }
      }
    }
  }
}

TEST(Band, LoopOverNoRowsIsEmpty) {
  const kernel::LoopSplit split = split_loop(Band{.end = 8}, 3, 3, 4);
  EXPECT_EQ(split.first, split.last);
  EXPECT_EQ(split.whole_first, split.whole_last);
}

template <class L>
class TileBandTest : public ::testing::Test {};
using Policies = ::testing::Types<kernel::ScalarLanes, FourLanes>;
TYPED_TEST_SUITE(TileBandTest, Policies);

template <class L>
bool holds_at(const kernel::TileBand& tile, int i, int j) {
  typename L::Index rows{};
  for (int lane = 0; lane < LaneAccess<L>::kWidth; ++lane) LaneAccess<L>::set(rows, lane, i - lane);
  const auto see = tile.template row<L>(rows);
  return LaneAccess<L>::get(kernel::holds<L>(see, L::whole(j)), 0) != 0;
}

TYPED_TEST(TileBandTest, SeesWhatTheBandSees) {
  using L = TypeParam;
  for (const Band& band : small_bands()) {
    for (const Index row_first : {0, 2}) {
      for (const Index key_first : {0, 3}) {
        const kernel::TileBand tile = relative_to(band, row_first, key_first);
        for (int i = 0; row_first + i < kRows; ++i) {
          for (int j = 0; key_first + j < kKeys; ++j) {
            ASSERT_EQ(holds_at<L>(tile, i, j), sees(band, row_first + i, key_first + j));
          }
        }
      }
    }
  }
}

// Every lane has its own row.
TEST(TileBand, LanesDiffer) {
  const kernel::TileBand tile =
      kernel::relative_to({.low = -1, .high = 1, .begin = 0, .end = 100}, 8, 4);
  const FourLanes::Index rows{3, 0, 2, 1};
  const auto see = tile.row<FourLanes>(rows);
  for (int lane = 0; lane < 4; ++lane) {
    EXPECT_EQ(see.begin[lane], 8 + rows[lane] - 1 - 4);
    EXPECT_EQ(see.end[lane], 8 + rows[lane] + 2 - 4);
  }
}

// Positions just below 2^29 in 32 bits: the same intervals, loops and tiles.
TEST(Band, NarrowIsTheSame) {
  std::mt19937_64 random(1);
  const auto upto = [&random](Index n) {
    return static_cast<Index>(random() % static_cast<std::uint64_t>(n));
  };
  constexpr Index kMost = Index{1} << 29;
  for (int repeat = 0; repeat < 20000; ++repeat) {
    const Index rows = repeat % 4 == 0 ? kMost - 1 : upto(kMost);
    const Index keys = repeat % 4 == 1 ? kMost - 1 : upto(kMost);
    const Index diagonal = repeat % 2 ? keys - rows : 0;
    const Index left = repeat % 3 == 0 ? kUnbounded : upto(repeat % 5 ? 500 : Index{1} << 40);
    const Index right = repeat % 3 == 1 ? kUnbounded : upto(repeat % 5 ? 500 : Index{1} << 40);
    const Band band{left == kUnbounded ? -kUnbounded : diagonal - left,
                    right == kUnbounded ? kUnbounded : diagonal + right, upto(keys + 1), keys};
    const kernel::NarrowBand same = kernel::narrow(band);
    const Index first = upto(rows + 1), last = std::min(rows, first + upto(300)), tile = 80;
    const kernel::LoopSplit split = split_loop(band, first, last, tile);
    const auto narrow = split_loop(same, static_cast<int>(first), static_cast<int>(last), 80);
    ASSERT_EQ(split.first, narrow.first);
    ASSERT_EQ(split.whole_first, narrow.whole_first);
    ASSERT_EQ(split.whole_last, narrow.whole_last);
    ASSERT_EQ(split.last, narrow.last);
    const Index block =
        split.first + (split.last > split.first ? upto(split.last - split.first) : 0);
    const kernel::TileBand wide_tile = relative_to(band, first, block * tile);
    const kernel::TileBand narrow_tile =
        relative_to(same, static_cast<int>(first), static_cast<int>(block * tile));
    for (const int i : {0, 1, 7, 191})
      for (const int j : {0, 1, 40, 79})
        ASSERT_EQ(holds_at<kernel::ScalarLanes>(wide_tile, i, j),
                  holds_at<kernel::ScalarLanes>(narrow_tile, i, j));
  }
}

// Positions of 2^40 and edges of nearly 2^60, against 128-bit arithmetic.
TEST(Band, HugePositions) {
  __extension__ using Wide = __int128;
  std::mt19937_64 random(1);
  const auto upto = [&random](Index n) {
    return static_cast<Index>(random() % static_cast<std::uint64_t>(n));
  };
  for (int repeat = 0; repeat < 20000; ++repeat) {
    const Index row_first = upto(Index{1} << 40), key_first = upto(Index{1} << 40);
    const Index diagonal = key_first - row_first + upto(64) - 32;
    const Index left = repeat % 3 == 0 ? kUnbounded : upto(repeat % 2 ? 40 : kUnbounded);
    const Index right = repeat % 5 == 0 ? kUnbounded : upto(repeat % 2 ? 40 : kUnbounded);
    const Band band{left == kUnbounded ? -kUnbounded : diagonal - left,
                    right == kUnbounded ? kUnbounded : diagonal + right, key_first + upto(20),
                    key_first + upto(64)};
    const kernel::TileBand tile = relative_to(band, row_first, key_first);
    int count = 0;
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 16; ++j) {
        const Wide row = Wide{row_first} + i, key = Wide{key_first} + j;
        const bool expected = key >= band.begin && key < band.end &&
                              (left == kUnbounded || key >= row + diagonal - left) &&
                              (right == kUnbounded || key <= row + diagonal + right);
        count += expected;
        ASSERT_EQ(in(band.row(row_first + i), key_first + j), expected);
        ASSERT_EQ(holds_at<kernel::ScalarLanes>(tile, i, j), expected);
        ASSERT_EQ(holds_at<FourLanes>(tile, i, j), expected);
        ASSERT_EQ(in(band.column(key_first + j, Index{1} << 41), row_first + i), expected);
      }
    }
    const TileClass expected = count == 0        ? TileClass::Skip
                               : count == 8 * 16 ? TileClass::Whole
                                                 : TileClass::Partial;
    ASSERT_EQ(classify(band, row_first, row_first + 8, key_first, key_first + 16), expected);
  }
}

// A tile far from what the band is about: all or nothing, though the distance does not fit 32 bits.
TEST(TileBand, FarFromTheBand) {
  const Index far = Index{1} << 40;
  const auto sees_tile = [](const Band& band, Index row, Index key) {
    return holds_at<kernel::ScalarLanes>(relative_to(band, row, key), 1000, 1000);
  };
  EXPECT_TRUE(sees_tile({.high = 0, .end = 2 * far}, far, 0));
  EXPECT_FALSE(sees_tile({.high = 0, .end = 2 * far}, 0, far));
  EXPECT_FALSE(sees_tile({.low = 0, .end = 2 * far}, far, 0));
  EXPECT_TRUE(sees_tile({.low = 0, .end = 2 * far}, 0, far));
  EXPECT_FALSE(sees_tile({.end = 5}, 0, far));
  EXPECT_FALSE(sees_tile({.begin = far, .end = 2 * far}, 0, 0));
}

}  // namespace
}  // namespace tessera::testing
