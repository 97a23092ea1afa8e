// The float64 and the plain forward against brute force, for every option.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/fill.hpp"
#include "reference/number.hpp"
#include "reference/reference.hpp"
#include "tests/unit/reference/sample.hpp"

namespace tessera::testing {
namespace {

using reference::Forward;

class ForwardReference : public ::testing::TestWithParam<Traits> {};
INSTANTIATE_TEST_SUITE_P(All, ForwardReference, ::testing::ValuesIn(all_traits()),
                         [](const auto& instance) { return instance.param.name; });

void expect_near(double actual, long double expected, long double tolerance, const char* what,
                 std::size_t i) {
  if (std::isinf(expected)) {
    EXPECT_EQ(actual, static_cast<double>(expected)) << what << ' ' << i;
  } else {
    EXPECT_LE(std::abs(actual - expected), tolerance)
        << what << ' ' << i << ": " << actual << ' ' << expected;
  }
}

TEST_P(ForwardReference, Float64EqualsBruteForce) {
  const Sample sample(GetParam());
  const BruteForward brute = brute_forward(sample);
  const Forward ref = reference::forward(sample.args, sample.options);
  ASSERT_EQ(ref.out.size(), brute.out.size());
  ASSERT_EQ(ref.lse.size(), brute.lse.size());
  for (std::size_t i = 0; i < brute.out.size(); ++i)
    expect_near(ref.out[i], brute.out[i], 1e-12L, "out", i);
  for (std::size_t i = 0; i < brute.lse.size(); ++i) {
    expect_near(ref.lse[i], brute.lse[i], 1e-12L * (1 + std::abs(brute.lse[i])), "lse", i);
    expect_near(ref.magnitude[i], brute.magnitude[i], 1e-12L, "magnitude", i);
    expect_near(ref.score_magnitude[i], brute.score_magnitude[i],
                1e-12L * (1 + brute.score_magnitude[i]), "score_magnitude", i);
  }
}

// P is rounded once (u·A), the result once (u·|out|); the rest is float32.
TEST_P(ForwardReference, PlainIsAsFarOffAsItsRoundings) {
  const Sample sample(GetParam());
  const BruteForward brute = brute_forward(sample);
  const Forward low = reference::forward_low(sample.args, sample.options);
  const long double u =
      GetParam().dtype == DType::fp32 ? 0 : reference::unit_roundoff(GetParam().dtype);
  const auto dim = static_cast<std::size_t>(GetParam().dim_v);
  for (std::size_t i = 0; i < brute.out.size(); ++i) {
    const long double magnitude = brute.magnitude[i / dim];
    const long double single = 4e-6L * (1 + brute.score_magnitude[i / dim]) * magnitude;
    expect_near(low.out[i], brute.out[i], 1.01L * u * (magnitude + std::abs(brute.out[i])) + single,
                "out", i);
    EXPECT_EQ(low.out[i], reference::round_to(GetParam().dtype, low.out[i]));
  }
  for (std::size_t i = 0; i < brute.lse.size(); ++i) {
    expect_near(low.lse[i], brute.lse[i],
                2e-6L * (1 + std::abs(brute.lse[i]) + brute.score_magnitude[i]), "lse", i);
  }
}

TEST_P(ForwardReference, JudgeAcceptsThePlainComputationAndRejectsZeros) {
  Sample sample(GetParam());
  const Forward ref = reference::forward(sample.args, sample.options);
  const Forward low = reference::forward_low(sample.args, sample.options);
  reference::from_doubles(low.out, sample.out);
  reference::from_doubles(low.lse, sample.lse);
  const auto verdict = judge(sample.args, sample.options, ref, low);
  EXPECT_TRUE(verdict.pass) << verdict.text;
  EXPECT_EQ(verdict.text, "");
  EXPECT_EQ(verdict.reference_nan, 0);
  const bool nonzero = std::ranges::any_of(ref.out, [](double x) { return x != 0; });
  reference::fill_constant(sample.out, 0);
  EXPECT_EQ(judge(sample.args, sample.options, ref, low).pass, !nonzero);
}

// One head, two keys whose scores are `score` and 0.
struct TwoKeys {
  TwoKeys(DType dtype, double score, double v0, double v1, std::int64_t dim = 1)
      : sample({.name = "",
                .dtype = dtype,
                .batch = 1,
                .head_q = 1,
                .head_k = 1,
                .seq_q = 1,
                .seq_k = 2,
                .dim = dim,
                .dim_v = 1,
                .scale = 1}) {
    set(sample.args.query, {1});
    set(sample.args.key, {score, 0});
    set(sample.args.value, {v0, v1});
  }
  static void set(const ConstTensor& t, const std::vector<double>& values) {
    reference::from_doubles(values, {const_cast<void*>(t.data), t.dtype, t.extent, t.stride});
  }
  double low() { return reference::forward_low(sample.args, sample.options).out[0]; }
  double ref() { return reference::forward(sample.args, sample.options).out[0]; }
  Sample sample;
};

TEST(ForwardPlain, RoundsTheUnnormalisedWeightsOnceAndDividesByTheirUnroundedSum) {
  for (DType type : {DType::fp16, DType::bf16}) {
    TwoKeys keys(type, 1, 0, 1);
    const double weight = reference::round_to(type, static_cast<double>(std::exp(-1.0f)));
    const double sum = 1 + static_cast<double>(std::exp(-1.0f));
    EXPECT_NE(weight, static_cast<double>(std::exp(-1.0f)));
    EXPECT_EQ(keys.low(), reference::round_to(type, weight / sum));
  }
}

TEST(ForwardPlain, Fp16AccumulationRoundsProducts) {
  TwoKeys keys(DType::fp16, 2051, 0, 1);
  TwoKeys::set(keys.sample.args.query, {1});
  TwoKeys::set(keys.sample.args.key, {2050, 2048});
  keys.sample.args.scale = 0.5f;
  const double exact = keys.low();
  EXPECT_NEAR(exact, std::exp(-1) / (1 + std::exp(-1)), 1e-3);
  // 1.5 · 1367 = 2050.5 rounds to 2050 and 1.5 · 1366 = 2049 to 2048: the scores differ by 2,
  // not 1.5.
  TwoKeys::set(keys.sample.args.query, {1.5});
  TwoKeys::set(keys.sample.args.key, {1367, 1366});
  keys.sample.args.scale = 1.0f;
  EXPECT_NEAR(keys.low(), std::exp(-1.5) / (1 + std::exp(-1.5)), 1e-3);
  keys.sample.options.accumulate = Accumulate::fp16;
  EXPECT_NEAR(keys.low(), std::exp(-2) / (1 + std::exp(-2)), 1e-3);
  // P·V = 2048 + 3 · exp(−2)…: rounded to a multiple of 2 before it is divided.
  TwoKeys::set(keys.sample.args.value, {2048, 2050});
  const double product = 2048 + reference::round_to(DType::fp16, std::exp(-2.0)) * 2050;
  const double rounded = reference::round_to(DType::fp16, product);
  EXPECT_NE(product, rounded);
  EXPECT_EQ(keys.low(),
            reference::round_to(DType::fp16, rounded / (1 + static_cast<double>(std::exp(-2.0f)))));
}

TEST(ForwardCases, ASinkFarAboveTheScoresLeavesThePlainWeightsPrecise) {
  TwoKeys keys(DType::fp16, 1, 3e4, -1e4);
  float sink = 20;
  keys.sample.args.sinks = ConstTensor::per_head(&sink, DType::fp32, 1);
  EXPECT_NEAR(keys.low() / keys.ref(), 1, 4e-3);
  EXPECT_GT(keys.ref(), 0);
}

TEST(ForwardCases, TheMostNegativeBiasHidesNothing) {
  for (DType type : {DType::fp32, DType::bf16, DType::fp16}) {
    const double lowest = type == DType::fp16   ? -65504
                          : type == DType::bf16 ? -0x1.fep127
                                                : -0x1.fffffep127;
    const double score = type == DType::fp16 ? 0 : 3;
    TwoKeys keys(type, score, 1, 3);
    std::vector<char> memory(8);
    for (std::int64_t j = 0; j < 2; ++j) reference::store(type, memory.data(), j, lowest);
    keys.sample.args.bias = ConstTensor::bhsd(memory.data(), type, {1, 1, 1, 2});
    EXPECT_EQ(keys.low(), 2) << to_string(type);
    EXPECT_NEAR(keys.ref(), 2, 1e-12);
    TwoKeys::set(keys.sample.args.query, {-1e20});  // the sum overflows float32
    if (type != DType::fp16) {
      TwoKeys::set(keys.sample.args.key, {1e18, 1e17});
      EXPECT_EQ(keys.low(), 2) << to_string(type);
    }
  }
}

TEST(ForwardCases, NanReachesThoseWhoSeeIt) {
  Sample sample({.name = "",
                 .mask = Mask::causal(Alignment::TopLeft),
                 .batch = 1,
                 .head_q = 1,
                 .head_k = 1,
                 .seq_q = 8,
                 .seq_k = 8});
  const auto poison = [&](const ConstTensor& t, std::int64_t row) {
    for (std::int64_t d = 0; d < t.extent.dim; ++d) {
      reference::store(t.dtype, const_cast<void*>(t.data), row * t.stride.seq + d, NAN);
    }
  };
  const auto nan_rows = [&](const Forward& f) {
    std::vector<int> rows;
    for (int i = 0; i < 8; ++i) {
      const auto first = f.out.begin() + i * f.dim;
      const bool any = std::any_of(first, first + f.dim, [](double x) { return std::isnan(x); });
      const bool all = std::all_of(first, first + f.dim, [](double x) { return std::isnan(x); });
      EXPECT_EQ(any, all);
      if (any) rows.push_back(i);
    }
    return rows;
  };
  using ::testing::ElementsAre;
  poison(sample.args.key, 5);
  EXPECT_THAT(nan_rows(reference::forward(sample.args, sample.options)), ElementsAre(5, 6, 7));
  EXPECT_THAT(nan_rows(reference::forward_low(sample.args, sample.options)), ElementsAre(5, 6, 7));
  poison(sample.args.value, 3);
  EXPECT_THAT(nan_rows(reference::forward(sample.args, sample.options)),
              ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(nan_rows(reference::forward_low(sample.args, sample.options)),
              ElementsAre(3, 4, 5, 6, 7));
  poison(sample.args.query, 1);
  EXPECT_THAT(nan_rows(reference::forward(sample.args, sample.options)),
              ElementsAre(1, 3, 4, 5, 6, 7));
  const std::int32_t end = 3;
  sample.args.key_end = {&end, DType::int32, 1};
  EXPECT_THAT(nan_rows(reference::forward(sample.args, sample.options)), ElementsAre(1));
  std::vector<std::uint8_t> mask(64, 1);
  mask[8] = mask[9] = 0;
  sample.args.boolean_mask = ConstTensor::bhsd(mask.data(), DType::uint8, {1, 1, 8, 8});
  EXPECT_THAT(nan_rows(reference::forward(sample.args, sample.options)), ElementsAre());
}

// A huge axis beside one of 0, and many segments without rows beside many heads: what is not there
// takes no time and no memory, and passes.
TEST(ForwardCases, NoRowsAreNoWork) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  float memory = 0;
  const std::vector<std::int32_t> starts(1 << 20, 0);
  const auto expect_nothing = [&](const Extents& q, const Extents& k, bool packed) {
    Args args{.query = ConstTensor::bhsd(&memory, DType::fp32, q),
              .key = ConstTensor::bhsd(&memory, DType::fp32, k),
              .value = ConstTensor::bhsd(&memory, DType::fp32, k),
              .out = Tensor::bhsd(&memory, DType::fp32, q),
              .lse = Tensor::lse(&memory, q.batch, q.head, q.seq)};
    if (packed) {
      args.cu_seqlens_q = args.cu_seqlens_k = {starts.data(), DType::int32,
                                               static_cast<std::int64_t>(starts.size())};
    }
    const Forward ref = reference::forward(args, {});
    const Forward low = reference::forward_low(args, {});
    EXPECT_TRUE(ref.out.empty() && ref.lse.empty() && low.out.empty());
    const auto verdict = judge(args, {}, ref, low);
    EXPECT_TRUE(verdict.pass);
    EXPECT_EQ(verdict.worst_ratio, 0);
    const reference::Backward gradients = reference::backward(args, {}, args.out);
    EXPECT_EQ(gradients.dq.size(), 0u);
    EXPECT_THAT(gradients.dk, ::testing::Each(0.0));
  };
  expect_nothing({kHuge, 2, 0, 8}, {kHuge, 2, 0, 8}, false);
  expect_nothing({kHuge, 0, 5, 8}, {kHuge, 0, 5, 8}, false);
  expect_nothing({2, kHuge, 0, 8}, {2, kHuge, 0, 8}, false);
  expect_nothing({1, kHuge, 0, 8}, {1, 1, 0, 8}, false);
  expect_nothing({1, kHuge, 0, 8}, {1, kHuge, 0, 8}, true);
}

TEST(ForwardCases, DropoutReadsSeedAndOffsetFromTheDevice) {
  Sample sample({.name = "", .dropout = 0.5});
  const Forward by_value = reference::forward(sample.args, sample.options);
  const std::uint64_t seed = sample.args.seed, offset = sample.args.offset;
  sample.args.seed = sample.args.offset = 0;
  EXPECT_NE(reference::forward(sample.args, sample.options).out, by_value.out);
  sample.args.seed_device = &seed;
  sample.args.offset_device = &offset;
  EXPECT_EQ(reference::forward(sample.args, sample.options).out, by_value.out);
}

TEST(ForwardCases, ManyThreadsGiveTheSameBits) {
  // Large enough to be spread over threads; one row alone is computed by one.
  Sample sample({.name = "",
                 .mask = Mask::causal(Alignment::BottomRight),
                 .batch = 1,
                 .head_q = 2,
                 .head_k = 1,
                 .seq_q = 400,
                 .seq_k = 500,
                 .dim = 64,
                 .dim_v = 64});
  const Forward first = reference::forward(sample.args, sample.options);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(reference::forward(sample.args, sample.options).out, first.out);
  Sample brute({.name = "",
                .mask = Mask::causal(Alignment::BottomRight),
                .batch = 1,
                .head_q = 2,
                .head_k = 1,
                .seq_q = 400,
                .seq_k = 500,
                .dim = 64,
                .dim_v = 64});
  brute.args.query.data = static_cast<const float*>(brute.args.query.data) + 390 * 64;
  brute.args.query.extent.seq = 10;
  const Forward last = reference::forward(brute.args, brute.options);
  for (std::int64_t i = 0; i < 10 * 64; ++i) {
    EXPECT_NEAR(last.out[static_cast<std::size_t>(i)],
                first.out[static_cast<std::size_t>(390 * 64 + i)], 1e-12);
  }
}

}  // namespace
}  // namespace tessera::testing
