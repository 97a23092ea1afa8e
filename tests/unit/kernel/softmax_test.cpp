// The online softmax against float64, over tiles of random size and order, for scores of every
// kind.

#include "core/kernel/softmax.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "tests/unit/kernel/vector_lanes.hpp"

namespace tessera::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Row {
  double out = 0;
  double lse = -std::numeric_limits<double>::infinity();
};

using Scores = std::vector<std::vector<float>>;  // [key][lane], in base 2

// Independent: two passes in float64, in base 2. What no key contributes to is 0 and −∞.
Row brute_force(const Scores& scores, const std::vector<float>& values, std::size_t lane,
                double sink) {
  double max = sink;
  for (const auto& key : scores) max = std::fmax(max, static_cast<double>(key[lane]));
  if (max == -std::numeric_limits<double>::infinity()) return {};
  double sum = std::exp2(sink - max), out = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double p = std::exp2(static_cast<double>(scores[j][lane]) - max);
    sum += p;
    out += p * static_cast<double>(values[j]);
  }
  return {out / sum, (max + std::log2(sum)) * 0.6931471805599453};
}

// State and O of some keys.
template <class L>
struct Partial {
  kernel::SoftmaxState<typename L::Value> state = kernel::empty_state<L>();
  typename L::Value out = L::broadcast(0.0f);
};

template <class L>
typename L::Value load(const std::vector<float>& lanes) {
  typename L::Value v{};
  for (int i = 0; i < LaneAccess<L>::kWidth; ++i)
    LaneAccess<L>::set(v, i, lanes[static_cast<std::size_t>(i)]);
  return v;
}

// One tile: keys [from, to) of the order.
template <class L>
void add_tile(Partial<L>& p, const Scores& scores, const std::vector<float>& values,
              const std::vector<std::size_t>& order, std::size_t from, std::size_t to,
              bool lazily) {
  auto tile_max = L::broadcast(kernel::kMinusInfinity);
  for (std::size_t t = from; t < to; ++t)
    tile_max = kernel::observe<L>(tile_max, load<L>(scores[order[t]]));
  p.out = p.out * (lazily ? kernel::advance_lazily<L>(p.state, tile_max)
                          : kernel::advance<L>(p.state, tile_max));
  const auto origin = kernel::origin<L>(p.state.max);
  for (std::size_t t = from; t < to; ++t) {
    const auto w = kernel::weight<L>(load<L>(scores[order[t]]), origin);
    p.state.sum = p.state.sum + w;
    p.out = L::fma(w, L::broadcast(values[order[t]]), p.out);
  }
}

template <class L>
Partial<L> compute(const Scores& scores, const std::vector<float>& values,
                   const std::vector<std::size_t>& order, std::size_t from, std::size_t to,
                   std::mt19937& random) {
  Partial<L> p;
  const auto lazy_tiles = random() % 3;  // none, about half, all
  while (from < to) {
    const std::size_t end = std::min(to, from + 1 + random() % 9);
    add_tile(p, scores, values, order, from, end, random() % 2 < lazy_tiles);
    from = end;
  }
  return p;
}

template <class L>
void expect_rows(const Partial<L>& p, const Scores& scores, const std::vector<float>& values,
                 double sink, const char* what) {
  const auto out = p.out * kernel::inverse_sum<L>(p.state);
  for (int lane = 0; lane < LaneAccess<L>::kWidth; ++lane) {
    const Row expected = brute_force(scores, values, static_cast<std::size_t>(lane), sink);
    const auto got = static_cast<double>(LaneAccess<L>::get(out, lane));
    const auto lse = static_cast<double>(kernel::log_sum_exp(
        LaneAccess<L>::get(p.state.max, lane), LaneAccess<L>::get(p.state.sum, lane)));
    if (std::isnan(expected.out)) {
      EXPECT_TRUE(std::isnan(got)) << what;
      EXPECT_TRUE(std::isnan(lse)) << what;
      continue;
    }
    EXPECT_NEAR(got, expected.out, 2e-6) << what << " lane " << lane;
    if (std::isinf(expected.lse)) {
      EXPECT_EQ(lse, expected.lse) << what;
    } else {
      EXPECT_NEAR(lse, expected.lse, 1e-6 * std::max(1.0, std::fabs(expected.lse))) << what;
    }
  }
}

template <class L>
class Softmax : public ::testing::Test {
 protected:
  std::mt19937 random_{7};

