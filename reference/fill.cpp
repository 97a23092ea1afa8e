#include "reference/fill.hpp"

#include <cstring>

#include "reference/number.hpp"

namespace tessera::reference {
namespace {

// value(position, column), where position counts elements of the dense [batch, head, seq, dim]
// array.
template <class Value>
void fill(const Tensor& t, Value value) {
  if (is_empty(t.extent)) return;
  std::uint64_t position = 0;
  for (std::int64_t b = 0; b < t.extent.batch; ++b) {
    for (std::int64_t h = 0; h < t.extent.head; ++h) {
      for (std::int64_t s = 0; s < t.extent.seq; ++s) {
        for (std::int64_t d = 0; d < t.extent.dim; ++d) {
          store(t.dtype, t.data, index_of(t.stride, b, h, s, d),
                value(position++, static_cast<std::uint64_t>(d)));
        }
      }
    }
  }
}

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

double sum_of_quarters(std::uint64_t bits) noexcept {
  return static_cast<double>((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) +
                             (bits >> 48));
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) noexcept {
  return mix(mix(seed + 0x9e3779b97f4a7c15u) + index * 0x9e3779b97f4a7c15u);
}

double random_gaussian(std::uint64_t seed, std::uint64_t index) noexcept {
  constexpr double kMean = 4 * 65535.0;                        // of eight numbers in [0, 65535]
  constexpr double kInverseDeviation = 1 / 53509.91992145008;  // √(8 · (65536² − 1) / 12)
  const double sum = sum_of_quarters(random_bits(seed, 2 * index)) +
                     sum_of_quarters(random_bits(seed, 2 * index + 1));
  return (sum - kMean) * kInverseDeviation;
}

void fill_gaussian(const Tensor& tensor, std::uint64_t seed, double scale) {
  fill(tensor, [=](std::uint64_t i, std::uint64_t) { return scale * random_gaussian(seed, i); });
}

void fill_skewed(const Tensor& tensor, std::uint64_t seed, double scale) {
  const std::uint64_t columns = mix(seed ^ 0x636f6c756d6e73u);
  fill(tensor, [=](std::uint64_t i, std::uint64_t d) {
    const std::uint64_t column = random_bits(columns, d);
    const double size =
        (column % 16 == 0 ? 4.0 : 1.0) * (random_bits(~seed, i) % 64 == 0 ? 4.0 : 1.0);
    const double mean = (static_cast<double>(column >> 32 & 0xff) - 127.5) / 256;
    return scale * (mean + size * random_gaussian(seed, i));
  });
}

void fill_integers(const Tensor& tensor, std::uint64_t seed, std::int64_t low, std::int64_t high) {
  const auto count = static_cast<std::uint64_t>(high - low) + 1;
  fill(tensor, [=](std::uint64_t i, std::uint64_t) {
    return static_cast<double>(low + static_cast<std::int64_t>(random_bits(seed, i) % count));
  });
}

void fill_constant(const Tensor& tensor, double value) {
  fill(tensor, [=](std::uint64_t, std::uint64_t) { return value; });
}

void fill_nan(void* data, std::size_t bytes) noexcept {
  if (bytes > 0) std::memset(data, 0xff, bytes);
}

}  // namespace tessera::reference
