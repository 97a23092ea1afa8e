#pragma once
// SIMD vectors of one instruction set. Included only by the units, each of which is compiled for
// its instruction set with TESSERA_VECTOR_ISA (its name) and TESSERA_VECTOR_WIDTH (floats a
// register). Everything lies in a namespace of that name and is inlined, so that no function
// compiled for one instruction set is ever linked into another's callers.

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "backends/kokkos/element.hpp"
#include "core/kernel/arguments.hpp"
#include "core/kernel/lanes.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

using kernel::Index;

inline constexpr int kWidth = TESSERA_VECTOR_WIDTH;
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kRegisters = 32;  // of vectors: register tiles are cut to fill them
#else
inline constexpr int kRegisters = 16;
#endif
inline constexpr int kVectors = 3;                // vectors of query rows
inline constexpr int kPanel = kVectors * kWidth;  // query rows of a full panel

using Float = float __attribute__((vector_size(4 * kWidth)));
using Int = std::int32_t __attribute__((vector_size(4 * kWidth)));
using Bits = std::uint32_t __attribute__((vector_size(4 * kWidth)));
using Float4 = float __attribute__((vector_size(16)));
using Float8 = float __attribute__((vector_size(32)));
using Bits8 = std::uint32_t __attribute__((vector_size(32)));
using Half8 = std::uint16_t __attribute__((vector_size(16)));
using Byte8 = std::uint8_t __attribute__((vector_size(8)));

template <class V, class T>
TESSERA_FN V load_as(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class V, class T>
TESSERA_FN void store_as(T* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}

TESSERA_FN Float load(const float* p) { return load_as<Float>(p); }
TESSERA_FN void store(float* p, Float v) { store_as(p, v); }
TESSERA_FN Float broadcast(float x) { return x - Float{}; }

// kernel::Lanes of kWidth query rows.
struct VectorLanes {
  using Value = Float;
  using Index = Int;
  using Bits = TESSERA_VECTOR_ISA::Bits;
  using Predicate = Int;

  TESSERA_FN static Float broadcast(float x) { return TESSERA_VECTOR_ISA::broadcast(x); }
  TESSERA_FN static Int whole(int x) { return x - Int{}; }
  TESSERA_FN static Bits bits(std::uint32_t x) { return x - Bits{}; }
  TESSERA_FN static Bits bits(Int i) { return reinterpret_cast<Bits>(i); }
  TESSERA_FN static Float convert(Int i) { return __builtin_convertvector(i, Float); }
  TESSERA_FN static Float fma(Float a, Float b, Float c) { return a * b + c; }
  TESSERA_FN static Int less(Float a, Float b) { return a < b; }
  TESSERA_FN static Int less(Int a, Int b) { return a < b; }
  TESSERA_FN static Int less(Bits a, Bits b) { return a < b; }
  TESSERA_FN static Int equal(Float a, Float b) { return a == b; }
  TESSERA_FN static Int both(Int p, Int q) { return p & q; }
  TESSERA_FN static Int either(Int p, Int q) { return p | q; }
  TESSERA_FN static Float select(Int p, Float a, Float b) { return p ? a : b; }
  TESSERA_FN static Int select(Int p, Int a, Int b) { return p ? a : b; }
  TESSERA_FN static bool any(Int p) {
    std::int32_t all = 0;
    for (int i = 0; i < kWidth; ++i) all |= p[i];
    return all != 0;
  }

  TESSERA_FN static Float max(Float a, Float b) {
#if defined(__AVX512F__)
    return _mm512_max_ps(a, b);  // b where either is NaN
#elif defined(__AVX2__)
    return _mm256_max_ps(a, b);
#else
    return a > b ? a : b;
#endif
  }

  // The high halves of 32 x 32 bit products.
  TESSERA_FN static Bits mul_hi(Bits a, std::uint32_t b) {
    using Wide = std::uint64_t __attribute__((vector_size(8 * kWidth)));
    const Wide product = __builtin_convertvector(a, Wide) * std::uint64_t{b};
    return __builtin_convertvector(product >> 32, Bits);
  }

  // 2^x: x = n + f with n whole; a polynomial of degree 5 in f, found by Lawson's iteration with
  // the constant term held at 1, times 2^n. NaN stays NaN.
#if defined(__AVX512DQ__)
  // f in [0, 1): relative error 8.2e-8 before rounding. 0 below -126, where floats turn subnormal.
  TESSERA_FN static Float exp2(Float x) {
    const __mmask16 normal = _mm512_cmp_ps_mask(x, broadcast(-126.0f), _CMP_NLT_UQ);
    const Float f = _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    Float p = fma(broadcast(1.867130070e-03f), f, broadcast(9.017030323e-03f));
    p = fma(p, f, broadcast(5.579991310e-02f));
    p = fma(p, f, broadcast(2.401644502e-01f));
    p = fma(p, f, broadcast(6.931513118e-01f));
    p = fma(p, f, broadcast(1.0f));
    return _mm512_maskz_scalef_ps(normal, p, x);  // times 2^floor(x)
  }
#else
  // |f| <= 1/2: relative error 9.2e-8 before rounding. From -127 down the factor 2^n is 0. The
  // comparison in max() and the product let NaN through.
  TESSERA_FN static Float exp2(Float x) {
    const Float shift = broadcast(
        12582912.0f + 127.0f);  // 1.5·2^23 rounds to whole numbers; + 127: the exponent's bias
    x = max(broadcast(-127.0f), x);
    const Float shifted = x + shift;
    const Float f = x - (shifted - shift);
    Float p = fma(broadcast(1.326472720e-03f), f, broadcast(9.671512640e-03f));
    p = fma(p, f, broadcast(5.550733743e-02f));
    p = fma(p, f, broadcast(2.402224209e-01f));
    p = fma(p, f, broadcast(6.931469776e-01f));
    p = fma(p, f, broadcast(1.0f));
    return p * reinterpret_cast<Float>(reinterpret_cast<Bits>(shifted) << 23);
  }
#endif
};
static_assert(kernel::Lanes<VectorLanes>);

// Elements of memory, to and from vectors. fp32 is float itself.
TESSERA_FN Float8 load8(const float* p) { return load_as<Float8>(p); }
TESSERA_FN Float8 load8(const Bf16* p) {
  return reinterpret_cast<Float8>(__builtin_convertvector(load_as<Half8>(p), Bits8) << 16);
}
TESSERA_FN Float8 load8(const Fp16* p) {
#if defined(__F16C__)
  return _mm256_cvtph_ps(load_as<__m128i>(p));
#elif defined(__aarch64__)
  const Float4 low = Float4(vcvt_f32_f16(load_as<float16x4_t>(p)));
  const Float4 high = Float4(vcvt_f32_f16(load_as<float16x4_t>(p + 4)));
  return Float8(__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7));
#else
  Float8 v{};
  for (int i = 0; i < 8; ++i) v[i] = p[i].load();
  return v;
#endif
}
TESSERA_FN Float8 load8(const std::uint8_t* p) {
  return __builtin_convertvector(load_as<Byte8>(p), Float8);
}

