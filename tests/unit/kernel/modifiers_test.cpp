// Score modifiers against float64: tanh over all floats, distances of ALiBi wherever a tile lies,
// biases that overflow.

#include "core/kernel/modifiers.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>

#include "core/kernel/softmax.hpp"
#include "tests/unit/kernel/vector_lanes.hpp"

namespace tessera::testing {
namespace {

using kernel::ForwardArguments;
using kernel::Index;
using kernel::ScalarLanes;
using kernel::ScoreModifiers;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kBf16Max = 0x1.FEp127f;
constexpr double kLog2E = 1.4426950408889634074;

// exp2 with the largest error that a policy may have, upwards or downwards.
template <int kSign>
struct WorstExp2 : ScalarLanes {
  static float exp2(float x) {
    const double error = kSign * 2.5e-7;
    return x <= -127.0f ? 0.0f
                        : static_cast<float>(std::exp2(static_cast<double>(x)) * (1 + error));
  }
};

// Error in units of the last place of the exact value.
double ulps(float got, long double exact) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  const long double unit = std::ldexp(1.0L, std::max(exponent - 24, -149));
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / unit);
}

template <class L>
float lane0(const typename L::Value& v) {
  if constexpr (std::is_same_v<typename L::Value, float>) {
    return v;
  } else {
    return v[0];
  }
}

template <class L>
class Tanh : public ::testing::Test {};
using TanhPolicies = ::testing::Types<ScalarLanes, FourLanes, WorstExp2<1>, WorstExp2<-1>>;
TYPED_TEST_SUITE(Tanh, TanhPolicies);

TYPED_TEST(Tanh, WithinThreeUlp) {
  using L = TypeParam;
  double worst = 0;
  float worst_at = 0;
  const auto check = [&](std::uint32_t bits) {
    const float x = std::bit_cast<float>(bits);
    const float y = lane0<L>(kernel::tanh<L>(L::broadcast(x)));
    const float mirrored = lane0<L>(kernel::tanh<L>(L::broadcast(-x)));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(mirrored), std::bit_cast<std::uint32_t>(y) ^ 0x80000000u)
        << x;
    const double error = ulps(y, std::tanh(static_cast<long double>(x)));
    if (error > worst) worst = error, worst_at = x;
  };
  for (std::uint32_t bits = 0; bits < 0x7F800000u; bits += 3989) check(bits);  // all magnitudes
  for (std::uint32_t bits = 0x3E000000u; bits < 0x41200000u; bits += 127)
    check(bits);  // 0.125 to 10
  EXPECT_LE(worst, 3.0) << "at " << worst_at;
  ::testing::Test::RecordProperty("worst_ulp", std::to_string(worst));
}

TYPED_TEST(Tanh, Ends) {
  using L = TypeParam;
  const auto at = [](float x) { return lane0<L>(kernel::tanh<L>(L::broadcast(x))); };
  EXPECT_EQ(at(kInfinity), 1.0f);
  EXPECT_EQ(at(-kInfinity), -1.0f);
  EXPECT_EQ(at(kMax), 1.0f);
  EXPECT_TRUE(std::isnan(at(kNaN)));
  EXPECT_EQ(std::bit_cast<std::uint32_t>(at(-0.0f)), 0x80000000u);
  EXPECT_EQ(at(std::numeric_limits<float>::denorm_min()), std::numeric_limits<float>::denorm_min());
}

template <class L>
class Modifiers : public ::testing::Test {};
using Policies = ::testing::Types<ScalarLanes, FourLanes>;
TYPED_TEST_SUITE(Modifiers, Policies);

template <class L>
float distance_at(Index diagonal, Index row_first, Index key_first, int i, int j) {
  const auto tile = kernel::distance_to(diagonal, row_first, key_first);
  return lane0<L>(kernel::distance<L>(tile, L::whole(i), L::whole(j)));
}

