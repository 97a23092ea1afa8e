#pragma once
/// Philox4x32 (Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3") and
/// the dropout of attention weights that is drawn from it, written from their definitions.

#include <array>
#include <cmath>
#include <cstdint>

namespace tessera::reference {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// `rounds` rounds of Philox4x32. Dropout uses 7.
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key, int rounds) noexcept {
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// Which weights are kept. `threshold` of the 65,536 numbers that may be drawn drop a weight.
struct Dropout {
  std::uint32_t threshold = 0;  ///< round-half-even(probability · 2¹⁶); 0 is off, 65,536 drops all
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;

  static Dropout make(double probability, std::uint64_t seed, std::uint64_t offset) noexcept {
    return {static_cast<std::uint32_t>(std::nearbyint(probability * 65536)), seed, offset};
  }

  /// The eight 16-bit numbers of columns 8·(column / 8) and on, of row `row` of head `head` =
  /// batch·head_q + head.
  std::array<std::uint32_t, 8> draw(std::int64_t head, std::int64_t row,
                                    std::int64_t column) const noexcept {
    const PhiloxCounter words = philox4x32(
        {static_cast<std::uint32_t>(column / 8), static_cast<std::uint32_t>(row),
         static_cast<std::uint32_t>(head), static_cast<std::uint32_t>(offset)},
        {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32 ^ offset >> 32)},
        7);
    std::array<std::uint32_t, 8> numbers{};
    for (std::size_t i = 0; i < 8; ++i) numbers[i] = words[i / 2] >> (i % 2 * 16) & 0xffffu;
    return numbers;
  }

  /// Factor of a kept weight; 0 if none is kept.
  double keep_scale() const noexcept {
    return threshold < 65536 ? 65536.0 / (65536.0 - threshold) : 0;
  }
};

}  // namespace tessera::reference
