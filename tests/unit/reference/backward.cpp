// Gradients of the float64 backward against central differences of the float64 forward, for every
// option; the plain backward against the float64 one.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "reference/number.hpp"
#include "reference/reference.hpp"
#include "tests/unit/reference/sample.hpp"

namespace tessera::testing {
namespace {

using reference::Backward;

// Smaller and fp32, with fewer elements to vary.
std::vector<Traits> gradient_traits() {
  std::vector<Traits> chosen;
  for (Traits t : all_traits()) {
    if (t.dtype != DType::fp32 || t.name == "long") continue;
    if (t.head_q == 4) t.head_q = 2;
    if (t.head_k == 2) t.head_k = 1;
    if (t.head_k == 4) t.head_k = 2;
    if (t.head_q == 5) t.head_q = 3;
    if (t.dim == 8) t.dim = 3;
    if (t.dim_v == 8) t.dim_v = 2;
    if (t.seq_q == 6) t.seq_q = 3;
    if (t.seq_k == 9) t.seq_k = 5;
    chosen.push_back(t);
  }
  return chosen;
}

class BackwardReference : public ::testing::TestWithParam<Traits> {};
INSTANTIATE_TEST_SUITE_P(All, BackwardReference, ::testing::ValuesIn(gradient_traits()),
                         [](const auto& instance) { return instance.param.name; });

double loss(const Sample& sample) {
  const auto result = reference::forward(sample.args, sample.options);
  const auto dout = reference::to_doubles(sample.dout);
  const auto dlse = reference::to_doubles(sample.dlse);
  double sum = 0;
  for (std::size_t i = 0; i < dout.size(); ++i) sum += dout[i] * result.out[i];
  for (std::size_t i = 0; i < dlse.size(); ++i) {
    if (std::isfinite(result.lse[i])) sum += dlse[i] * result.lse[i];
  }
  return sum;
}

// Every element of `tensor`, a five-point difference with exact steps.
void expect_gradient(const Sample& sample, const ConstTensor& tensor,
                     const std::vector<double>& gradient, const char* name) {
  const Extents& e = tensor.extent;
  ASSERT_EQ(gradient.size(), static_cast<std::size_t>(e.batch * e.head * e.seq * e.dim)) << name;
  void* data = const_cast<void*>(tensor.data);
  constexpr double kStep = 0x1p-7;
  std::size_t i = 0;
  for (std::int64_t b = 0; b < e.batch; ++b) {
    for (std::int64_t h = 0; h < e.head; ++h) {
      for (std::int64_t s = 0; s < e.seq; ++s) {
        for (std::int64_t d = 0; d < e.dim; ++d, ++i) {
          const std::int64_t at = reference::index_of(tensor.stride, b, h, s, d);
          const double x = reference::load(tensor.dtype, data, at);
          if (!std::isfinite(x)) {
            EXPECT_EQ(gradient[i], 0) << name << ' ' << i;
            continue;
          }
          const auto moved = [&](double steps) {
            reference::store(tensor.dtype, data, at, x + steps * kStep);
            return loss(sample);
          };
          const double difference =
              (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * kStep);
          moved(0);
          EXPECT_NEAR(gradient[i], difference, 2e-6 * (1 + std::abs(difference)))
              << name << ' ' << i;
        }
      }
    }
  }
}

TEST_P(BackwardReference, EqualsDifferences) {
  Traits traits = GetParam();
  if ((traits.bias & 32) != 0)
    traits.bias &= ~32;  // elements that share memory cannot be varied one by one
  const Sample sample(traits);
  const Backward gradient =
      reference::backward(sample.args, sample.options, sample.dout, sample.dlse);
  expect_gradient(sample, sample.args.query, gradient.dq, "dq");
  expect_gradient(sample, sample.args.key, gradient.dk, "dk");
  expect_gradient(sample, sample.args.value, gradient.dv, "dv");
  if (sample.args.bias.data != nullptr)
    expect_gradient(sample, sample.args.bias, gradient.dbias, "dbias");
  if (sample.args.sinks.data != nullptr)
    expect_gradient(sample, sample.args.sinks, gradient.dsink, "dsink");
}

// Along one direction in which all elements of a tensor move: for whole samples, of which there are
// too many elements to vary each, and for elements that share memory.
class Direction {
 public:
  explicit Direction(const ConstTensor& tensor) : tensor_(tensor) {
    each([&](std::int64_t at) { base_[at] = reference::load(tensor_.dtype, tensor_.data, at); });
  }

