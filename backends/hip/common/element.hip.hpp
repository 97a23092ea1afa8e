#pragma once
// The 16-bit types that matrix instructions take.

#include <cstdint>

#include "backends/hip/common/gcn.hip.hpp"
#include "backends/hip/common/opaque.hip.hpp"
#include "core/kernel/convert.hpp"
#include "core/kernel/softmax.hpp"

namespace tessera::hip {

struct Fp16 {
  static constexpr bool kHalf = true;
  // By how much (base 2) scores may rise above what is subtracted from them: weights reach 2^8, as
  // exact as 1, and products with values far below the largest fp32.
  static constexpr float kRise = 8.0f;
  // Two numbers, the first in the low half, each rounded to nearest.
  TESSERA_DEVICE static std::uint32_t pack(float low, float high) {
    using Pair = _Float16 __attribute__((ext_vector_type(2)));
    return __builtin_bit_cast(std::uint32_t,
                              Pair{static_cast<_Float16>(low), static_cast<_Float16>(high)});
  }
  // Of weights, which are not negative.
  TESSERA_DEVICE static std::uint32_t pack_weights(float low, float high) {
#if defined(__gfx90a__) || defined(__gfx942__)
    // A multiplication rounds into either half of a register, a conversion into the low one only.
    // clang would drop the one by 1.
    const float one = opaque(1.0f);
    return pack(__builtin_fmaf(low, one, 0.0f), __builtin_fmaf(high, one, 0.0f));
#else
    return pack(low, high);
#endif
  }
  // To nearest; beyond the largest infinity.
  TESSERA_DEVICE static float rounded(float x) {
    return static_cast<float>(static_cast<_Float16>(x));
  }
  TESSERA_DEVICE static float load(const void* data, std::int64_t i) {
    return static_cast<float>(static_cast<const _Float16*>(data)[i]);
  }
};

struct Bf16 {
  static constexpr bool kHalf = false;
  static constexpr float kRise = kernel::kLazyRise;  // values may be as large as fp32 holds
  TESSERA_DEVICE static std::uint32_t pack(float low, float high) {
    return std::uint32_t{kernel::float_to_bf16(high)} << 16 | kernel::float_to_bf16(low);
  }
  // gfx950: to nearest; else ties away from zero, where a NaN whose fraction is all ones does not
  // survive it; it need not: it has made the row's sum NaN.
  TESSERA_DEVICE static std::uint32_t pack_weights(float low, float high) {
#if defined(__gfx950__)
    using Floats = float __attribute__((ext_vector_type(2)));
    using Numbers = __bf16 __attribute__((ext_vector_type(2)));
    return __builtin_bit_cast(std::uint32_t, __builtin_convertvector((Floats{low, high}), Numbers));
#else
    const std::uint32_t a = kernel::bits_of(low) + 0x8000u, b = kernel::bits_of(high) + 0x8000u;
    return __builtin_amdgcn_perm(b, a, 0x07060302u);
#endif
  }
  TESSERA_DEVICE static float load(const void* data, std::int64_t i) {
    return kernel::bf16_to_float(static_cast<const std::uint16_t*>(data)[i]);
  }
};

}  // namespace tessera::hip
