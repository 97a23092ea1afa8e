#pragma once
/// A dense array in host memory, as files hold them: element type, shape, bytes in row-major order.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/io/element.hpp"

namespace tessera::io {

/// Owns its bytes, which are aligned for every element type. Little-endian, as every supported host
/// is.
struct Array {
  Element element = Element::f32;
  std::vector<std::int64_t> shape{};
  std::vector<std::byte> bytes{};
};

/// A named array to be written; owns nothing.
struct ArrayView {
  Element element = Element::f32;
  std::vector<std::int64_t> shape{};
  std::span<const std::byte> bytes{};

  ArrayView(Element type, std::vector<std::int64_t> extents, std::span<const std::byte> data)
      : element(type), shape(std::move(extents)), bytes(data) {}
  ArrayView(const Array& array) : element(array.element), shape(array.shape), bytes(array.bytes) {}
};

using Metadata = std::map<std::string, std::string>;

}  // namespace tessera::io
