#pragma once
// What kernels ask of a problem before they take it.

#include <cstdint>

#include <tessera/problem.hpp>

namespace tessera::gpu {

// Does anything but the mask's geometry touch a product, a score or a weight?
inline bool general(const Problem& p) {
  return p.softcap || p.alibi_slopes || p.bias || p.boolean_mask || p.sinks ||
         p.options.dropout > 0 || p.options.accumulate != Accumulate::fp32;
}

inline bool is_16_bit(DType dtype) { return dtype == DType::fp16 || dtype == DType::bf16; }

// Does every row begin at a multiple of `bytes`, at most 16?
inline bool rows_aligned(const TensorSpec& spec, std::int64_t bytes = 16) {
  const auto size = static_cast<std::int64_t>(size_of(spec.dtype));
  const auto fits = [&](std::int64_t extent, std::int64_t stride) {
    return extent <= 1 || stride * size % bytes == 0;
  };
  return static_cast<std::int64_t>(spec.alignment) >= bytes &&
         fits(spec.extent.batch, spec.stride.batch) && fits(spec.extent.head, spec.stride.head) &&
         fits(spec.extent.seq, spec.stride.seq);
}

}  // namespace tessera::gpu
