#pragma once
// Number formats of the machine as functions on bits. No branch where a loop over lanes is to be
// vectorised.

#include <bit>
#include <cmath>
#include <cstdint>

namespace tessera::amdgpu {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

inline float as_float(u32 bits) { return std::bit_cast<float>(bits); }
inline u32 as_bits(float value) { return std::bit_cast<u32>(value); }
inline double as_double(u64 bits) { return std::bit_cast<double>(bits); }
inline u64 as_bits(double value) { return std::bit_cast<u64>(value); }

inline float half_to_float(u32 half) {
  const float scaled = as_float((half & 0x7fffu) << 13) * as_float(0x77800000u);  // 2^112
  const u32 special = (half & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return as_float(as_bits(scaled) | special | (half & 0x8000u) << 16);
}

// To nearest, ties to even.
inline u32 float_to_half(float value) {
  const u32 bits = as_bits(value), sign = bits >> 16 & 0x8000u, a = bits & 0x7fffffffu;
  const u32 normal = (a + 0xc8000fffu + (a >> 13 & 1u)) >> 13;
  const u32 small = as_bits(as_float(a) + 0.5f) - 0x3f000000u;  // ulp of 0.5 = 2^-24
  const u32 special = a > 0x7f800000u ? 0x7e00u | (a >> 13 & 0x3ffu) : 0x7c00u;
  const u32 finite = a < 0x38800000u ? small : normal;
  return sign | (a < 0x47800000u ? finite : special);
}

inline u32 float_to_half_toward_zero(float value) {
  const u32 bits = as_bits(value), sign = bits >> 16 & 0x8000u, a = bits & 0x7fffffffu;
  const u32 normal = (a - 0x38000000u) >> 13;
  const u32 small =
      static_cast<u32>(static_cast<i32>(as_float(a < 0x38800000u ? a : 0u) * 0x1p24f));
  const u32 special = a > 0x7f800000u    ? 0x7e00u | (a >> 13 & 0x3ffu)
                      : a == 0x7f800000u ? 0x7c00u
                                         : 0x7bffu;
  const u32 finite = a < 0x38800000u ? small : normal;
  return sign | (a < 0x47800000u ? finite : special);
}

// Rounded to odd, so that a second rounding to a shorter format is the only one that counts.
inline float double_to_float_odd(double value) {
  const float near = static_cast<float>(value);
  if (!std::isfinite(near) || static_cast<double>(near) == value) return near;
  u32 bits = as_bits(near);
  if (std::fabs(static_cast<double>(near)) > std::fabs(value)) --bits;
  return as_float(bits | 1u);
}

inline float bfloat_to_float(u32 bfloat) { return as_float(bfloat << 16); }

inline u32 float_to_bfloat(float value) {
  const u32 bits = as_bits(value);
  const u32 rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded;
}

// Eight-bit floats: OCP's (e4m3 has no infinity, e5m2 does) and the ones of gfx942, which have one
// zero, one NaN (0x80) and a bias greater by one.
struct Float8 {
  int exponent = 4, mantissa = 3;
  bool one_zero = false;
  int bias() const { return (1 << (exponent - 1)) - (one_zero ? 0 : 1); }
};

float float8_to_float(u32 bits, const Float8& format);
u32 float_to_float8(float value, const Float8& format);  // nearest even, saturates

inline float flushed(float value) {
  const u32 bits = as_bits(value);
  return as_float((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}

// The machine's minimum and maximum: a number wins over a NaN, +0 is greater than -0.
inline float maximum(float a, float b) {
  const float tie = as_bits(a) >> 31 ? b : a;
  const float nan = a != a ? b : a;
  return a > b ? a : b > a ? b : a == b ? tie : nan;
}
inline float minimum(float a, float b) {
  const float tie = as_bits(a) >> 31 ? a : b;
  const float nan = a != a ? b : a;
  return a < b ? a : b < a ? b : a == b ? tie : nan;
}

inline i32 sign_extend(u32 value, int bits) {
  return static_cast<i32>(value << (32 - bits)) >> (32 - bits);
}

}  // namespace tessera::amdgpu
