#include "core/kernel/split.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/unit/kernel/vector_lanes.hpp"

namespace tessera::testing {
namespace {

using kernel::Index;
using kernel::KeySplit;

void expect_partition(const KeySplit& split, Index keys, Index tile) {
  ASSERT_GE(split.parts, 1);
  ASSERT_LE(split.parts, kernel::kMaxParts);
  Index next = 0, shortest = keys, longest = 0;
  for (Index i = 0; i < split.parts; ++i) {
    const auto part = split.part(i);
    ASSERT_EQ(part.begin, next);
    ASSERT_GE(part.end, part.begin);
    if (i + 1 < split.parts) {
      ASSERT_EQ(part.end % tile, 0);
    }
    shortest = std::min(shortest, part.end - part.begin);
    longest = std::max(longest, part.end - part.begin);
    next = part.end;
  }
  ASSERT_EQ(next, keys);
  if (split.parts > 1) {
    ASSERT_GE(shortest, kernel::kMinPart);
    ASSERT_LT(longest - shortest, 2 * tile);
  }
}

TEST(KeySplit, IsAPartition) {
  for (const Index tile : {1, 8, 48, 64, 128, 1000}) {
    for (const Index tasks : {0, 1, 3, 100, 255, 256, 100000}) {
      for (Index keys = 0; keys < 5000; keys += keys < 1100 ? 1 : 17) {
        expect_partition(kernel::split_keys(keys, tile, tasks), keys, tile);
        if (HasFatalFailure()) FAIL() << keys << " keys, tile " << tile << ", tasks " << tasks;
      }
    }
  }
}

TEST(KeySplit, HugeSequences) {
  for (const Index keys : {(Index{1} << 40) + 13, Index{1} << 59, (Index{1} << 60) - 1}) {
    for (const Index tile : {1, 64, 96}) {
      const KeySplit split = kernel::split_keys(keys, tile, 1);
      EXPECT_EQ(split.parts, kernel::kMaxParts);
      expect_partition(split, keys, tile);
    }
  }
}

TEST(KeySplit, IsMadeWhereItPays) {
  EXPECT_EQ(kernel::split_keys(1 << 20, 64, kernel::kEnoughTasks).parts, 1);
  EXPECT_EQ(kernel::split_keys(1 << 20, 64, kernel::kEnoughTasks / 2).parts, 2);
  EXPECT_EQ(kernel::split_keys(1 << 20, 64, 1).parts, kernel::kMaxParts);
  EXPECT_EQ(kernel::split_keys(2 * kernel::kMinPart - 1, 64, 1).parts, 1);
  EXPECT_EQ(kernel::split_keys(2 * kernel::kMinPart, 64, 1).parts, 2);
}

template <class L>
class MergeParts : public ::testing::Test {};
using Policies = ::testing::Types<kernel::ScalarLanes, FourLanes>;
TYPED_TEST_SUITE(MergeParts, Policies);

TYPED_TEST(MergeParts, IsTheUnion) {
  using L = TypeParam;
  using State = kernel::SoftmaxState<typename L::Value>;
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 30);
  for (int repeat = 0; repeat < 500; ++repeat) {
    std::vector<State> parts(1 + random() % 9);
    for (State& part : parts) {
      // A third are empty.
      part = random() % 3 ? State{L::broadcast(normal(random)),
                                  L::broadcast(1.0f + std::fabs(normal(random)))}
                          : kernel::empty_state<L>();
    }
    double max = -HUGE_VAL, sum = 0;
    for (const State& part : parts)
      max = std::fmax(max, static_cast<double>(LaneAccess<L>::get(part.max, 0)));
    for (const State& part : parts) {
      const double part_max = static_cast<double>(LaneAccess<L>::get(part.max, 0));
      if (part_max > -HUGE_VAL)
        sum += static_cast<double>(LaneAccess<L>::get(part.sum, 0)) * std::exp2(part_max - max);
    }
    const State all = kernel::merge_parts<L>(parts.data(), static_cast<Index>(parts.size()));
    const int lane = LaneAccess<L>::kWidth - 1;
    EXPECT_EQ(static_cast<double>(LaneAccess<L>::get(all.max, lane)), max);
    EXPECT_NEAR(static_cast<double>(LaneAccess<L>::get(all.sum, lane)), sum, 1e-6 * sum);
    for (const State& part : parts) {
      const double part_max = static_cast<double>(LaneAccess<L>::get(part.max, 0));
      const double factor = part_max > -HUGE_VAL ? std::exp2(part_max - max) : 0;
      EXPECT_NEAR(static_cast<double>(LaneAccess<L>::get(kernel::part_factor<L>(all, part), lane)),
                  factor, 1e-6);
    }
  }
}

TYPED_TEST(MergeParts, EmptyAndNaN) {
  using L = TypeParam;
  using State = kernel::SoftmaxState<typename L::Value>;
  const State empty = kernel::empty_state<L>();
  const State none[3] = {empty, empty, empty};
  State all = kernel::merge_parts<L>(none, 3);
  EXPECT_EQ(LaneAccess<L>::get(all.max, 0), kernel::kMinusInfinity);
  EXPECT_EQ(LaneAccess<L>::get(all.sum, 0), 0.0f);
  EXPECT_EQ(LaneAccess<L>::get(kernel::part_factor<L>(all, empty), 0), 0.0f);
  const State low{L::broadcast(-3e38f), L::broadcast(2.0f)};
  const State one[3] = {empty, low, empty};
  all = kernel::merge_parts<L>(one, 3);
  EXPECT_EQ(LaneAccess<L>::get(all.max, 0), -3e38f);
  EXPECT_EQ(LaneAccess<L>::get(all.sum, 0), 2.0f);
  const float nan = std::nanf("");
  for (const float max : {nan, 5.0f}) {
    const State bad{L::broadcast(max), L::broadcast(nan)};
    const State some[3] = {low, bad, low};
    all = kernel::merge_parts<L>(some, 3);
    EXPECT_TRUE(std::isnan(LaneAccess<L>::get(all.sum, 0)));
  }
}

}  // namespace
}  // namespace tessera::testing
