#pragma once
/// Reproducible numbers for test data: the same on every machine, for they use integers alone.

#include <cstdint>

namespace tessera::testing {

/// splitmix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// In [0, bound); 0 if bound is 0.
  constexpr std::int64_t below(std::int64_t bound) noexcept {
    return bound > 0 ? static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(bound)) : 0;
  }

  /// In [low, high].
  constexpr std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
    return low + below(high - low + 1);
  }

  /// In [0, 1), a multiple of 2^-24.
  constexpr double uniform() noexcept { return static_cast<double>(next() >> 40) * 0x1p-24; }

  /// Nearly Gaussian, mean 0, variance 1, within ±3.5: a sum of four uniform 16-bit numbers.
  constexpr double normal() noexcept {
    const std::uint64_t bits = next();
    std::int64_t sum = 0;
    for (int word = 0; word < 4; ++word) {
      sum += static_cast<std::int64_t>((bits >> (16 * word)) & 0xffffu);
    }
    constexpr double kDeviation = 37837.2;  // of the sum: sqrt(4 / 12) · 2^16
    return (static_cast<double>(sum) - 131070.0) / kDeviation;
  }

  /// True with the given probability.
  constexpr bool chance(double probability) noexcept { return uniform() < probability; }

  template <class T, std::size_t N>
  constexpr const T& pick(const T (&choices)[N]) noexcept {
    return choices[below(static_cast<std::int64_t>(N))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace tessera::testing