  std::vector<float> values(std::size_t keys) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> v(keys);
    for (float& x : v) x = uniform(random_);
    return v;
  }
  template <class F>
  Scores scores(std::size_t keys, F f) {
    Scores s(keys, std::vector<float>(LaneAccess<L>::kWidth));
    for (auto& key : s) {
      for (float& x : key) x = f();
    }
    return s;
  }
  std::vector<std::size_t> any_order(std::size_t keys) {
    std::vector<std::size_t> order(keys);
    for (std::size_t i = 0; i < keys; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }
  // In a random order and random tiles, and as random splits merged in random order.
  void check(const Scores& s, const char* what) {
    const std::vector<float> v = values(s.size());
    for (int repeat = 0; repeat < 20; ++repeat) {
      const auto order = any_order(s.size());
      expect_rows(compute<L>(s, v, order, 0, s.size(), random_), s, v, kernel::kMinusInfinity,
                  what);
      std::vector<Partial<L>> parts(1);
      for (std::size_t from = 0; from < s.size();) {
        const std::size_t to = std::min<std::size_t>(s.size(), from + random_() % 12);
        parts.push_back(compute<L>(s, v, order, from, to, random_));
        from = to;
      }
      while (parts.size() > 1) {
        std::swap(parts[random_() % parts.size()], parts.back());
        const Partial<L> last = parts.back();
        parts.pop_back();
        Partial<L>& into = parts[random_() % parts.size()];
        const auto factor = kernel::merge<L>(into.state, last.state);
        into.out = L::fma(into.out, factor.a, last.out * factor.b);
      }
      expect_rows(parts[0], s, v, kernel::kMinusInfinity, what);
    }
  }
};
using Policies = ::testing::Types<kernel::ScalarLanes, FourLanes>;
TYPED_TEST_SUITE(Softmax, Policies);

TYPED_TEST(Softmax, Gaussian) {
  std::normal_distribution<float> normal(0, 6);
  for (const std::size_t keys : {1u, 2u, 7u, 64u, 201u}) {
    this->check(this->scores(keys, [&] { return normal(this->random_); }), "gaussian");
  }
}

TYPED_TEST(Softmax, FarFromZero) {
  for (const float offset : {1e4f, -1e4f, -6e4f}) {
    std::uniform_real_distribution<float> uniform(-40, 40);
    this->check(this->scores(50, [&] { return offset + uniform(this->random_); }), "offset");
  }
}

// No sentinel lies above these: a row of them is a row like any other.
TYPED_TEST(Softmax, VeryLow) {
  this->check(this->scores(30, [] { return -1e33f; }), "uniform -1e33");
  this->check(this->scores(30, [] { return kernel::kMostNegative; }), "most negative");
  this->check(this->scores(30, [&] { return this->random_() % 2 ? -3e38f : -1e33f; }),
              "two very low");
  this->check(
      this->scores(
          30, [&] { return this->random_() % 2 ? kernel::kMostNegative : -kernel::kMostNegative; }),
      "both ends");
}

TYPED_TEST(Softmax, MinusInfinityIsNothing) {
  std::normal_distribution<float> normal(0, 3);
  this->check(
      this->scores(40, [&] { return this->random_() % 3 ? -kInfinity : normal(this->random_); }),
      "some hidden");
  this->check(this->scores(40, [&] { return this->random_() % 25 ? -kInfinity : -2e38f; }),
              "most hidden, rest very low");
  this->check(this->scores(40, [] { return -kInfinity; }), "all hidden");
  this->check({}, "no key");
}

TYPED_TEST(Softmax, NaNAndPlusInfinityShow) {
  std::normal_distribution<float> normal(0, 3);
  for (const float bad : {kNaN, kInfinity}) {
    for (std::size_t at = 0; at < 20; ++at) {
      Scores s = this->scores(20, [&] { return normal(this->random_); });
      for (float& x : s[at]) x = bad;
      // Whatever the order: in float64, too, the row is NaN.
      const std::vector<float> v = this->values(20);
      const auto p = compute<TypeParam>(s, v, this->any_order(20), 0, 20, this->random_);
      const auto out = p.out * kernel::inverse_sum<TypeParam>(p.state);
      for (int lane = 0; lane < LaneAccess<TypeParam>::kWidth; ++lane) {
        EXPECT_TRUE(std::isnan(LaneAccess<TypeParam>::get(out, lane)));
        EXPECT_TRUE(std::isnan(kernel::log_sum_exp(LaneAccess<TypeParam>::get(p.state.max, lane),
                                                   LaneAccess<TypeParam>::get(p.state.sum, lane))));
      }
    }
  }
}

