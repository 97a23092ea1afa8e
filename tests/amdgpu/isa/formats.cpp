#include "tests/amdgpu/isa/formats.hpp"

#include <limits>

namespace tessera::amdgpu {

float float8_to_float(u32 bits, const Float8& format) {
  const u32 mantissa = bits & ((1u << format.mantissa) - 1);
  const int exponent = static_cast<int>(bits >> format.mantissa & ((1u << format.exponent) - 1));
  const float sign = bits & 0x80u ? -1.f : 1.f;
  const int top = (1 << format.exponent) - 1;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (format.one_zero) {
    if (bits == 0x80u) return kNan;
  } else if (format.exponent == 5 && exponent == top) {
    return mantissa ? kNan : sign * std::numeric_limits<float>::infinity();
  } else if (format.exponent == 4 && exponent == top && mantissa == 7) {
    return kNan;
  }
  const float unit = std::ldexp(1.f, -format.mantissa);
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(mantissa) * unit, 1 - format.bias());
  return sign * std::ldexp(1.f + static_cast<float>(mantissa) * unit, exponent - format.bias());
}

u32 float_to_float8(float value, const Float8& format) {
  const u32 sign = as_bits(value) >> 24 & 0x80u;
  if (value != value) return format.one_zero ? 0x80u : sign | 0x7fu;
  const int fields = 1 << (format.exponent + format.mantissa);
  const int greatest = format.one_zero ? fields - 1 : format.exponent == 5 ? 0x7b : 0x7e;
  const float limit = float8_to_float(static_cast<u32>(greatest), format);
  float a = std::fabs(value);
  if (a > limit) a = limit;
  int exponent = 0;
  std::frexp(a, &exponent);
  exponent = a == 0 ? 1 - format.bias() : std::max(exponent - 1, 1 - format.bias());
  const double scaled = std::ldexp(static_cast<double>(a), format.mantissa - exponent);
  const u32 steps = static_cast<u32>(std::nearbyint(scaled));  // 2^mantissa and more: normal
  const u32 bits = (static_cast<u32>(exponent + format.bias() - 1) << format.mantissa) + steps;
  if (bits == 0) return format.one_zero ? 0u : sign;
  return sign | bits;
}

}  // namespace tessera::amdgpu
