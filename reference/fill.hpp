#pragma once
/// Random and constant contents for tensors. A value depends on seed and position alone: not on
/// strides, platform, compiler or number format (but for the rounding to it).

#include <cstddef>
#include <cstdint>

#include <tessera/tensor.hpp>

namespace tessera::reference {

/// Standard normal (a sum of uniform numbers, within ±4.9), times `scale`.
void fill_gaussian(const Tensor& tensor, std::uint64_t seed, double scale = 1);

/// Like activations of real models: one column in 16 is four times as large, columns have a mean,
/// one element in 64 is four times as large. Scores of two such tensors are peaked: their standard
/// deviation is some 4 for head_dim 64.
void fill_skewed(const Tensor& tensor, std::uint64_t seed, double scale = 1);

/// Integers in [low, high], equally likely.
void fill_integers(const Tensor& tensor, std::uint64_t seed, std::int64_t low, std::int64_t high);

/// `value` everywhere; NaN and infinity too, but for integer tensors.
void fill_constant(const Tensor& tensor, double value);

/// Bytes of 0xff: NaN in fp32, fp16 and bf16. For workspaces, outputs and padding.
void fill_nan(void* data, std::size_t bytes) noexcept;

/// The generator beneath: 64 random bits for a seed and an index.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) noexcept;
/// A standard normal number for a seed and an index.
double random_gaussian(std::uint64_t seed, std::uint64_t index) noexcept;

}  // namespace tessera::reference
