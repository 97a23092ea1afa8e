#pragma once
// The target's matrix instructions as one product of 16-bit numbers, accumulated in fp32:
//
//     Sums += A·B        A [kSide, 16]  B [16, kSide]  Sums [kSide, kSide]
//
// A lane has one column of B and of the sums, column lane % kSide, in one of the wave's two halves;
// of A it has row lane % kSide. Of the 16 numbers of the contraction it gives those of its half:
//
//               kSide  lanes  gives numbers                     holds rows of sums
//     CDNA        32     64   8·half … 8·half + 7               8·(r / 4) + 4·half + r % 4, r < 16
//     RDNA 4      16     32   8·half … 8·half + 7               8·half + r                , r < 8
//     RDNA 3      16     32   all 16, in both halves            2·r + half                , r < 8
//
// The order of the numbers is free, as long as A and B agree: sums become the operand of the next
// product without leaving their lane (RDNA 3: with those of the other half), in the order in which
// value_chunk says that the other operand must be read.
//
// Layouts: AMD's matrix instruction calculator; on gfx90a and gfx942 a product is two instructions
// of 8 numbers each.

#include <cstdint>

#include "backends/hip/common/element.hip.hpp"
#include "backends/hip/common/gcn.hip.hpp"

namespace tessera::hip {

#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
#define TESSERA_HIP_CDNA 1
#else
#define TESSERA_HIP_CDNA 0
#endif

template <int kWords>
struct OperandOf {
  std::uint32_t word[kWords];
};

TESSERA_DEVICE int half() { return lane() / (kWave / 2); }

struct Matrix {
  static constexpr int kSide = kWave / 2;
#if TESSERA_HIP_CDNA
  static constexpr int kSums = 16;   // of a lane
  static constexpr int kWords = 4;   // of an operand, two numbers each
  static constexpr int kOwnRow = 4;  // times half: what row_of leaves out
  static constexpr int row_of(int r) { return 8 * (r / 4) + r % 4; }
#elif defined(__gfx1201__)
  static constexpr int kSums = 8;
  static constexpr int kWords = 4;
  static constexpr int kOwnRow = 8;
  static constexpr int row_of(int r) { return r; }
#else
  static constexpr int kSums = 8;
  static constexpr int kWords = 8;
  static constexpr int kOwnRow = 1;
  static constexpr int row_of(int r) { return 2 * r; }
#endif
  using Operand = OperandOf<kWords>;
  using Sums = float __attribute__((ext_vector_type(kSums)));

  TESSERA_DEVICE static int column() { return lane() % kSide; }
  TESSERA_DEVICE static int own_row() { return kOwnRow * half(); }

  // Where in 16 consecutive numbers the lane's i-th piece of 8 begins.
  static constexpr int kPieces = kWords / 4;
  TESSERA_DEVICE static int piece(int i) { return kPieces == 2 ? 8 * i : 8 * half(); }

  // Sums as an operand: of 16 rows, whose first is a multiple of 16, the lane's eight from `sum`
  // on.
  template <class Element>
  TESSERA_DEVICE static Operand operand_of(const float* sum) {
    Operand made;
#if defined(__gfx1100__)
    TESSERA_UNROLL
    for (int r = 0; r < 8; r += 2) {
      const std::uint32_t own = Element::pack_weights(sum[r], sum[r + 1]);
      const std::uint32_t other = other_half(own);
      const std::uint32_t even = half() == 0 ? own : other, odd = half() == 0 ? other : own;
      made.word[r] = __builtin_amdgcn_perm(odd, even, 0x05040100u);
      made.word[r + 1] = __builtin_amdgcn_perm(odd, even, 0x07060302u);
    }
#else
    TESSERA_UNROLL
    for (int w = 0; w < 4; ++w) made.word[w] = Element::pack_weights(sum[2 * w], sum[2 * w + 1]);
#endif
    return made;
  }
  // The other operand's numbers in the same order: of 16 consecutive ones in chunks of 4, the
  // lane's c-th chunk, for c in [0, kWords / 2).
  TESSERA_DEVICE static int value_chunk(int c) {
#if TESSERA_HIP_CDNA
    return 2 * c + half();
#elif defined(__gfx1201__)
    return 2 * half() + c;
#else
    return c;
#endif
  }

