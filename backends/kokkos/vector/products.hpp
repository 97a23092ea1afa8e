#pragma once
// How a unit multiplies: what a word of an operand holds, and the register tile.
//
// Most units multiply fp32 numbers. Those with TESSERA_VECTOR_BF16 take bf16 operands as they are,
// in pairs: a word of 32 bits holds two numbers that are neighbours along the axis that is summed
// over, the first in the low half. avx512_bf16 has an instruction that adds two such products to
// each lane; amx_bf16 (TESSERA_VECTOR_AMX too) one that multiplies tiles of 16 x 16 words. Built
// for a processor without them, as <name>_emulated, both compute the same with what AVX-512 has:
// for tests.

#include "backends/kokkos/vector/isa.hpp"
#include "backends/kokkos/vector/task.hpp"
#include "core/kernel/mask.hpp"

#if defined(TESSERA_VECTOR_AMX) && !defined(__AMX_BF16__)
#include "backends/kokkos/vector/emulated_tiles.hpp"
#endif

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

#if defined(TESSERA_VECTOR_BF16)
inline constexpr Index kPair = 2;  // numbers a word
#else
inline constexpr Index kPair = 1;
#endif

// A tile is kGroup rows (keys of scores, dims of outputs) x vectors of query rows. kStep: numbers
// along the axis summed over that one step of multiply() takes.
#if defined(TESSERA_VECTOR_AMX)
inline constexpr int kGroup = 16;
inline constexpr Index kStep = 32;
inline constexpr bool kTiles = true;  // tiles of sums lie in memory: multiply_tiles()
#else
// kGroup x kVectors accumulators, kVectors operands and a broadcast one fit the register file.
inline constexpr int kGroup = kRegisters == 32 ? 8 : 4;
inline constexpr Index kStep = kPair;
inline constexpr bool kTiles = false;  // in registers: multiply()
#endif

// Head dimensions are padded with zeros to a multiple of this; keys of a product begin at one of
// kKeys.
inline constexpr Index kColumns = kernel::larger(8 * kPair, kStep);
inline constexpr Index kKeys = kernel::larger(Index{kGroup}, kStep);

// See Unit. Tiles compute so fast that what a block costs once, loading and storing the sums,
// shows.
inline constexpr Index kKeyBlocks = kTiles ? 2 : 1;

#if defined(TESSERA_VECTOR_BF16)
// sum + the products of both pairs.
TESSERA_FN Float dot(Float sum, Float a, Float b) {
#if defined(__AVX512BF16__)
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
#else
  const auto odd = [](Float x) {
    return reinterpret_cast<Float>(reinterpret_cast<Bits>(x) & 0xffff0000u);
  };
  const auto even = [](Float x) {
    return reinterpret_cast<Float>(reinterpret_cast<Bits>(x) << 16);
  };
  sum += odd(a) * odd(b);
  return sum + even(a) * even(b);
#endif
}
#else
TESSERA_FN Float dot(Float sum, Float a, Float b) { return sum + a * b; }
#endif

// A word of both, rounded to nearest, ties to even.
TESSERA_FN Float pair(Float first, Float second) {
#if defined(__AVX512BF16__)
  const __m512i halves = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  using Half32 = std::uint16_t __attribute__((vector_size(64)));
  constexpr Half32 kInterleaved = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                   8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return reinterpret_cast<Float>(
      _mm512_permutexvar_epi16(reinterpret_cast<__m512i>(kInterleaved), halves));
#else
  const auto rounded = [](Float x) {
    const Bits bits = reinterpret_cast<Bits>(x);
    return x == x ? bits + 0x7fffu + ((bits >> 16) & 1u) : bits | 0x400000u;
  };
  return reinterpret_cast<Float>((rounded(first) >> 16) | (rounded(second) & 0xffff0000u));
#endif
}

#if defined(TESSERA_VECTOR_AMX)

