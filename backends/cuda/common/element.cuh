#pragma once
// The 16-bit types that matrix instructions take.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "core/kernel/macros.hpp"
#include "core/kernel/softmax.hpp"

namespace tessera::cuda {

struct Fp16 {
  using Type = __half;
  static constexpr bool kHalf = true;
  // By how much (base 2) scores may rise above what is subtracted from them: weights reach 2^8, as
  // exact as 1, and products with values far below the largest fp32.
  static constexpr float kRise = 8.0f;
  // Two numbers, the first in the low half, each rounded to nearest.
  __device__ static __forceinline__ std::uint32_t pack(float low, float high) {
    std::uint32_t word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
  __device__ static __forceinline__ float load(const void* data, std::int64_t i) {
    return __half2float(static_cast<const __half*>(data)[i]);
  }
  __device__ static __forceinline__ Type round(float x) { return __float2half_rn(x); }
};

struct Bf16 {
  using Type = __nv_bfloat16;
  static constexpr bool kHalf = false;
  static constexpr float kRise = kernel::kLazyRise;  // values may be as large as fp32 holds
  __device__ static __forceinline__ std::uint32_t pack(float low, float high) {
    std::uint32_t word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
  }
  __device__ static __forceinline__ float load(const void* data, std::int64_t i) {
    return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
  }
  __device__ static __forceinline__ Type round(float x) { return __float2bfloat16_rn(x); }
};

}  // namespace tessera::cuda
