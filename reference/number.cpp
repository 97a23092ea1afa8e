#include "reference/number.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace tessera::reference {
namespace {

template <class T>
T element(const void* data, std::int64_t index) noexcept {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <class T>
void set_element(void* data, std::int64_t index, T value) noexcept {
  std::memcpy(static_cast<char*>(data) + index * static_cast<std::int64_t>(sizeof(T)), &value,
              sizeof(T));
}

// One loop a number format: the format is chosen outside of it.
template <class From, class To, class Decode>
void convert_loop(const void* data, std::int64_t first, std::int64_t stride, std::int64_t count,
                  To* to, Decode decode_one) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<To>(decode_one(element<From>(data, first + i * stride)));
  }
}

template <class To>
void convert_to(DType dtype, const void* data, std::int64_t first, std::int64_t stride,
                std::int64_t count, To* to) {
  const auto same = [](auto value) { return value; };
  switch (dtype) {
    case DType::fp32:
      return convert_loop<float>(data, first, stride, count, to, same);
    case DType::fp16:
      return convert_loop<std::uint16_t>(data, first, stride, count, to,
                                         [](std::uint16_t bits) { return decode(kFp16, bits); });
    case DType::bf16:
      return convert_loop<std::uint16_t>(data, first, stride, count, to, [](std::uint16_t bits) {
        return std::bit_cast<float>(std::uint32_t{bits} << 16);
      });
    case DType::int32:
      return convert_loop<std::int32_t>(data, first, stride, count, to, same);
    case DType::int64:
      return convert_loop<std::int64_t>(data, first, stride, count, to, same);
    case DType::uint8:
      return convert_loop<std::uint8_t>(data, first, stride, count, to, same);
  }
}

float round_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return std::bit_cast<float>(nan ? bits | 0x00400000u : rounded);
}

float round_fp16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000u;
  const auto magnitude = std::bit_cast<float>(bits ^ sign);
  // From 2^-14 on: drop 13 bits. Below: numbers around 0.5 are spaced as fp16's subnormal ones,
  // 2^-24.
  const auto normal =
      std::bit_cast<float>(((bits ^ sign) + 0xfffu + (bits >> 13 & 1u)) & 0xffffe000u);
  const float subnormal = (magnitude + 0.5f) - 0.5f;
  float rounded = magnitude < 0x1p-14f ? subnormal : normal;
  rounded = magnitude >= 65520.0f ? std::numeric_limits<float>::infinity() : rounded;
  rounded = magnitude != magnitude ? magnitude : rounded;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(rounded) | sign);
}

}  // namespace

double load(DType dtype, const void* data, std::int64_t index) noexcept {
  double value = 0;
  convert_to(dtype, data, index, 1, 1, &value);
  return value;
}

void store(DType dtype, void* data, std::int64_t index, double value) noexcept {
  switch (dtype) {
    case DType::fp32:
      return set_element(data, index, static_cast<float>(value));
    case DType::fp16:
      return set_element(data, index, encode(kFp16, value));
    case DType::bf16:
      return set_element(data, index, encode(kBf16, value));
    case DType::int32:
      return set_element(data, index, static_cast<std::int32_t>(value));
    case DType::int64:
      return set_element(data, index, static_cast<std::int64_t>(value));
    case DType::uint8:
      return set_element(data, index, static_cast<std::uint8_t>(value));
  }
}

double round_to(DType dtype, double value) noexcept {
  switch (dtype) {
    case DType::fp32:
      return static_cast<float>(value);
    case DType::fp16:
      return decode(kFp16, encode(kFp16, value));
    case DType::bf16:
      return decode(kBf16, encode(kBf16, value));
    default:
      return value;
  }
}

void round_to(DType dtype, float* values, std::int64_t count) noexcept {
  if (dtype == DType::bf16) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = round_bf16(values[i]);
  } else if (dtype == DType::fp16) {
    for (std::int64_t i = 0; i < count; ++i) values[i] = round_fp16(values[i]);
  }
}

double unit_roundoff(DType dtype) noexcept {
  return dtype == DType::fp16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24;
}

void convert(DType dtype, const void* data, std::int64_t first, std::int64_t stride,
             std::int64_t count, double* to) {
  convert_to(dtype, data, first, stride, count, to);
}

void convert(DType dtype, const void* data, std::int64_t first, std::int64_t stride,
             std::int64_t count, float* to) {
  convert_to(dtype, data, first, stride, count, to);
}

std::vector<double> to_doubles(const ConstTensor& t) {
  if (t.data == nullptr || is_empty(t.extent)) return {};
  std::vector<double> values(
      static_cast<std::size_t>(t.extent.batch * t.extent.head * t.extent.seq * t.extent.dim));
  double* to = values.data();
  for (std::int64_t b = 0; b < t.extent.batch; ++b) {
    for (std::int64_t h = 0; h < t.extent.head; ++h) {
      for (std::int64_t s = 0; s < t.extent.seq; ++s, to += t.extent.dim) {
        convert(t.dtype, t.data, index_of(t.stride, b, h, s, 0), t.stride.dim, t.extent.dim, to);
      }
    }
  }
  return values;
}

void from_doubles(const std::vector<double>& values, const Tensor& t) {
  if (is_empty(t.extent)) return;
  const double* from = values.data();
  for (std::int64_t b = 0; b < t.extent.batch; ++b) {
    for (std::int64_t h = 0; h < t.extent.head; ++h) {
      for (std::int64_t s = 0; s < t.extent.seq; ++s) {
        for (std::int64_t d = 0; d < t.extent.dim; ++d) {
          store(t.dtype, t.data, index_of(t.stride, b, h, s, d), *from++);
        }
      }
    }
  }
}

}  // namespace tessera::reference