  double derivative(const Sample& sample) const {
    const auto moved = [&](double steps) {
      for (const auto& [at, x] : base_) {
        const double to = std::isfinite(x) ? x + steps * kStep * sign(at) : x;
        reference::store(tensor_.dtype, const_cast<void*>(tensor_.data), at, to);
      }
      return loss(sample);
    };
    const double difference = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * kStep);
    moved(0);
    return difference;
  }

  double product(const std::vector<double>& gradient) const {
    double sum = 0;
    std::size_t i = 0;
    each([&](std::int64_t at) {
      sum += std::isfinite(base_.at(at)) ? gradient[i] * sign(at) : 0;
      ++i;
    });
    return sum;
  }

 private:
  static constexpr double kStep = 0x1p-11;

  static double sign(std::int64_t at) { return (at * 2654435761 >> 13) % 2 == 0 ? 1.0 : -1.0; }

  template <class Visit>
  void each(Visit visit) const {
    const Extents& e = tensor_.extent;
    for (std::int64_t b = 0; b < e.batch; ++b) {
      for (std::int64_t h = 0; h < e.head; ++h) {
        for (std::int64_t s = 0; s < e.seq; ++s) {
          for (std::int64_t d = 0; d < e.dim; ++d)
            visit(reference::index_of(tensor_.stride, b, h, s, d));
        }
      }
    }
  }