// The tile registers, as long as it lives: 0 to 2 hold sums, 3 to 5 the operand with a query row a
// lane, 6 the other; 16 rows of 64 bytes each.
class Multiplier {
 public:
  TESSERA_FN Multiplier() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16};
    } config;
    __asm__ volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
  }
  TESSERA_FN ~Multiplier() { _tile_release(); }
  Multiplier(const Multiplier&) = delete;
  Multiplier& operator=(const Multiplier&) = delete;
};

// sum[r][v] = (kAdd ? sum[r][v] : 0) + Σ_k a[k][r] · b[k][v], k over words: kGroup rows of kV
// vectors, in memory. a: [words / 16][kGroup][16]; b: kV vectors of [words].
template <int kV, bool kAdd>
TESSERA_FN void multiply_tiles(float* sum, const float* a, const float* b, Index words) {
  constexpr int kRow = kV * 64;
  // The intrinsics do not say which memory they read and write.
  __asm__ volatile("" : : : "memory");
  if constexpr (kAdd) {
    _tile_loadd(0, sum, kRow);
    if constexpr (kV > 1) _tile_loadd(1, sum + kWidth, kRow);
    if constexpr (kV > 2) _tile_loadd(2, sum + 2 * kWidth, kRow);
  } else {
    _tile_zero(0);
    if constexpr (kV > 1) _tile_zero(1);
    if constexpr (kV > 2) _tile_zero(2);
  }
  for (Index k = 0; k < words; k += 16) {
    const float* operand = b + k * kV * kWidth;
    _tile_loadd(6, a + k * kGroup, 64);
    _tile_loadd(3, operand, kRow);
    _tile_dpbf16ps(0, 6, 3);
    if constexpr (kV > 1) {
      _tile_loadd(4, operand + kWidth, kRow);
      _tile_dpbf16ps(1, 6, 4);
    }
    if constexpr (kV > 2) {
      _tile_loadd(5, operand + 2 * kWidth, kRow);
      _tile_dpbf16ps(2, 6, 5);
    }
  }
  _tile_stored(0, sum, kRow);
  if constexpr (kV > 1) _tile_stored(1, sum + kWidth, kRow);
  if constexpr (kV > 2) _tile_stored(2, sum + 2 * kWidth, kRow);
  __asm__ volatile("" : : : "memory");
}

#else

struct Multiplier {};
template <int kV, bool kAdd>
void multiply_tiles(float* sum, const float* a, const float* b, Index words) = delete;

#endif

// sum[r][v] += Σ_k a[k][r] · b[k][v], k over words: the inner loop of the products. a:
// [words][kGroup], b: kV vectors of [words][kStride].
template <int kV, Index kStride = kV * kWidth>
TESSERA_FN void multiply(Float (&sum)[kGroup][kV], const float* a, const float* b, Index words) {
#pragma GCC unroll 2
  for (Index k = 0; k < words; ++k) {
    Float operand[kV];
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) operand[v] = load(b + k * kStride + v * kWidth);
#if defined(__aarch64__)
    // NEON multiplies by an element of a register; GCC would load every element into one of its
    // own.
    TESSERA_UNROLL
    for (int first = 0; first < kGroup; first += 4) {
      Float four = load(a + k * kGroup + first);
      __asm__("" : "+w"(four));
      TESSERA_UNROLL
      for (int r = 0; r < 4; ++r) {
        TESSERA_UNROLL
        for (int v = 0; v < kV; ++v) {
          sum[first + r][v] = dot(sum[first + r][v], broadcast(four[r]), operand[v]);
        }
      }
    }
#else
    TESSERA_UNROLL
    for (int r = 0; r < kGroup; ++r) {
      const Float scalar = broadcast(a[k * kGroup + r]);
      TESSERA_UNROLL
      for (int v = 0; v < kV; ++v) sum[r][v] = dot(sum[r][v], scalar, operand[v]);
    }
#endif
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