TYPED_TEST(Modifiers, DistanceIsRoundedOnce) {
  std::mt19937_64 random(1);
  for (int repeat = 0; repeat < 50000; ++repeat) {
    const int bits = static_cast<int>(random() % 46);
    const Index span = Index{1} << bits;
    const auto position = [&] {
      return static_cast<Index>(random() % static_cast<std::uint64_t>(span));
    };
    const Index row = position(), key = position(), diagonal = position() - position();
    const int i = static_cast<int>(random() % 4096), j = static_cast<int>(random() % 4096);
    const Index exact = row + i + diagonal - key - j;
    ASSERT_EQ(distance_at<TypeParam>(diagonal, row, key, i, j),
              static_cast<float>(exact < 0 ? -exact : exact))
        << row << ' ' << diagonal << ' ' << key;
  }
}

TYPED_TEST(Modifiers, DistanceAtTheEdges) {
  for (const Index origin :
       {Index{0}, Index{1} << 23, (Index{1} << 23) - 1, -(Index{1} << 23), -(Index{1} << 23) - 1,
        Index{1} << 24, Index{1} << 31, -(Index{1} << 31), Index{1} << 40, -(Index{1} << 46)}) {
    for (const int d : {-3, -1, 0, 1, 3}) {
      const Index exact = origin + d;
      const auto expected = static_cast<float>(exact < 0 ? -exact : exact);
      EXPECT_EQ(distance_at<TypeParam>(origin, 0, 0, d + 5, 5), expected) << exact;
      EXPECT_EQ(distance_at<TypeParam>(0, origin, 0, d, 0), expected) << exact;
      EXPECT_EQ(distance_at<TypeParam>(0, 0, -origin, 0, -d), expected) << exact;
    }
  }
  // Beyond 2^47 rounded twice, at most one unit off, and nothing overflows.
  EXPECT_NEAR(static_cast<double>(distance_at<TypeParam>(0, Index{1} << 60, 0, 1, 0)), 0x1p60,
              0x1p37);
}

template <class L>
float bias_on(float score, float bias) {
  return lane0<L>(kernel::add_bias<L>(L::broadcast(score), L::broadcast(bias)));
}

TYPED_TEST(Modifiers, BiasAdds) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 50);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const float score = normal(random), bias = normal(random);
    const double exact = static_cast<double>(score) + static_cast<double>(bias) * kLog2E;
    ASSERT_NEAR(static_cast<double>(bias_on<TypeParam>(score, bias)), exact,
                1e-7 * (std::fabs(exact) + std::fabs(static_cast<double>(bias)) * kLog2E));
  }
}

TYPED_TEST(Modifiers, FiniteBiasSaturates) {
  using L = TypeParam;
  for (const float score : {0.0f, 12.5f, -1e4f, -1e33f, 1e33f}) {
    for (const float bias : {-kMax, -kBf16Max, -3e38f}) EXPECT_EQ(bias_on<L>(score, bias), -kMax);
    for (const float bias : {kMax, kBf16Max, 3e38f}) EXPECT_EQ(bias_on<L>(score, bias), kMax);
  }
  EXPECT_EQ(bias_on<L>(-kMax, -kMax), -kMax);
  EXPECT_EQ(bias_on<L>(0, -2e38f), -2e38f * kernel::kLog2E);  // does not overflow
  EXPECT_EQ(bias_on<L>(1, -65504.0f), std::fma(-65504.0f, kernel::kLog2E, 1.0f));
}