// To fp16's precision and range.
TESSERA_FN Float round_to_fp16(Float v) {
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__aarch64__)
  return Float(vcvt_f32_f16(vcvt_f16_f32(float32x4_t(v))));
#else
  for (int i = 0; i < kWidth; ++i) v[i] = kernel::fp16_to_float(kernel::float_to_fp16(v[i]));
  return v;
#endif
}

// kWidth neighbours as fp32.
TESSERA_FN Float load_wide(const float* p) { return load(p); }
TESSERA_FN Float load_wide(const Bf16* p) {
  using Half = std::uint16_t __attribute__((vector_size(2 * kWidth)));
  return reinterpret_cast<Float>(__builtin_convertvector(load_as<Half>(p), Bits) << 16);
}
TESSERA_FN Float load_wide(const Fp16* p) {
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(load_as<__m256i>(p));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(load_as<__m128i>(p));
#elif defined(__aarch64__)
  return Float(vcvt_f32_f16(load_as<float16x4_t>(p)));
#else
  Float v{};
  for (int i = 0; i < kWidth; ++i) v[i] = kernel::fp16_to_float(p[i].bits);
  return v;
#endif
}

TESSERA_FN float load1(const float* p) { return *p; }
TESSERA_FN float load1(const Bf16* p) { return p->load(); }
TESSERA_FN float load1(const Fp16* p) { return p->load(); }
TESSERA_FN float load1(const std::uint8_t* p) { return static_cast<float>(*p); }

// Round to nearest, ties to even; NaN stays NaN.
TESSERA_FN void store8(float* p, Float8 v) { store_as(p, v); }
TESSERA_FN void store8(Bf16* p, Float8 v) {
  const Bits8 bits = reinterpret_cast<Bits8>(v);
  const Bits8 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const Bits8 quiet = (bits >> 16) | 0x40u;
  store_as(p, __builtin_convertvector(v == v ? rounded : quiet, Half8));
}
TESSERA_FN void store8(Fp16* p, Float8 v) {
#if defined(__F16C__)
  store_as(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__aarch64__)
  store_as(p, vcvt_f16_f32(float32x4_t(__builtin_shufflevector(v, v, 0, 1, 2, 3))));
  store_as(p + 4, vcvt_f16_f32(float32x4_t(__builtin_shufflevector(v, v, 4, 5, 6, 7))));
#else
  for (int i = 0; i < 8; ++i) p[i].store(v[i]);
#endif
}

TESSERA_FN void store1(float* p, float v) { *p = v; }
TESSERA_FN void store1(Bf16* p, float v) { p->bits = kernel::float_to_bf16(v); }
TESSERA_FN void store1(Fp16* p, float v) { p->bits = kernel::float_to_fp16(v); }

// Transposes an 8 x 8 block in registers.
TESSERA_FN void transpose8(Float8 (&r)[8]) {
  Float8 a[8], b[8];
  TESSERA_UNROLL
  for (int i = 0; i < 8; i += 2) {
    a[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    a[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  TESSERA_UNROLL
  for (int i = 0; i < 8; i += 4) {
    TESSERA_UNROLL
    for (int k = 0; k < 2; ++k) {
      b[i + k] = __builtin_shufflevector(a[i + k], a[i + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      b[i + k + 2] = __builtin_shufflevector(a[i + k], a[i + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  TESSERA_UNROLL
  for (int i = 0; i < 4; ++i) {
    r[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
