// Number formats: every fp16 and bf16 pattern, every tie between two neighbours.

#include "reference/number.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/fill.hpp"

namespace tessera::reference {
namespace {

struct Named {
  SmallFormat format;
  DType dtype;
  int exponent_bits;
};
const Named kFormats[] = {{kFp16, DType::fp16, 5}, {kBf16, DType::bf16, 8}};

// By the definition of IEEE 754.
double expected_value(const Named& f, unsigned bits) {
  const int mantissa_bits = f.format.mantissa;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << f.exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  if (exponent == (1 << f.exponent_bits) - 1) return mantissa != 0 ? NAN : sign * INFINITY;
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

TEST(Number, DecodesAndEncodesEveryPattern) {
  for (const Named& f : kFormats) {
    for (unsigned bits = 0; bits < 65536; ++bits) {
      const double value = decode(f.format, static_cast<std::uint16_t>(bits));
      const double expected = expected_value(f, bits);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(value)) << bits;
        ASSERT_TRUE(std::isnan(decode(f.format, encode(f.format, value)))) << bits;
      } else {
        ASSERT_EQ(value, expected) << bits;
        ASSERT_EQ(std::signbit(value), std::signbit(expected)) << bits;
        ASSERT_EQ(encode(f.format, value), bits);
      }
      const auto pattern = static_cast<std::uint16_t>(bits);
      const double loaded = load(f.dtype, &pattern, 0);
      ASSERT_TRUE(loaded == value || (std::isnan(loaded) && std::isnan(value))) << bits;
      float single = 0;
      convert(f.dtype, &pattern, 0, 1, 1, &single);
      ASSERT_TRUE(single == value || (std::isnan(single) && std::isnan(value))) << bits;
    }
  }
}

TEST(Number, RoundsToNearestTiesToEvenBetweenAllNeighbours) {
  for (const Named& f : kFormats) {
    const unsigned infinity = ((1u << f.exponent_bits) - 1) << f.format.mantissa;
    for (unsigned sign : {0u, 0x8000u}) {
      for (unsigned bits = 0; bits < infinity; ++bits) {
        const double below = expected_value(f, sign | bits);
        // The number that would follow the largest one is where infinity begins.
        const double above =
            bits + 1 < infinity ? expected_value(f, sign | (bits + 1))
                                : std::copysign(std::ldexp(1.0, 1 << (f.exponent_bits - 1)), below);
        const double middle = below / 2 + above / 2;
        const unsigned even = bits % 2 == 0 ? bits : bits + 1;
        ASSERT_EQ(encode(f.format, middle), sign | even) << bits;
        // One step of float64 from the tie: rounding by way of float32 would lose it.
        ASSERT_EQ(encode(f.format, std::nextafter(middle, below)), sign | bits) << bits;
        ASSERT_EQ(encode(f.format, std::nextafter(middle, above)), sign | (bits + 1)) << bits;
        for (const double x : {below, middle, below * 0.75 + above * 0.25}) {
          auto single = static_cast<float>(x);
          const double expected = decode(f.format, encode(f.format, static_cast<double>(single)));
          round_to(f.dtype, &single, 1);
          ASSERT_EQ(single, expected) << x;
          ASSERT_EQ(std::signbit(single), std::signbit(expected)) << x;
        }
      }
    }
  }
}

TEST(Number, RoundsFloatsInPlaceAsOneByOne) {
  for (const Named& f : kFormats) {
    for (std::uint64_t i = 0; i < 200000; ++i) {
      const auto bits = static_cast<std::uint32_t>(random_bits(7, i));
      auto single = std::bit_cast<float>(bits);
      const double expected = round_to(f.dtype, static_cast<double>(single));
      round_to(f.dtype, &single, 1);
      ASSERT_TRUE(single == expected || (std::isnan(single) && std::isnan(expected))) << bits;
    }
  }
}

TEST(Number, KeepsInfinityNanAndSigns) {
  for (const Named& f : kFormats) {
    for (const double x : {HUGE_VAL, -HUGE_VAL, 0.0, -0.0, 1e300, -1e300, 1e-300, -1e-300}) {
      const double rounded = round_to(f.dtype, x);
      EXPECT_EQ(std::signbit(rounded), std::signbit(x)) << x;
      EXPECT_EQ(rounded, std::abs(x) > 1 ? std::copysign(INFINITY, x) : 0) << x;
    }
    EXPECT_TRUE(std::isnan(round_to(f.dtype, NAN)));
    EXPECT_TRUE(std::isnan(round_to(
        f.dtype, std::bit_cast<double>(0x7ff0000000000001u))));  // its low bits are cut off
  }
  EXPECT_EQ(round_to(DType::fp32, 1 + 0x1p-24), 1.0);
  EXPECT_EQ(round_to(DType::fp32, 1 + 0x1p-24 + 0x1p-50), 1 + 0x1p-23);
}

TEST(Number, StoresIntegers) {
  std::int32_t narrow[2] = {};
  std::int64_t wide[2] = {};
  std::uint8_t byte[2] = {};
  store(DType::int32, narrow, 1, -2147483648.0);
  store(DType::int64, wide, 1, 9007199254740991.0);
  store(DType::uint8, byte, 1, 255);
  EXPECT_EQ(narrow[1], std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(wide[1], 9007199254740991);
  EXPECT_EQ(byte[1], 255);
  EXPECT_EQ(load(DType::int32, narrow, 1), -2147483648.0);
  EXPECT_EQ(load(DType::int64, wide, 1), 9007199254740991.0);
  EXPECT_EQ(load(DType::uint8, byte, 1), 255);
}

TEST(Number, DenseArraysHonourStrides) {
  std::vector<std::uint16_t> memory(2 * 3 * 4 * 10, 0xffff);
  const Tensor t{
      memory.data(), DType::bf16, {2, 3, 4, 5}, {.batch = 120, .head = 10, .seq = 30, .dim = 2}};
  std::vector<double> values(120);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  from_doubles(values, t);
  EXPECT_EQ(to_doubles(t), values);
  EXPECT_EQ(load(DType::bf16, memory.data(), 120 + 2 * 10 + 3 * 30 + 4 * 2), 119);
  EXPECT_TRUE(std::isnan(load(DType::bf16, memory.data(), 1)));
  EXPECT_TRUE(to_doubles({}).empty());
}

// A huge axis beside one of 0 is no element, and no loop either.
TEST(Number, NoElementsAreNoWork) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  float memory = 3;
  for (const Extents& e : {Extents{kHuge, 0, 2, 8},
                           {kHuge, 2, 0, 8},
                           {2, kHuge, 0, 8},
                           {2, 1, kHuge, 0},
                           {0, kHuge, 2, 8}}) {
    const Tensor t = Tensor::bhsd(&memory, DType::fp32, e);
    EXPECT_TRUE(is_empty(e));
    EXPECT_TRUE(to_doubles(t).empty());
    from_doubles({}, t);
    fill_constant(t, 5);
  }
  EXPECT_EQ(memory, 3);
  EXPECT_FALSE(is_empty({1, 1, 1, 1}));
}

}  // namespace
}  // namespace tessera::reference
