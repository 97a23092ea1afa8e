#pragma once
// Half-precision numbers as bits, to and from fp32, by hand: the same on every compiler and
// processor, and of branchless integer arithmetic that vectorises.

#include <cstdint>

#include "core/kernel/macros.hpp"

namespace tessera::kernel {

TESSERA_FN constexpr std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
TESSERA_FN constexpr float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

// bf16 is the upper half of an fp32.
TESSERA_FN constexpr float bf16_to_float(std::uint16_t x) {
  return float_of(std::uint32_t{x} << 16);
}

// Nearest, ties to even; beyond the largest finite number infinity; NaN stays NaN.
TESSERA_FN constexpr std::uint16_t float_to_bf16(float x) {
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t nearest = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  const std::uint32_t quiet = bits >> 16 | 0x0040u;
  return static_cast<std::uint16_t>(x == x ? nearest : quiet);
}

// fp16: sign, 5 bits of exponent with bias 15, 10 bits of fraction. fp32: 8 with bias 127, 23.
TESSERA_FN constexpr float fp16_to_float(std::uint16_t x) {
  constexpr std::uint32_t kRebias = (127u - 15u) << 23;
  constexpr float kSubnormalUnit = 0x1p-24f;
  const std::uint32_t magnitude = x & 0x7FFFu;
  const std::uint32_t normal = (magnitude << 13) + kRebias;
  const std::uint32_t special =
      normal + kRebias;  // infinity and NaN: the exponent is all ones in both formats
  const std::uint32_t subnormal =
      bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * kSubnormalUnit);
  const std::uint32_t bits = magnitude < 0x0400u   ? subnormal
                             : magnitude < 0x7C00u ? normal
                                                   : special;
  return float_of(bits | (x & 0x8000u) << 16);
}

// Nearest, ties to even, subnormal numbers included; from 65520 on infinity; NaN stays NaN.
TESSERA_FN constexpr std::uint16_t float_to_fp16(float x) {
  constexpr std::uint32_t kRebias = (127u - 15u) << 23;
  constexpr std::uint32_t kInfinity = 0x7F800000u;
  constexpr std::uint32_t kSmallestNormal = 0x38800000u;  // 2^-14
  constexpr std::uint32_t kOverflow = 0x477FF000u;        // 65520, halfway between 65504 and 2^16
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  const std::uint32_t normal = (magnitude - kRebias + 0x0FFFu + (magnitude >> 13 & 1u)) >> 13;
  // The last bit of 0.5 + |x| is worth 2^-24, as fp16's smallest number: the addition rounds.
  const std::uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
  const std::uint32_t special = magnitude > kInfinity ? 0x7E00u : 0x7C00u;
  const std::uint32_t half = magnitude < kSmallestNormal ? subnormal
                             : magnitude < kOverflow     ? normal
                                                         : special;
  return static_cast<std::uint16_t>(half | (bits >> 16 & 0x8000u));
}

}  // namespace tessera::kernel