  template <class Element>
  TESSERA_DEVICE static void multiply(Sums& sums, const Operand& a, const Operand& b);
};

namespace detail {

#if defined(__gfx90a__) || defined(__gfx942__)

using Half4 = _Float16 __attribute__((ext_vector_type(4)));
using Short4 = short __attribute__((ext_vector_type(4)));

template <class Vector>
TESSERA_DEVICE Vector words(const Matrix::Operand& of, int first) {
  return __builtin_bit_cast(Vector, Words2{of.word[first], of.word[first + 1]});
}
TESSERA_DEVICE void multiply(Matrix::Sums& s, const Matrix::Operand& a, const Matrix::Operand& b,
                             Fp16) {
  s = __builtin_amdgcn_mfma_f32_32x32x8f16(words<Half4>(a, 0), words<Half4>(b, 0), s, 0, 0, 0);
  s = __builtin_amdgcn_mfma_f32_32x32x8f16(words<Half4>(a, 2), words<Half4>(b, 2), s, 0, 0, 0);
}
TESSERA_DEVICE void multiply(Matrix::Sums& s, const Matrix::Operand& a, const Matrix::Operand& b,
                             Bf16) {
  s = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(words<Short4>(a, 0), words<Short4>(b, 0), s, 0, 0,
                                               0);
  s = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(words<Short4>(a, 2), words<Short4>(b, 2), s, 0, 0,
                                               0);
}

#else

template <class Vector>
TESSERA_DEVICE Vector words(const Matrix::Operand& of) {
  return __builtin_bit_cast(Vector, of);
}

#if defined(__gfx950__)

using Half8 = _Float16 __attribute__((ext_vector_type(8)));
using Bfloat8 = __bf16 __attribute__((ext_vector_type(8)));

TESSERA_DEVICE void multiply(Matrix::Sums& s, const Matrix::Operand& a, const Matrix::Operand& b,
                             Fp16) {
  s = __builtin_amdgcn_mfma_f32_32x32x16_f16(words<Half8>(a), words<Half8>(b), s, 0, 0, 0);
}
TESSERA_DEVICE void multiply(Matrix::Sums& s, const Matrix::Operand& a, const Matrix::Operand& b,
                             Bf16) {
  s = __builtin_amdgcn_mfma_f32_32x32x16_bf16(words<Bfloat8>(a), words<Bfloat8>(b), s, 0, 0, 0);
}

#elif defined(__gfx1201__)

using Half8 = _Float16 __attribute__((ext_vector_type(8)));
using Short8 = short __attribute__((ext_vector_type(8)));

TESSERA_DEVICE void multiply(Matrix::Sums& s, const Matrix::Operand& a, const Matrix::Operand& b,
                             Fp16) {
  s = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(words<Half8>(a), words<Half8>(b), s);
}
TESSERA_DEVICE void multiply(Matrix::Sums& s, const Matrix::Operand& a, const Matrix::Operand& b,
                             Bf16) {
  s = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(words<Short8>(a), words<Short8>(b), s);
}

#elif defined(__gfx1100__)

using Half16 = _Float16 __attribute__((ext_vector_type(16)));
using Short16 = short __attribute__((ext_vector_type(16)));

TESSERA_DEVICE void multiply(Matrix::Sums& s, const Matrix::Operand& a, const Matrix::Operand& b,
                             Fp16) {
  s = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(words<Half16>(a), words<Half16>(b), s);
}
TESSERA_DEVICE void multiply(Matrix::Sums& s, const Matrix::Operand& a, const Matrix::Operand& b,
                             Bf16) {
  s = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(words<Short16>(a), words<Short16>(b), s);
}

#else
#error "no matrix instructions are known of this target"
#endif
#endif

}  // namespace detail

template <class Element>
TESSERA_DEVICE void Matrix::multiply(Sums& sums, const Operand& a, const Operand& b) {
  detail::multiply(sums, a, b, Element{});
}

}  // namespace tessera::hip
