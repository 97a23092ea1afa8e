#include "tests/robustness/decision.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace tessera::testing {
namespace {

constexpr Outcome kRight{.failures = 0, .excesses = 0, .ratio = 0.9};
constexpr Outcome kBeyond{.failures = 4, .excesses = 4, .ratio = 1.003};

// Decides with these redraws, and says how many were made.
struct Decided {
  Decision decision = Decision::right;
  int redraws = 0;
};
Decided decide_with(const Outcome& first, const std::vector<Outcome>& redraws) {
  Decided result;
  result.decision = decide(first, [&](int i) {
    ++result.redraws;
    return redraws.at(static_cast<std::size_t>(i));
  });
  return result;
}

TEST(Decision, WhatPassesIsRightAtOnce) {
  const Decided decided = decide_with(kRight, {});
  EXPECT_EQ(decided.decision, Decision::right);
  EXPECT_EQ(decided.redraws, 0);
}

TEST(Decision, BeyondTheBoundOnceIsANearMiss) {
  for (const double ratio : {1.0000001, 1.12, 2.0}) {
    const Outcome first{.failures = 1, .excesses = 1, .ratio = ratio};
    const Decided decided = decide_with(first, {kRight, kRight, kRight});
    EXPECT_EQ(decided.decision, Decision::near_miss) << ratio;
    EXPECT_EQ(decided.redraws, 3) << ratio;
  }
}

TEST(Decision, BeyondItTwiceIsWrong) {
  for (std::size_t at = 0; at < 3; ++at) {
    std::vector<Outcome> redraws(3, kRight);
    redraws[at] = kBeyond;
    const Decided decided = decide_with(kBeyond, redraws);
    EXPECT_EQ(decided.decision, Decision::wrong) << at;
    EXPECT_EQ(decided.redraws, static_cast<int>(at) + 1);
  }
}

TEST(Decision, FarBeyondItIsWrongAtOnce) {
  for (const double ratio : {2.0001, 1e6, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()}) {
    const Outcome first{.failures = 1, .excesses = 1, .ratio = ratio};
    const Decided decided = decide_with(first, {kRight, kRight, kRight});
    EXPECT_EQ(decided.decision, Decision::wrong) << ratio;
    EXPECT_EQ(decided.redraws, 0) << ratio;
  }
}

TEST(Decision, AnyOtherFailureIsWrongAtOnce) {
  for (const Outcome& first : {Outcome{.failures = 1, .excesses = 0, .ratio = 0.5},
                               Outcome{.failures = 3, .excesses = 2, .ratio = 1.1}}) {
    const Decided decided = decide_with(first, {kRight, kRight, kRight});
    EXPECT_EQ(decided.decision, Decision::wrong);
    EXPECT_EQ(decided.redraws, 0);
  }
}

TEST(Decision, AnyFailureOfARedrawIsWrong) {
  const Outcome other{.failures = 1, .excesses = 0, .ratio = 0.5};
  EXPECT_EQ(decide_with(kBeyond, {kRight, kRight, other}).decision, Decision::wrong);
}

}  // namespace
}  // namespace tessera::testing
