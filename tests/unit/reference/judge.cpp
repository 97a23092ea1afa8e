// The tolerance rule: what it accepts and what it must not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "reference/fill.hpp"
#include "reference/number.hpp"
#include "reference/reference.hpp"
#include "tests/unit/reference/sample.hpp"

namespace tessera::testing {
namespace {

using reference::Forward;
using reference::Verdict;
using ::testing::HasSubstr;

class Judge : public ::testing::TestWithParam<DType> {
 protected:
  Verdict verdict() const { return judge(sample.args, sample.options, ref, low); }
  void set(const std::vector<double>& out) { reference::from_doubles(out, sample.out); }
  void set_lse(const std::vector<double>& lse) { reference::from_doubles(lse, sample.lse); }

  // Causal, so that some rows see few keys; the last sequence's rows from the fifth on see nothing.
  Sample sample{{.name = "",
                 .dtype = GetParam(),
                 .mask = Mask::causal(Alignment::BottomRight),
                 .seq_q = 30,
                 .seq_k = 40,
                 .dim = 16,
                 .dim_v = 16,
                 .ranges = true}};
  Forward ref = reference::forward(sample.args, sample.options);
  Forward low = reference::forward_low(sample.args, sample.options);
  std::vector<double> good = low.out;

  void SetUp() override {
    set(good);
    set_lse(low.lse);
    ASSERT_TRUE(verdict().pass) << verdict().text;
    ASSERT_LE(verdict().worst_ratio, 0.5);
    ASSERT_GT(verdict().worst_ratio, 0);
  }
};
INSTANTIATE_TEST_SUITE_P(All, Judge, ::testing::Values(DType::fp32, DType::fp16, DType::bf16),
                         [](const auto& instance) {
                           return std::string(to_string(instance.param));
                         });

TEST_P(Judge, RejectsZeros) {
  set(std::vector<double>(good.size(), 0));
  EXPECT_FALSE(verdict().pass);
  EXPECT_THAT(verdict().text, HasSubstr("is 0, reference"));
}

// 4u of the largest value is allowed: 1.6 % for bf16, so that only more than that can be seen
// there.
TEST_P(Judge, RejectsAWrongScale) {
  const double factor = GetParam() == DType::bf16 ? 1.03 : 1.01;
  for (double f : {factor, 2 - factor}) {
    std::vector<double> out = ref.out;
    for (double& x : out) x *= f;
    set(out);
    EXPECT_FALSE(verdict().pass) << f;
  }
}

TEST_P(Judge, RejectsRowsShiftedByOne) {
  const auto dim = static_cast<std::size_t>(ref.dim);
  std::vector<double> out = ref.out;
  for (std::size_t i = dim; i < out.size(); ++i) out[i] = ref.out[i - dim];
  set(out);
  EXPECT_FALSE(verdict().pass);
}

TEST_P(Judge, RejectsOneWrongElementAndNamesIt) {
  const auto i = static_cast<std::size_t>(((1 * 4 + 2) * 30 + 17) * 16 + 5);
  good[i] += 0.25;
  set(good);
  EXPECT_FALSE(verdict().pass);
  EXPECT_THAT(verdict().text, HasSubstr("out[batch 1, head 2, row 17, column 5] is"));
  EXPECT_NEAR(verdict().max_abs, 0.25, 0.02);
}

// A small row is judged by its own size, not only by its head's.
TEST_P(Judge, RejectsAWrongSmallRow) {
  sample.args.softcap = 0;
  const std::size_t row = 20 * 16;
  Forward small_ref = ref, small_low = low;
  for (std::size_t d = 0; d < 16; ++d) {
    small_ref.out[row + d] *= 1e-6;
    small_low.out[row + d] = small_ref.out[row + d];
    good[row + d] = 1.3 * small_ref.out[row + d];
  }
  small_ref.magnitude[20] *= 1e-6;
  set(good);
  EXPECT_FALSE(judge(sample.args, sample.options, small_ref, small_low).pass);
}

TEST_P(Judge, WantsExactZerosWhereNothingIsSeen) {
  const std::size_t hidden = 29 * 16 + 3;  // query_end of the first sequence is 29
  ASSERT_EQ(ref.out[hidden], 0);
  ASSERT_EQ(ref.lse[29], -INFINITY);
  good[hidden] = 1e-4;
  set(good);
  EXPECT_FALSE(verdict().pass);
}

TEST_P(Judge, NanAndInfinityMustBeTheSame) {
  for (double wrong : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    std::vector<double> out = good;
    out[40] = wrong;
    set(out);
    EXPECT_FALSE(verdict().pass) << wrong;
    set(good);
    const Forward finite = ref;
    ref.out[40] = wrong;
    EXPECT_FALSE(verdict().pass) << wrong;
    set(out);
    EXPECT_TRUE(verdict().pass) << wrong << verdict().text;
    EXPECT_EQ(verdict().reference_nan, std::isnan(wrong) ? 1 : 0);
    ref = finite;
  }
}

TEST_P(Judge, AnInfiniteLowWidensNoBound) {
  low.out[40] = HUGE_VAL;
  low.out[41] = std::nan("");
  set(std::vector<double>(good.size(), 0));
  EXPECT_FALSE(verdict().pass);
}

TEST_P(Judge, LseHasItsOwnBound) {
  std::vector<double> lse = low.lse;
  lse[7] += 1e-3;
  set_lse(lse);
  EXPECT_FALSE(verdict().pass);
  EXPECT_THAT(verdict().text, HasSubstr("lse[batch 0, head 0, row 7, column 0] is"));
  EXPECT_NEAR(verdict().max_abs_lse, 1e-3, 1e-5);
  lse = low.lse;
  ASSERT_EQ(lse[29], -INFINITY);
  lse[29] = -3e38;
  set_lse(lse);
  EXPECT_FALSE(verdict().pass);
  lse[29] = std::nan("");
  set_lse(lse);
  EXPECT_FALSE(verdict().pass);
  sample.args.lse = {};
  EXPECT_TRUE(verdict().pass);
}

TEST(JudgeTensor, BoundsAreTheRules) {
  // One head, two rows of one element. u = 2^-24, k = 2: the head's bound is 2·0.1 + 4u·8 +
  // 16·2^-24·10, the row's 16·0.01 + 4u·1 + 16·2^-24·3.
  const std::vector<double> ref{8, 1}, low{8.1, 1.01}, magnitude{10, 3};
  const double u = 0x1p-24;
  const double head = 2 * 0.1 + 4 * u * 8 + 16 * u * 10;
  const double row = 16 * 0.01 + 4 * u * 1 + 16 * u * 3;
  const auto ratio = [&](double a, double b) {
    const float ours[2] = {static_cast<float>(a), static_cast<float>(b)};
    return reference::judge_tensor({.name = "x",
                                    .ours = ConstTensor::bhsd(ours, DType::fp32, {1, 1, 2, 1}),
                                    .ref = &ref,
                                    .low = &low,
                                    .magnitude = &magnitude,
                                    .factor = 2})
        .worst_ratio;
  };
  EXPECT_NEAR(ratio(8.15, 1), 0.15 / head, 1e-5);
  EXPECT_NEAR(ratio(8, 1.12), 0.12 / row, 1e-5);
  EXPECT_EQ(ratio(8, 1), 0);
}

TEST(JudgeTensor, PackedRowsOfNoSegmentAreNotLookedAt) {
  Sample sample({.name = "", .packed = 32});
  const_cast<std::int32_t*>(static_cast<const std::int32_t*>(sample.args.cu_seqlens_q.data))[4] -=
      2;
  const Forward ref = reference::forward(sample.args, sample.options);
  const Forward low = reference::forward_low(sample.args, sample.options);
  reference::fill_constant(sample.out, std::nan(""));
  reference::fill_constant(sample.lse, std::nan(""));
  Tensor part = sample.out, part_lse = sample.lse;
  part.extent.seq -= 2;
  part_lse.extent.seq -= 2;
  for (const auto& [tensor, values, dim] :
       {std::tuple{part, &low.out, ref.dim}, std::tuple{part_lse, &low.lse, std::int64_t{1}}}) {
    std::vector<double> kept;
    for (std::int64_t h = 0; h < ref.head; ++h) {
      const auto first = values->begin() + h * ref.seq * dim;
      kept.insert(kept.end(), first, first + (ref.seq - 2) * dim);
    }
    reference::from_doubles(kept, tensor);
  }
  const Verdict verdict = judge(sample.args, sample.options, ref, low);
  EXPECT_TRUE(verdict.pass) << verdict.text;
}

TEST(JudgeTensor, AResultBeyondTheFormatIsInfinite) {
  const std::vector<double> ref{70000}, low{HUGE_VAL}, magnitude{70000};
  const std::uint16_t ours = reference::encode(reference::kFp16, 70000);
  const std::uint16_t wrong = reference::encode(reference::kFp16, 60000);
  for (const auto* data : {&ours, &wrong}) {
    const Verdict verdict =
        reference::judge_tensor({.name = "x",
                                 .ours = ConstTensor::bhsd(data, DType::fp16, {1, 1, 1, 1}),
                                 .ref = &ref,
                                 .low = &low,
                                 .magnitude = &magnitude});
    EXPECT_EQ(verdict.pass, data == &ours) << verdict.text;
  }
}

}  // namespace
}  // namespace tessera::testing
