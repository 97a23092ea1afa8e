// Spans and overlaps against brute force.

#include "core/src/layout.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>

namespace tessera::detail {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

TEST(ElementCount, UpTo63Bits) {
  EXPECT_EQ(element_count({2, 3, 4, 5}), 120);
  EXPECT_EQ(element_count({kMost, kMost, 0, kMost}), 0);
  EXPECT_EQ(element_count({kMost, 1, 1, 1}), kMost);
  EXPECT_EQ(element_count({std::int64_t{1} << 32, 1, std::int64_t{1} << 31, 1}), std::nullopt);
  EXPECT_EQ(element_count({kMost, kMost, kMost, kMost}), std::nullopt);
}

TEST(ByteSpan, UpTo63Bits) {
  EXPECT_EQ(byte_span(DType::fp32, {2, 3, 4, 5}, bhsd_strides({2, 3, 4, 5})), 480);
  EXPECT_EQ(byte_span(DType::bf16, {2, 1, 1, 8}, {100, -7, -7, 1}), 216);
  EXPECT_EQ(byte_span(DType::fp32, {0, 9, 9, 9}, {kMost, kMost, kMost, kMost}), 0);
  EXPECT_EQ(byte_span(DType::uint8, {2, 1, 1, 1}, {kMost - 1, 0, 0, 1}), kMost);
  EXPECT_EQ(byte_span(DType::uint8, {2, 1, 1, 1}, {kMost, 0, 0, 1}), std::nullopt);
  EXPECT_EQ(byte_span(DType::fp32, {2, 1, 1, 1}, {kMost / 4, 0, 0, 1}), std::nullopt);
  EXPECT_EQ(byte_span(DType::fp32, {kMost, kMost, kMost, kMost}, {kMost, kMost, kMost, kMost}),
            std::nullopt);
  EXPECT_EQ(byte_span(DType::fp32, {kMost, kMost, kMost, kMost}, {-kMost, -kMost, -kMost, -kMost}),
            std::nullopt);
}

template <class Visit>
void for_each_element(const Extents& e, const Strides& s, Visit visit) {
  for (std::int64_t b = 0; b < e.batch; ++b) {
    for (std::int64_t h = 0; h < e.head; ++h) {
      for (std::int64_t r = 0; r < e.seq; ++r) {
        for (std::int64_t d = 0; d < e.dim; ++d)
          visit(b * s.batch + h * s.head + r * s.seq + d * s.dim);
      }
    }
  }
}

class Dice {
 public:
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  Extents extents(std::int64_t high) {
    return {(*this)(1, high), (*this)(1, high), (*this)(1, high), (*this)(1, high)};
  }

