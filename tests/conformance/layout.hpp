#pragma once
/// Where the elements of query, key, value and out lie for each layout, and those of their
/// gradients.

#include <cstdint>

#include <tessera/tensor.hpp>

#include "tests/conformance/case.hpp"

namespace tessera::testing {

/// dout lies like out; it is read only, and repeats in the layouts in which keys do. A gradient
/// that is written takes the role of what it belongs to, and repeats in none: see `place_written`.
enum class Role : std::uint8_t { query, key, value, out, lse, dout };

struct Placement {
  Strides stride{};
  std::int64_t offset = 0;    ///< of the first element
  std::int64_t elements = 0;  ///< from the start of memory to the end of the last element
};

/// Not for query, key and value of Layout::fused_qkv: see `place_fused`.
Placement place(const Extents& extent, Layout layout, Role role);

/// The same where layouts that repeat are Layout::bhsd.
Placement place_written(const Extents& extent, Layout layout, Role role);

/// One array of rows [query heads, key heads, value heads]; all three share `elements`.
struct Fused {
  Placement query{}, key{}, value{};
};
Fused place_fused(const Extents& query, const Extents& key, const Extents& value);

}  // namespace tessera::testing
