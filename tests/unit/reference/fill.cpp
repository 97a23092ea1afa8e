#include "reference/fill.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/number.hpp"

namespace tessera::reference {
namespace {

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};
Moments moments(const std::vector<double>& values) {
  Moments m;
  for (double x : values) m.mean += x / static_cast<double>(values.size());
  for (double x : values) {
    m.deviation += (x - m.mean) * (x - m.mean) / static_cast<double>(values.size());
    m.largest = std::max(m.largest, std::abs(x));
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

constexpr Extents kExtent{2, 3, 100, 64};

TEST(Fill, GaussianHasItsMoments) {
  std::vector<float> memory(2 * 3 * 100 * 64);
  const Tensor t = Tensor::bhsd(memory.data(), DType::fp32, kExtent);
  fill_gaussian(t, 1);
  const Moments m = moments(to_doubles(t));
  EXPECT_NEAR(m.mean, 0, 0.02);
  EXPECT_NEAR(m.deviation, 1, 0.02);
  EXPECT_GT(m.largest, 3.3);
  fill_gaussian(t, 1, 10);
  EXPECT_NEAR(moments(to_doubles(t)).deviation, 10, 0.2);
}

// These values are what other platforms must give, too.
TEST(Fill, IsTheSameEverywhere) {
  EXPECT_EQ(random_bits(0, 0), 0x48218226ff3cd4bfu);
  EXPECT_EQ(random_bits(123, 456), 0x5462b539a3d0134au);
  EXPECT_EQ(random_gaussian(1, 2), 0x1.0a92c8c4137b5p-2);
  EXPECT_NE(random_gaussian(1, 2), random_gaussian(2, 2));
  EXPECT_NE(random_gaussian(1, 2), random_gaussian(1, 3));
}

TEST(Fill, DoesNotDependOnStridesOrFormat) {
  std::vector<float> dense(2 * 3 * 100 * 64), other(dense.size());
  std::vector<std::uint16_t> half(dense.size());
  const Tensor a = Tensor::bhsd(dense.data(), DType::fp32, kExtent);
  const Tensor b = Tensor::bshd(other.data(), DType::fp32, kExtent);
  const Tensor c = Tensor::bshd(half.data(), DType::fp16, kExtent);
  for (const Tensor& t : {a, b, c}) fill_skewed(t, 5);
  EXPECT_EQ(to_doubles(a), to_doubles(b));
  EXPECT_NE(dense, other);
  const auto single = to_doubles(a), rounded = to_doubles(c);
  for (std::size_t i = 0; i < single.size(); ++i)
    ASSERT_NEAR(rounded[i], single[i], 0x1p-10 * std::abs(single[i]) + 1e-6);
}

TEST(Fill, SkewedHasOutliersAndHeavyTails) {
  std::vector<float> memory(2 * 3 * 100 * 64);
  const Tensor t = Tensor::bhsd(memory.data(), DType::fp32, kExtent);
  fill_skewed(t, 3);
  const auto values = to_doubles(t);
  const Moments m = moments(values);
  EXPECT_GT(m.largest, 8);
  double fourth = 0;
  for (double x : values)
    fourth += std::pow((x - m.mean) / m.deviation, 4) / static_cast<double>(values.size());
  EXPECT_GT(fourth, 5);  // a Gaussian's is 3
}

TEST(Fill, IntegersConstantsAndNan) {
  std::vector<std::uint8_t> bytes(1000);
  const Tensor mask = Tensor::bhsd(bytes.data(), DType::uint8, {1, 1, 10, 100});
  fill_integers(mask, 1, 3, 5);
  EXPECT_EQ(*std::ranges::min_element(bytes), 3);
  EXPECT_EQ(*std::ranges::max_element(bytes), 5);
  fill_constant(mask, 7);
  EXPECT_EQ(std::ranges::count(bytes, 7), 1000);
  for (DType type : {DType::fp32, DType::fp16, DType::bf16}) {
    fill_constant(mask, 0);
    fill_nan(bytes.data(), bytes.size());
    EXPECT_TRUE(std::isnan(load(type, bytes.data(), 3)));
    const Tensor t = Tensor::bhsd(bytes.data(), type, {1, 1, 1, 10});
    fill_constant(t, -INFINITY);
    EXPECT_EQ(load(type, bytes.data(), 9), -INFINITY);
  }
}

}  // namespace
}  // namespace tessera::reference