// Half a unit in the last place of the largest term, and the logarithm's own: nothing for the way
// to natural units.
TEST(SoftmaxEnd, LogSumExpIsRoundedOnce) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> exponent(-3, 12), count(0, 14);
  for (int i = 0; i < 20000; ++i) {
    const float max = (i % 2 ? -1.0f : 1.0f) * std::exp2(exponent(random));
    const float sum = std::exp2(count(random));
    const double rest = std::log(static_cast<double>(sum));
    const double expected = static_cast<double>(max) * std::numbers::ln2 + rest;
    EXPECT_NEAR(kernel::log_sum_exp(max, sum), expected,
                0x1p-24 * std::fabs(expected) + 0x1p-22 * rest + 1e-12)
        << max << " " << sum;
  }
}

TEST(SoftmaxEnd, SinkProbabilityIsOfBothAsTheyAre) {
  std::mt19937 random(6);
  std::uniform_real_distribution<float> any(-90, 90), below(-80, 0);
  for (int i = 0; i < 20000; ++i) {
    const float lse = any(random), sink = lse + below(random);
    const double expected = std::exp(static_cast<double>(sink) - static_cast<double>(lse));
    EXPECT_NEAR(kernel::sink_probability(sink, lse), expected, 1e-12 * expected);
  }
  EXPECT_EQ(kernel::sink_probability(1e30f, 9.9999e29f), 1);  // an lse that was rounded
  EXPECT_EQ(kernel::sink_probability(-kInfinity, 3), 0);
  EXPECT_TRUE(std::isnan(kernel::sink_probability(kNaN, 0)));
  EXPECT_TRUE(std::isnan(kernel::sink_probability(0, kNaN)));
}

// NaN in one lane leaves the others alone.
TEST(SoftmaxLanes, AreIndependent) {
  std::mt19937 random(3);
  Scores s(10, {0.0f, 1.0f, -kInfinity, 2.0f});
  s[4][0] = kNaN;
  const std::vector<float> v(10, 3.0f);
  std::vector<std::size_t> order{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto p = compute<FourLanes>(s, v, order, 0, 10, random);
  const auto out = p.out * kernel::inverse_sum<FourLanes>(p.state);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 3.0f);
  EXPECT_EQ(out[2], 0.0f);
  EXPECT_EQ(out[3], 3.0f);
}

TYPED_TEST(Softmax, HideReplacesWhatever) {
  using L = TypeParam;
  const kernel::Interval<typename L::Index> see{L::whole(3), L::whole(5)};
  for (const float score : {1.0f, kNaN, kInfinity, -kInfinity}) {
    for (int j = 0; j < 8; ++j) {
      const float got =
          LaneAccess<L>::get(kernel::hide<L>(L::broadcast(score), see, L::whole(j)), 0);
      if (j < 3 || j >= 5) {
        EXPECT_EQ(got, -kInfinity);
      } else {
        EXPECT_TRUE(got == score || (std::isnan(got) && std::isnan(score)));
      }
    }
  }
}

TYPED_TEST(Softmax, Sinks) {
  using L = TypeParam;
  std::normal_distribution<float> normal(0, 3);
  for (const float sink : {-kInfinity, -3e38f, -5.0f, 0.0f, 4.0f, 300.0f}) {
    for (const std::size_t keys : {0u, 1u, 20u}) {
      for (const bool hidden : {false, true}) {
        const Scores s =
            this->scores(keys, [&] { return hidden ? -kInfinity : normal(this->random_); });
        const std::vector<float> v = this->values(keys);
        Partial<L> p = compute<L>(s, v, this->any_order(keys), 0, keys, this->random_);
        p.out = p.out * kernel::add_sink<L>(p.state, L::broadcast(sink));
        expect_rows(p, s, v, static_cast<double>(sink), "sink");
      }
    }
  }
}