 private:
  std::mt19937_64 engine_{42};
};

TEST(MayOverlapItself, NeverMissesAnOverlap) {
  Dice dice;
  int apart = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Extents e = dice.extents(4);
    const Strides s{dice(0, 60), dice(0, 30), dice(0, 12), 1};
    std::set<std::int64_t> places;
    std::size_t count = 0;
    for_each_element(e, s, [&](std::int64_t place) {
      places.insert(place);
      ++count;
    });
    const bool overlaps = places.size() != count;
    ASSERT_TRUE(!overlaps || may_overlap_itself(e, s)) << i;
    apart += !may_overlap_itself(e, s);
  }
  EXPECT_GT(apart, 2'000);
}

TEST(MayOverlapItself, AcceptsUsualLayouts) {
  const Extents e{2, 3, 4, 8};
  EXPECT_FALSE(may_overlap_itself(e, bhsd_strides(e)));
  EXPECT_FALSE(may_overlap_itself(e, bshd_strides(e)));
  EXPECT_FALSE(may_overlap_itself(e, {8, 16, 48, 1}));      // [seq][head][batch][dim]
  EXPECT_FALSE(may_overlap_itself(e, {4 * 96, 8, 96, 1}));  // a slice of [batch][seq][4][head][dim]
  EXPECT_FALSE(may_overlap_itself({1, 1, 1, 8}, {0, 0, 0, 1}));
  EXPECT_FALSE(may_overlap_itself({2, 0, 4, 8}, {0, 0, 0, 1}));
  EXPECT_TRUE(may_overlap_itself(e, {0, 32, 8, 1}));
  EXPECT_TRUE(may_overlap_itself(e, {96, 32, 7, 1}));
  EXPECT_TRUE(
      may_overlap_itself({1, 1, 3, 2}, {0, 0, 2, 3}));  // apart, but not by nesting: documented
}

TEST(MayOverlap, IsExactOnSmallTensors) {
  Dice dice;
  int overlapping = 0, apart_in_range = 0;
  for (int i = 0; i < 20'000; ++i) {
    const DType types[] = {DType::uint8, DType::bf16, DType::fp32};
    const auto region = [&] {
      return Region{static_cast<std::uintptr_t>(1000 + dice(0, 160)), types[dice(0, 2)],
                    dice.extents(3),
                    Strides{dice(0, 70), dice(0, 40), dice(0, 20), dice(0, 5) == 0 ? 0 : 1}};
    };
    const Region a = region(), b = region();
    const auto bytes = [](const Region& r) {
      std::set<std::int64_t> all;
      const std::int64_t size = size_of(r.dtype);
      for_each_element(r.extent, r.stride, [&](std::int64_t place) {
        for (std::int64_t byte = 0; byte < size; ++byte) {
          all.insert(static_cast<std::int64_t>(r.address) + place * size + byte);
        }
      });
      return all;
    };
    const std::set<std::int64_t> of_a = bytes(a), of_b = bytes(b);
    bool expected = false;
    for (const std::int64_t byte : of_a) expected = expected || of_b.contains(byte);
    ASSERT_EQ(may_overlap(a, b), expected) << i;
    ASSERT_EQ(may_overlap(b, a), expected) << i;
    overlapping += expected;
    apart_in_range += !expected && *of_a.begin() < *of_b.rbegin() && *of_b.begin() < *of_a.rbegin();
  }
  EXPECT_GT(overlapping, 2'000);
  EXPECT_GT(apart_in_range, 500);
}

TEST(MayOverlap, SlicesOfLargeTensors) {
  // [batch 64][seq 8192][q, k, v, out][head 32][dim 128] bf16: 4 GiB.
  const Extents e{64, 32, 8192, 128};
  const std::int64_t slice = 32 * 128;
  const Strides s{8192 * 4 * slice, 128, 4 * slice, 1};
  const auto at = [&](std::int64_t elements) {
    return Region{static_cast<std::uintptr_t>((std::int64_t{1} << 40) + 2 * elements), DType::bf16,
                  e, s};
  };
  for (std::int64_t i = 1; i < 4; ++i) EXPECT_FALSE(may_overlap(at(0), at(i * slice)));
  EXPECT_TRUE(may_overlap(at(0), at(slice - 1)));
  EXPECT_TRUE(may_overlap(at(0), at(4 * slice * 8191)));
  EXPECT_TRUE(may_overlap(at(0), at(0)));
  EXPECT_FALSE(may_overlap(at(0), at(64 * 8192 * 4 * slice)));
}

TEST(MayOverlap, EndsInTimeForStridesWithoutStructure) {
  const Region a{1 << 20, DType::fp32, {97, 89, 83, 8}, {1009, 757, 509, 1}};
  const Region b{(1 << 20) + 3000, DType::fp32, {79, 73, 71, 8}, {997, 743, 499, 1}};
  EXPECT_TRUE(may_overlap(a, b));
}

TEST(MayOverlap, EmptyNeverDoes) {
  const Region empty{1000, DType::fp32, {0, 2, 2, 2}, {8, 4, 2, 1}};
  const Region full{1000, DType::fp32, {2, 2, 2, 2}, {8, 4, 2, 1}};
  EXPECT_FALSE(may_overlap(empty, full));
  EXPECT_FALSE(may_overlap(full, empty));
}

}  // namespace
}  // namespace tessera::detail
