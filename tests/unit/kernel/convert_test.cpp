// Half-precision conversion against the formats' definitions, for all numbers and all halfway
// points.

#include "core/kernel/convert.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace tessera::testing {
namespace {

using kernel::bf16_to_float;
using kernel::float_to_bf16;
using kernel::float_to_fp16;
using kernel::fp16_to_float;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Format {
  int exponent_bits;
  int fraction_bits;

  double value(unsigned bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) return fraction ? std::nan("") : sign * HUGE_VAL;
    const double significand = exponent ? fraction + std::ldexp(1.0, fraction_bits) : fraction;
    return sign * std::ldexp(significand, (exponent ? exponent : 1) - bias - fraction_bits);
  }
  unsigned infinity() const { return ((1u << exponent_bits) - 1) << fraction_bits; }
};

template <class Widen, class Narrow>
void check(const Format& format, Widen widen, Narrow narrow) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float x = widen(static_cast<std::uint16_t>(bits));
    const double exact = format.value(bits);
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(x)) << bits;
      ASSERT_TRUE(std::isnan(widen(narrow(x)))) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(x), exact) << bits;
    ASSERT_EQ(std::signbit(x), bits >> 15 != 0) << bits;
    ASSERT_EQ(narrow(x), bits);
  }
  // Halfway between neighbours: to the even one; next to it: to the nearer one. The last neighbour
  // is infinity, which rounding takes for the number that would follow.
  for (unsigned bits = 0; bits < format.infinity(); ++bits) {
    const double below = format.value(bits);
    const double above =
        bits + 1 == format.infinity() ? 2 * below - format.value(bits - 1) : format.value(bits + 1);
    const auto half = static_cast<float>((below + above) / 2);
    ASSERT_EQ(static_cast<double>(half), (below + above) / 2);
    const unsigned even = bits % 2 ? bits + 1 : bits;
    for (const unsigned sign : {0u, 0x8000u}) {
      const float s = sign ? -1.0f : 1.0f;
      ASSERT_EQ(narrow(s * half), even | sign) << bits;
      ASSERT_EQ(narrow(s * std::nextafter(half, 0.0f)), bits | sign) << bits;
      ASSERT_EQ(narrow(s * std::nextafter(half, kInfinity)), (bits + 1) | sign) << bits;
    }
  }
  for (const float large : {std::numeric_limits<float>::max(), kInfinity}) {
    ASSERT_EQ(narrow(large), format.infinity());
    ASSERT_EQ(narrow(-large), format.infinity() | 0x8000u);
  }
  for (const std::uint32_t nan :
       {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu, 0xFFFFFFFFu, 0xFF800001u}) {
    ASSERT_TRUE(std::isnan(widen(narrow(std::bit_cast<float>(nan))))) << nan;
  }
  ASSERT_EQ(narrow(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(Convert, Fp16) {
  check(
      {.exponent_bits = 5, .fraction_bits = 10}, [](std::uint16_t x) { return fp16_to_float(x); },
      [](float x) { return float_to_fp16(x); });
}

TEST(Convert, Bf16) {
  check(
      {.exponent_bits = 8, .fraction_bits = 7}, [](std::uint16_t x) { return bf16_to_float(x); },
      [](float x) { return float_to_bf16(x); });
}

}  // namespace
}  // namespace tessera::testing
