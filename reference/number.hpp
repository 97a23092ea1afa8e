#pragma once
/// Number formats by hand: what an element of a tensor is worth, and the element nearest to a
/// number. Rounding is to nearest, ties to even, in one step from float64; overflow gives ±∞,
/// subnormal numbers are kept, NaN stays NaN.

#include <bit>
#include <cstdint>
#include <vector>

#include <tessera/tensor.hpp>

namespace tessera::reference {

/// A 16-bit IEEE-like format: sign, exponent, `mantissa` bits; exponents are biased by `bias`.
struct SmallFormat {
  int mantissa;
  int bias;
};
inline constexpr SmallFormat kFp16{.mantissa = 10, .bias = 15};
inline constexpr SmallFormat kBf16{.mantissa = 7, .bias = 127};

/// The value of a 16-bit pattern; exact.
constexpr double decode(SmallFormat format, std::uint16_t bits) noexcept {
  const std::uint64_t sign = std::uint64_t{bits} >> 15 << 63;
  const std::uint64_t magnitude = bits & 0x7fffu;
  const std::uint64_t exponent = magnitude >> format.mantissa;
  const int shift = 52 - format.mantissa;
  if (exponent == 0) {  // subnormal: a small multiple of 2^(1 − bias − mantissa)
    const std::uint64_t unit = static_cast<std::uint64_t>(1024 - format.bias - format.mantissa)
                               << 52;
    const double value = static_cast<double>(magnitude) * std::bit_cast<double>(unit);
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) | sign);
  }
  if (magnitude >= 0x7fffu >> format.mantissa << format.mantissa) {
    return std::bit_cast<double>(sign | std::uint64_t{0x7ff} << 52 | magnitude << shift);
  }
  const std::uint64_t rebias = static_cast<std::uint64_t>(1023 - format.bias) << 52;
  return std::bit_cast<double>(sign | ((magnitude << shift) + rebias));
}

/// The 16-bit pattern nearest to `value`, ties to even.
constexpr std::uint16_t encode(SmallFormat format, double value) noexcept {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  const auto sign = static_cast<std::uint16_t>(bits >> 63 << 15);
  const auto infinity = static_cast<std::uint16_t>(0x7fffu >> format.mantissa << format.mantissa);
  const int shift = 52 - format.mantissa;
  std::uint64_t rounded = 0;
  if (magnitude > std::uint64_t{0x7ff} << 52) {  // NaN, made quiet
    rounded = infinity | std::uint64_t{1} << (format.mantissa - 1) |
              (magnitude >> shift & ((std::uint64_t{1} << format.mantissa) - 1));
  } else if (magnitude < static_cast<std::uint64_t>(1024 - format.bias) << 52) {
    // Below the smallest normal number. Adding 2^52 of the format's smallest steps leaves their
    // count in the low bits, rounded by the addition.
    const auto steps = static_cast<std::uint64_t>(1023 + 53 - format.bias - format.mantissa) << 52;
    rounded = std::bit_cast<std::uint64_t>(std::bit_cast<double>(magnitude) +
                                           std::bit_cast<double>(steps)) -
              steps;
  } else {
    const std::uint64_t half = (std::uint64_t{1} << (shift - 1)) - 1 + (magnitude >> shift & 1);
    rounded = ((magnitude + half) >> shift) -
              (static_cast<std::uint64_t>(1023 - format.bias) << format.mantissa);
    rounded = rounded < infinity ? rounded : infinity;
  }
  return static_cast<std::uint16_t>(sign | rounded);
}

/// Element `index` of an array of `dtype`, as float64; exact but for int64 beyond 2⁵³.
double load(DType dtype, const void* data, std::int64_t index) noexcept;

/// Writes the number of `dtype` nearest to `value` to element `index`. Integers: truncated; the
/// value must fit.
void store(DType dtype, void* data, std::int64_t index, double value) noexcept;

/// `value` rounded to `dtype` (fp32, fp16 or bf16).
double round_to(DType dtype, double value) noexcept;

/// Rounds `count` numbers to `dtype` (fp32: nothing happens) in place.
void round_to(DType dtype, float* values, std::int64_t count) noexcept;

/// 2⁻²⁴, 2⁻¹¹, 2⁻⁸ for fp32, fp16, bf16: half the distance from 1 to the next number.
double unit_roundoff(DType dtype) noexcept;

/// `count` elements, the first at index `first`, `stride` elements apart, into a dense array. To
/// float: fp32, fp16, bf16 and uint8 are exact.
void convert(DType dtype, const void* data, std::int64_t first, std::int64_t stride,
             std::int64_t count, double* to);
void convert(DType dtype, const void* data, std::int64_t first, std::int64_t stride,
             std::int64_t count, float* to);

/// Index of an element in its array, for strides as they are.
constexpr std::int64_t index_of(const Strides& s, std::int64_t batch, std::int64_t head,
                                std::int64_t seq, std::int64_t dim) noexcept {
  return batch * s.batch + head * s.head + seq * s.seq + dim * s.dim;
}

/// Whether there is no element: loops over the axes around one of extent 0 may be as long as a
/// number can say.
constexpr bool is_empty(const Extents& e) noexcept {
  return e.batch == 0 || e.head == 0 || e.seq == 0 || e.dim == 0;
}

/// All of a tensor as a dense [batch, head, seq, dim] array; empty if it is absent.
std::vector<double> to_doubles(const ConstTensor& tensor);

/// Writes a dense [batch, head, seq, dim] array to a tensor, rounded to its type.
void from_doubles(const std::vector<double>& values, const Tensor& tensor);

}  // namespace tessera::reference