TYPED_TEST(Modifiers, InfinityAndNaN) {
  using L = TypeParam;
  for (const float score : {0.0f, -1e33f, kMax, kInfinity, -kInfinity, kNaN}) {
    EXPECT_EQ(bias_on<L>(score, -kInfinity), -kInfinity) << "hides, whatever the score";
  }
  EXPECT_EQ(bias_on<L>(0, kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(bias_on<L>(0, kNaN)));
  EXPECT_TRUE(std::isnan(bias_on<L>(kNaN, 1)));
  EXPECT_EQ(bias_on<L>(kInfinity, 1), kInfinity);
  EXPECT_EQ(bias_on<L>(kInfinity, -kMax), kInfinity);
  EXPECT_EQ(bias_on<L>(-kInfinity, 1), -kInfinity);
  EXPECT_TRUE(std::isnan(bias_on<L>(kInfinity, kNaN)));
}

TYPED_TEST(Modifiers, ToBase2) {
  using L = TypeParam;
  const auto at = [](float x) { return lane0<L>(kernel::to_base2<L>(L::broadcast(x))); };
  EXPECT_EQ(at(1), kernel::kLog2E);
  EXPECT_EQ(at(-2e38f), -2e38f * kernel::kLog2E);
  EXPECT_EQ(at(kMax), kMax);
  EXPECT_EQ(at(-kMax), -kMax);
  EXPECT_EQ(at(-2.5e38f), -kMax);
  EXPECT_EQ(at(kInfinity), kInfinity);
  EXPECT_EQ(at(-kInfinity), -kInfinity);
  EXPECT_TRUE(std::isnan(at(kNaN)));
}

// A row of nothing but the most negative bias: all weights are 1, whatever the scores.
TYPED_TEST(Modifiers, MostNegativeBiasIsUniform) {
  using L = TypeParam;
  for (const float lowest : {-kMax, -kBf16Max}) {
    const float first = bias_on<L>(-77.0f, lowest);
    EXPECT_GT(first, -kInfinity);
    for (const float score : {0.0f, 55.0f, -1e5f}) {
      const float weight = kernel::weight<ScalarLanes>(bias_on<L>(score, lowest),
                                                       kernel::origin<ScalarLanes>(first));
      EXPECT_EQ(weight, 1.0f);
    }
  }
}

template <class L>
float modify_one(const ScoreModifiers& m, float product, Index origin, int i, int j, float bias,
                 bool visible) {
  const auto tile = kernel::distance_to(origin, 0, 0);
  const auto predicate = L::less(L::whole(0), L::whole(visible ? 1 : 0));
  return lane0<L>(kernel::modify<L>(m, L::broadcast(product), tile, L::whole(i), L::whole(j),
                                    L::broadcast(bias), predicate));
}

// Every subset of modifiers against the formula in float64: scale, cap, ALiBi and bias, mask.
TYPED_TEST(Modifiers, InOrder) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 10);
  const float slopes[] = {9.0f, 9.0f,  9.0f,
                          9.0f, 0.25f, -0.5f};  // [batch 2][head 3]; used: batch 1
  const char data = 0;
  for (unsigned on = 0; on < 16; ++on) {
    for (int repeat = 0; repeat < 300; ++repeat) {
      ForwardArguments a;
      a.scale = repeat % 7 ? 0.3f : -0.2f;
      if (on & 1) a.softcap = 5.0f;
      if (on & 2) a.alibi_slopes = slopes, a.alibi_batch = 3, a.alibi_head = 1;
      if (on & 4) a.bias.data = &data;
      if (on & 8) a.boolean_mask.data = &data;
      const Index head = 1 + repeat % 2;
      const ScoreModifiers m = kernel::score_modifiers(a, 1, head);
      const float product = normal(random), bias = normal(random);
      const int i = static_cast<int>(random() % 50), j = static_cast<int>(random() % 50);
      const bool visible = random() % 2;
      double score = static_cast<double>(product) * static_cast<double>(a.scale);
      if (on & 1) score = 5 * std::tanh(score / 5);
      if (on & 2) score -= static_cast<double>(slopes[3 + head]) * std::abs(i + 17 - j);
      if (on & 4) score += static_cast<double>(bias);
      const float got = modify_one<TypeParam>(m, product, 17, i, j, bias, visible);
      if ((on & 8) && !visible) {
        ASSERT_EQ(got, -kInfinity);
      } else {
        ASSERT_NEAR(static_cast<double>(got), score * kLog2E, 3e-5) << "modifiers " << on;
      }
    }
  }
}

// What is off is not looked at.
TYPED_TEST(Modifiers, OffIsIgnored) {
  ForwardArguments a;
  a.scale = 0.5f;
  const ScoreModifiers m = kernel::score_modifiers(a, 0, 0);
  EXPECT_EQ(modify_one<TypeParam>(m, 3.0f, 0, 0, 0, kNaN, false), 3.0f * (0.5f * kernel::kLog2E));
}

