// Matrix instructions. Which row (of A; column, of B) and which number of the contraction a lane's
// numbers are, and which row and column its sums: AMD's matrix instruction calculator.

#include <fmt/core.h>

#include <bit>
#include <cmath>

#include "tests/amdgpu/lanes/operations.hpp"

namespace tessera::amdgpu::lanes {
namespace {

enum class Type { Half, Bfloat, Single };

template <Type kType>
float number(const void* of, int i) {
  if constexpr (kType == Type::Half) {
    return static_cast<float>(static_cast<const _Float16*>(of)[i]);
  } else if constexpr (kType == Type::Bfloat) {
    const std::uint32_t bits = static_cast<const std::uint16_t*>(of)[i];
    return std::bit_cast<float>(bits << 16);
  } else {
    return static_cast<const float*>(of)[i];
  }
}

// kSide lanes beside one another have rows 0 … kSide - 1, those after them the next numbers.
template <int kSide_, int kDepth_>
struct Spread {
  static constexpr int kSide = kSide_, kDepth = kDepth_;
  static constexpr int kWave = 2 * kSide;
  static constexpr int kNumbers = kDepth / 2;  // of a lane
  static constexpr int kSums = kSide * kSide / kWave;
  static constexpr int first(int lane) { return kNumbers * (lane / kSide); }
};

template <int kDepth>
struct Cdna : Spread<32, kDepth> {
  static constexpr int row(int lane, int r) { return 8 * (r / 4) + 4 * (lane / 32) + r % 4; }
};
struct Gfx12 : Spread<16, 16> {
  static constexpr int row(int lane, int r) { return 8 * (lane / 16) + r; }
};
// Both halves of the wave have all numbers.
struct Gfx11 : Spread<16, 16> {
  static constexpr int kNumbers = 16;
  static constexpr int first(int) { return 0; }
  static constexpr int row(int lane, int r) { return 2 * r + lane / 16; }
};

template <class L, Type kType>
void multiply(const Wave& wave) {
  if (wave.lanes != L::kWave) fail("a matrix instruction of the other wave size");
  constexpr int kSide = L::kSide;
  float a[L::kDepth][kSide], b[L::kDepth][kSide], sums[kSide][kSide];
  for (int l = 0; l < L::kWave; ++l) {
    const auto& lane = wave.from<Factors>(l);
    for (int i = 0; i < L::kNumbers; ++i) {
      a[L::first(l) + i][l % kSide] = number<kType>(lane.a, i);
      b[L::first(l) + i][l % kSide] = number<kType>(lane.b, i);
    }
    for (int r = 0; r < L::kSums; ++r) sums[L::row(l, r)][l % kSide] = lane.sums[r];
  }
  if constexpr (L::kNumbers == L::kDepth) {
    for (int l = 0; l < kSide; ++l) {
      const auto &low = wave.from<Factors>(l), &high = wave.from<Factors>(l + kSide);
      constexpr std::size_t kBytes = 2 * L::kNumbers;
      if (std::memcmp(low.a, high.a, kBytes) != 0 || std::memcmp(low.b, high.b, kBytes) != 0)
        fail(fmt::format("lanes {} and {} must have the same factors", l, l + kSide));
    }
  }
  for (int row = 0; row < kSide; ++row)
    for (int k = 0; k < L::kDepth; ++k) {
      const float factor = a[k][row];
      for (int column = 0; column < kSide; ++column)
        sums[row][column] = std::fma(factor, b[k][column], sums[row][column]);
    }
  for (int l = 0; l < L::kWave; ++l)
    for (int r = 0; r < L::kSums; ++r) (&wave.to<float>(l))[r] = sums[L::row(l, r)][l % kSide];
}

}  // namespace

const Operation kMfma32x32x8Half{"mfma_f32_32x32x8f16", multiply<Cdna<8>, Type::Half>};
const Operation kMfma32x32x8Bfloat{"mfma_f32_32x32x8bf16_1k", multiply<Cdna<8>, Type::Bfloat>};
const Operation kMfma32x32x16Half{"mfma_f32_32x32x16_f16", multiply<Cdna<16>, Type::Half>};
const Operation kMfma32x32x16Bfloat{"mfma_f32_32x32x16_bf16", multiply<Cdna<16>, Type::Bfloat>};
const Operation kMfma32x32x2Single{"mfma_f32_32x32x2f32", multiply<Cdna<2>, Type::Single>};
const Operation kWmma11Half{"wmma_f32_16x16x16_f16_w32", multiply<Gfx11, Type::Half>};
const Operation kWmma11Bfloat{"wmma_f32_16x16x16_bf16_w32", multiply<Gfx11, Type::Bfloat>};
const Operation kWmma12Half{"wmma_f32_16x16x16_f16_w32_gfx12", multiply<Gfx12, Type::Half>};
const Operation kWmma12Bfloat{"wmma_f32_16x16x16_bf16_w32_gfx12", multiply<Gfx12, Type::Bfloat>};

}  // namespace tessera::amdgpu::lanes