  ConstTensor tensor_;
  std::map<std::int64_t, double> base_{};
};

std::vector<Traits> fp32_traits() {
  std::vector<Traits> chosen;
  for (const Traits& t : all_traits()) {
    if (t.dtype == DType::fp32) chosen.push_back(t);
  }
  return chosen;
}

class BackwardDirection : public ::testing::TestWithParam<Traits> {};
INSTANTIATE_TEST_SUITE_P(All, BackwardDirection, ::testing::ValuesIn(fp32_traits()),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(BackwardDirection, EqualsTheDifferenceAlongIt) {
  const Sample sample(GetParam());
  const Backward gradient =
      reference::backward(sample.args, sample.options, sample.dout, sample.dlse);
  const auto expect_along = [&](const ConstTensor& tensor, const std::vector<double>& dtensor,
                                const char* name) {
    if (tensor.data == nullptr) return;
    const Direction direction(tensor);
    const double product = direction.product(dtensor);
    EXPECT_NEAR(product, direction.derivative(sample), 1e-6 * (1 + std::abs(product))) << name;
  };
  expect_along(sample.args.query, gradient.dq, "dq");
  expect_along(sample.args.key, gradient.dk, "dk");
  expect_along(sample.args.value, gradient.dv, "dv");
  expect_along(sample.args.bias, gradient.dbias, "dbias");
  expect_along(sample.args.sinks, gradient.dsink, "dsink");
}

// One row of dout for all: what sum().backward() gives.
TEST_P(BackwardDirection, DoutMayRepeat) {
  Sample sample(GetParam());
  ConstTensor repeated = sample.dout;
  const Extents& e = repeated.extent;
  if (e.batch * e.head * e.seq == 0) return;
  repeated.stride = {.batch = 0, .head = 0, .seq = 0, .dim = 1};
  const Backward once = reference::backward(sample.args, sample.options, repeated, sample.dlse);
  const std::vector<double> row =
      reference::to_doubles(ConstTensor{repeated.data, repeated.dtype, {.dim = e.dim}, {.dim = 1}});
  std::vector<double> all;
  for (std::int64_t i = 0; i < e.batch * e.head * e.seq; ++i)
    all.insert(all.end(), row.begin(), row.end());
  reference::from_doubles(all, sample.dout);
  const Backward dense = reference::backward(sample.args, sample.options, sample.dout, sample.dlse);
  EXPECT_EQ(once.dq, dense.dq);
  EXPECT_EQ(once.dk, dense.dk);
  EXPECT_EQ(once.dv, dense.dv);
}

TEST_P(BackwardReference, WithoutDlseIsWithZeroDlse) {
  Sample sample(GetParam());
  const Backward without = reference::backward(sample.args, sample.options, sample.dout);
  reference::from_doubles(std::vector<double>(reference::to_doubles(sample.dlse).size(), 0),
                          sample.dlse);
  const Backward zero = reference::backward(sample.args, sample.options, sample.dout, sample.dlse);
  EXPECT_EQ(without.dq, zero.dq);
  EXPECT_EQ(without.dk, zero.dk);
  EXPECT_EQ(without.dv, zero.dv);
}

// With out given, too, every term has one weight as a factor.
TEST_P(BackwardReference, WeightsAreThoseOfTheLseGiven) {
  Sample sample(GetParam());
  const reference::Forward forward = reference::forward(sample.args, sample.options);
  reference::from_doubles(forward.out, sample.out);
  std::vector<double> raised = forward.lse;
  for (double& lse : raised) lse += 0.5;
  reference::from_doubles(raised, sample.lse);
  const Backward own =
      reference::backward(sample.args, sample.options, sample.dout, sample.dlse, sample.out);
  const Backward given = reference::backward(sample.args, sample.options, sample.dout, sample.dlse,
                                             sample.out, sample.lse);
  const auto expect_smaller = [](const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i] * std::exp(0.5), b[i], 1e-5 * (1 + std::abs(b[i]))) << i;
  };
  expect_smaller(given.dq, own.dq);
  expect_smaller(given.dk, own.dk);
  expect_smaller(given.dv, own.dv);
  expect_smaller(given.dbias, own.dbias);
  expect_smaller(given.dsink, own.dsink);
}

class BackwardPlain : public ::testing::TestWithParam<Traits> {};
INSTANTIATE_TEST_SUITE_P(All, BackwardPlain, ::testing::ValuesIn(all_traits()),
                         [](const auto& instance) { return instance.param.name; });

double largest(const std::vector<double>& values) {
  double result = 0;
  for (double x : values) result = std::max(result, std::abs(x));
  return result;
}

void expect_close(const std::vector<double>& low, const std::vector<double>& ref,
                  const std::vector<double>& magnitude, double tolerance, const char* name) {
  ASSERT_EQ(low.size(), ref.size()) << name;
  const double size = largest(magnitude);
  EXPECT_GE(size * (1 + 1e-12), largest(ref)) << name;
  for (std::size_t i = 0; i < ref.size(); ++i) {
    ASSERT_NEAR(low[i], ref[i], tolerance * size) << name << ' ' << i;
  }
}