TYPED_TEST(Modifiers, SoftcapEnds) {
  for (const float cap : {1e-40f, 1e-30f, 1.0f, 50.0f, 1e30f, kMax}) {
    ForwardArguments a;
    a.scale = 1, a.softcap = cap;
    const ScoreModifiers m = kernel::score_modifiers(a, 0, 0);
    const auto at = [&m](float product) {
      return modify_one<TypeParam>(m, product, 0, 0, 0, 0, true);
    };
    const float top = kernel::to_base2<ScalarLanes>(cap);
    EXPECT_EQ(at(0), 0.0f);
    EXPECT_EQ(at(kInfinity), top);
    EXPECT_EQ(at(-kInfinity), -top);
    EXPECT_TRUE(std::isnan(at(kNaN)));
    if (cap <= 1e30f) {
      EXPECT_EQ(at(1e38f), top);
      EXPECT_EQ(at(-1e38f), -top);
    }
  }
}

// Scale and cap may be far apart: their quotient stays finite, and a product of 0 a score of 0.
TYPED_TEST(Modifiers, ScaleOverSoftcapIsFinite) {
  for (const float scale : {1e10f, -1e10f, 2e38f}) {
    ForwardArguments a;
    a.scale = scale, a.softcap = 1e-30f;
    const ScoreModifiers m = kernel::score_modifiers(a, 0, 0);
    EXPECT_EQ(modify_one<TypeParam>(m, 0, 0, 0, 0, 0, true), 0.0f) << scale;
    const float top = kernel::to_base2<ScalarLanes>(scale > 0 ? a.softcap : -a.softcap);
    EXPECT_EQ(modify_one<TypeParam>(m, 1, 0, 0, 0, 0, true), top) << scale;
  }
}

// A mask hides NaN, too.
TYPED_TEST(Modifiers, MaskIsASelection) {
  ForwardArguments a;
  const char data = 0;
  a.boolean_mask.data = &data;
  const ScoreModifiers m = kernel::score_modifiers(a, 0, 0);
  EXPECT_EQ(modify_one<TypeParam>(m, kNaN, 0, 0, 0, 0, false), -kInfinity);
  EXPECT_TRUE(std::isnan(modify_one<TypeParam>(m, kNaN, 0, 0, 0, 0, true)));
}

// Steep slopes at far distances saturate as a bias does.
TYPED_TEST(Modifiers, AlibiSaturates) {
  const float slope = 1e35f;
  ForwardArguments a;
  a.alibi_slopes = &slope;
  const ScoreModifiers m = kernel::score_modifiers(a, 0, 0);
  EXPECT_EQ(modify_one<TypeParam>(m, 1, Index{1} << 40, 0, 0, 0, true), -kMax);
  EXPECT_EQ(modify_one<TypeParam>(m, kInfinity, Index{1} << 40, 0, 0, 0, true), kInfinity);
}

// Each lane has its own row, bias and mask; both policies compute the same bits.
TEST(ModifiersLanes, EqualScalars) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 20);
  const float slope = 0.125f;
  const char data = 0;
  ForwardArguments a;
  a.scale = 0.4f, a.softcap = 30, a.alibi_slopes = &slope, a.bias.data = &data,
  a.boolean_mask.data = &data;
  const ScoreModifiers m = kernel::score_modifiers(a, 0, 0);
  const auto tile = kernel::distance_to(-3, 1 << 20, 1 << 19);
  for (int repeat = 0; repeat < 2000; ++repeat) {
    FourLanes::Value product{}, bias{};
    FourLanes::Index row{}, visible{};
    for (int lane = 0; lane < 4; ++lane) {
      product[lane] = normal(random), bias[lane] = normal(random);
      row[lane] = static_cast<int>(random() % 512), visible[lane] = random() % 2 ? -1 : 0;
    }
    const int j = static_cast<int>(random() % 512);
    const auto four =
        kernel::modify<FourLanes>(m, product, tile, row, FourLanes::whole(j), bias, visible);
    for (int lane = 0; lane < 4; ++lane) {
      const float scalar = kernel::modify<ScalarLanes>(m, product[lane], tile, row[lane], j,
                                                       bias[lane], visible[lane] != 0);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(float{four[lane]}),
                std::bit_cast<std::uint32_t>(scalar));
    }
  }
}

}  // namespace
}  // namespace tessera::testing
