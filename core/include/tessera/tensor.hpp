#pragma once
/// Non-owning views of attention's operands: a pointer, an element type, four extents and four
/// element strides.
///
/// Two layouts are usual, and both are written [batch, head, seq, dim] in the extents; only the
/// strides differ:
///
///     bhsd   [batch][head][seq][dim] in memory        stride.head = seq·dim, stride.seq = dim
///     bshd   [batch][seq][head][dim] in memory        stride.head = dim,     stride.seq = head·dim
///
/// Packed (variable-length) operands are [total tokens][head][dim]: `bshd` with batch 1.

#include <cstdint>

#include <tessera/dtype.hpp>

namespace tessera {

/// Number of elements along each axis; each at least 0.
struct Extents {
  std::int64_t batch = 1;
  std::int64_t head = 1;
  std::int64_t seq = 1;
  std::int64_t dim = 1;

  friend constexpr bool operator==(const Extents&, const Extents&) = default;
};

/// Distance between neighbours along each axis, in elements, at least 0. 0 repeats one slice
/// (inputs only). Where an axis has one element its stride means nothing and may be anything;
/// elsewhere dim's is 1 (or 0 in bias, boolean_mask and dout).
struct Strides {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t seq = 0;
  std::int64_t dim = 1;

  friend constexpr bool operator==(const Strides&, const Strides&) = default;
};

namespace detail {

constexpr std::int64_t wrapping_product(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

}  // namespace detail

/// Strides of a dense [batch][head][seq][dim] array. Wraps modulo 2⁶⁴ where the array could not
/// exist.
constexpr Strides bhsd_strides(const Extents& e) noexcept {
  const std::int64_t head = detail::wrapping_product(e.seq, e.dim);
  return {.batch = detail::wrapping_product(e.head, head), .head = head, .seq = e.dim, .dim = 1};
}

/// Strides of a dense [batch][seq][head][dim] array. Wraps modulo 2⁶⁴ where the array could not
/// exist.
constexpr Strides bshd_strides(const Extents& e) noexcept {
  const std::int64_t seq = detail::wrapping_product(e.head, e.dim);
  return {.batch = detail::wrapping_product(e.seq, seq), .head = e.dim, .seq = seq, .dim = 1};
}

/// A read-only view. Default-constructed: the operand is absent. Null data with elements is an
/// error, without any it is legal.
struct ConstTensor {
  const void* data = nullptr;  ///< first element, in memory that the backend's device can read
  DType dtype = DType::fp32;
  Extents extent{};
  Strides stride{};

  /// A dense [batch][head][seq][dim] array.
  static constexpr ConstTensor bhsd(const void* data, DType dtype, const Extents& extent) noexcept {
    return {data, dtype, extent, bhsd_strides(extent)};
  }
  /// A dense [batch][seq][head][dim] array; `extent` still names its axes batch, head, seq, dim.
  static constexpr ConstTensor bshd(const void* data, DType dtype, const Extents& extent) noexcept {
    return {data, dtype, extent, bshd_strides(extent)};
  }
  /// A dense [head] vector, one number a head: ALiBi slopes, sinks.
  static constexpr ConstTensor per_head(const void* data, DType dtype,
                                        std::int64_t heads) noexcept {
    return {data, dtype, {.head = heads}, {.head = 1}};
  }
};

/// A writable view; an output. Its elements must not overlap one another: sorted by size, each
/// stride is at least the span of the axes with smaller strides. Nor may they overlap an input's;
/// lying between them, as in one fused [batch][seq][q, k, v, out][head][dim] array, is fine.
struct Tensor {
  void* data = nullptr;  ///< first element, in memory that the backend's device can write
  DType dtype = DType::fp32;
  Extents extent{};
  Strides stride{};

  /// A dense [batch][head][seq][dim] array of `extent`.
  static constexpr Tensor bhsd(void* data, DType dtype, const Extents& extent) noexcept {
    return {data, dtype, extent, bhsd_strides(extent)};
  }
  /// A dense [batch][seq][head][dim] array; `extent` says how long each axis is, in whatever order.
  static constexpr Tensor bshd(void* data, DType dtype, const Extents& extent) noexcept {
    return {data, dtype, extent, bshd_strides(extent)};
  }
  /// A dense fp32 [batch][head][seq] array for the log-sum-exp (packed: batch 1, seq = total_q).
  static constexpr Tensor lse(float* data, std::int64_t batch, std::int64_t head,
                              std::int64_t seq) noexcept {
    return bhsd(data, DType::fp32, {.batch = batch, .head = head, .seq = seq, .dim = 1});
  }

  constexpr operator ConstTensor() const noexcept { return {data, dtype, extent, stride}; }
};

/// A read-only dense vector of indices. Default-constructed: absent.
struct ConstVector {
  const void* data = nullptr;  ///< first element, in memory that the backend's device can read
  DType dtype = DType::int32;
  std::int64_t size = 0;  ///< number of elements
};

}  // namespace tessera