TEST_P(BackwardPlain, IsCloseAndPassesItsOwnJudgement) {
  const Traits& t = GetParam();
  Sample sample(t);
  const Backward ref = reference::backward(sample.args, sample.options, sample.dout, sample.dlse);
  const Backward low =
      reference::backward_low(sample.args, sample.options, sample.dout, sample.dlse);
  const double tolerance = t.dtype == DType::fp32 ? 1e-5 : 6 * reference::unit_roundoff(t.dtype);
  expect_close(low.dq, ref.dq, ref.dq_magnitude, tolerance, "dq");
  expect_close(low.dk, ref.dk, ref.dk_magnitude, tolerance, "dk");
  expect_close(low.dv, ref.dv, ref.dv_magnitude, tolerance, "dv");
  expect_close(low.dbias, ref.dbias, ref.dbias_magnitude, tolerance, "dbias");
  expect_close(low.dsink, ref.dsink, ref.dsink_magnitude, tolerance, "dsink");

  // The inputs' own memory takes the gradients.
  const auto take = [](const ConstTensor& like, const std::vector<double>& values) {
    const Tensor t2{const_cast<void*>(like.data), like.dtype, like.extent, like.stride};
    if (t2.data != nullptr) reference::from_doubles(values, t2);
    return ConstTensor(t2);
  };
  const bool bias = sample.args.bias.data != nullptr && (t.bias & 32) == 0;
  const reference::Gradients ours{.dq = take(sample.args.query, low.dq),
                                  .dk = take(sample.args.key, low.dk),
                                  .dv = take(sample.args.value, low.dv),
                                  .dbias = bias ? take(sample.args.bias, low.dbias) : ConstTensor{},
                                  .dsink = take(sample.args.sinks, low.dsink)};
  const auto verdict = judge_backward(sample.args, sample.options, ours, ref, low);
  EXPECT_TRUE(verdict.pass) << verdict.text;
  for (const ConstTensor* tensor : {&ours.dq, &ours.dk, &ours.dv, &ours.dbias, &ours.dsink}) {
    if (tensor->data == nullptr) continue;
    auto values = reference::to_doubles(*tensor);
    if (largest(values) == 0) continue;
    for (double& x : values) x *= 1.1;
    take(*tensor, values);
    EXPECT_FALSE(judge_backward(sample.args, sample.options, ours, ref, low).pass);
    for (double& x : values) x = 0;
    take(*tensor, values);
    EXPECT_FALSE(judge_backward(sample.args, sample.options, ours, ref, low).pass);
    break;
  }
}

TEST(BackwardCases, RowsBeyondQueryEndGiveNothingWhateverTheyHold) {
  Sample sample({.name = "", .ranges = true});
  const Backward clean = reference::backward(sample.args, sample.options, sample.dout, sample.dlse);
  for (const ConstTensor& t :
       {sample.args.query, ConstTensor(sample.dout), ConstTensor(sample.dlse)}) {
    for (std::int64_t h = 0; h < t.extent.head; ++h) {  // the first sequence's last row
      for (std::int64_t d = 0; d < t.extent.dim; ++d) {
        reference::store(t.dtype, const_cast<void*>(t.data),
                         reference::index_of(t.stride, 0, h, t.extent.seq - 1, d), NAN);
      }
    }
  }
  const Backward poisoned =
      reference::backward(sample.args, sample.options, sample.dout, sample.dlse);
  EXPECT_EQ(clean.dq, poisoned.dq);
  EXPECT_EQ(clean.dk, poisoned.dk);
  EXPECT_EQ(clean.dv, poisoned.dv);
}

TEST(BackwardCases, NanInAMaskedKeyOrValueReachesNobodyElse) {
  Sample sample({.name = "",
                 .mask = Mask::causal(Alignment::TopLeft),
                 .batch = 1,
                 .head_q = 1,
                 .head_k = 1,
                 .seq_q = 8,
                 .seq_k = 8});
  const Backward clean = reference::backward(sample.args, sample.options, sample.dout);
  for (const ConstTensor& t : {sample.args.key, sample.args.value}) {
    for (std::int64_t d = 0; d < 8; ++d) {
      reference::store(t.dtype, const_cast<void*>(t.data),
                       reference::index_of(t.stride, 0, 0, 6, d), NAN);
    }
  }
  const Backward poisoned = reference::backward(sample.args, sample.options, sample.dout);
  for (std::size_t i = 0; i < 6 * 8; ++i) ASSERT_NEAR(poisoned.dq[i], clean.dq[i], 1e-13) << i;
  for (std::size_t i = 6 * 8; i < 8 * 8; ++i) ASSERT_TRUE(std::isnan(poisoned.dq[i])) << i;
}

}  // namespace
}  // namespace tessera::testing