// What the merge of empty states leaves, to the bit.
TYPED_TEST(Softmax, EmptyIsNeutral) {
  using L = TypeParam;
  auto state = kernel::empty_state<L>();
  const auto empty = kernel::empty_state<L>();
  kernel::merge<L>(state, empty);
  EXPECT_EQ(LaneAccess<L>::get(state.max, 0), -kInfinity);
  EXPECT_EQ(LaneAccess<L>::get(state.sum, 0), 0.0f);
  for (const float max : {-3e38f, -1.5f, 0.0f, 7.25f, 3e38f}) {
    const kernel::SoftmaxState<typename L::Value> some{L::broadcast(max), L::broadcast(1.75f)};
    auto left = some, right = empty;
    const auto factor = kernel::merge<L>(left, empty);
    kernel::merge<L>(right, some);
    EXPECT_EQ(LaneAccess<L>::get(factor.a, 0), 1.0f);
    for (const auto& merged : {left, right}) {
      EXPECT_EQ(LaneAccess<L>::get(merged.max, 0), max);
      EXPECT_EQ(LaneAccess<L>::get(merged.sum, 0), 1.75f);
    }
  }
}

TYPED_TEST(Softmax, LazyRowsMoveByMoreThanFour) {
  using L = TypeParam;
  for (const float first : {-3e5f, -7.0f, 0.0f, 1e3f}) {
    for (const float rise : {-50.0f, 0.0f, 3.75f, 4.0f, 4.25f, 60.0f}) {
      auto state = kernel::empty_state<L>();
      // Out of nothing to the first tile's maximum.
      EXPECT_EQ(LaneAccess<L>::get(kernel::advance_lazily<L>(state, L::broadcast(first)), 0), 0.0f);
      EXPECT_EQ(LaneAccess<L>::get(state.max, 0), first);
      state.sum = L::broadcast(2.0f);
      const auto factor = kernel::advance_lazily<L>(state, L::broadcast(first + rise));
      const bool moves = rise > 4;
      EXPECT_EQ(LaneAccess<L>::get(state.max, 0), moves ? first + rise : first);
      const float expected = moves ? std::exp2(-rise) : 1.0f;
      EXPECT_NEAR(LaneAccess<L>::get(factor, 0), expected, 1e-6f * expected);
      EXPECT_NEAR(LaneAccess<L>::get(state.sum, 0), 2 * expected, 2e-6f * expected);
    }
  }
}

TYPED_TEST(Softmax, LazyRowsMoveExactlyIfTheyMust) {
  using L = TypeParam;
  for (const float rise : {-50.0f, 0.0f, 3.75f, 60.0f}) {
    kernel::SoftmaxState<typename L::Value> lazy{L::broadcast(-7.0f), L::broadcast(2.0f)};
    auto exact = lazy;
    const auto tile_max = L::broadcast(-7.0f + rise);
    const auto factor = kernel::advance_lazily<L>(lazy, tile_max, true);
    EXPECT_EQ(LaneAccess<L>::get(factor, 0),
              LaneAccess<L>::get(kernel::advance<L>(exact, tile_max), 0));
    EXPECT_EQ(LaneAccess<L>::get(lazy.max, 0), LaneAccess<L>::get(exact.max, 0));
    EXPECT_EQ(LaneAccess<L>::get(lazy.sum, 0), LaneAccess<L>::get(exact.sum, 0));
  }
}

// Both policies compute the same bits.
TEST(SoftmaxLanes, EqualScalars) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 20);
  Scores s(100, std::vector<float>(4));
  for (auto& key : s) {
    for (float& x : key) x = random() % 5 ? normal(random) : -kInfinity;
  }
  std::vector<float> v(100);
  for (float& x : v) x = normal(random);
  std::vector<std::size_t> order(100);
  for (std::size_t i = 0; i < 100; ++i) order[i] = i;
  std::mt19937 tiles(5);
  const auto four = compute<FourLanes>(s, v, order, 0, 100, tiles);
  for (std::size_t lane = 0; lane < 4; ++lane) {
    Scores one(100);
    for (std::size_t j = 0; j < 100; ++j) one[j] = {s[j][lane]};
    tiles.seed(5);
    const auto scalar = compute<kernel::ScalarLanes>(one, v, order, 0, 100, tiles);
    EXPECT_EQ(four.state.max[static_cast<int>(lane)], scalar.state.max);
    EXPECT_EQ(four.state.sum[static_cast<int>(lane)], scalar.state.sum);
    EXPECT_EQ(four.out[static_cast<int>(lane)], scalar.out);
  }
}

}  // namespace
}  // namespace tessera::testing
