#pragma once
/// Small tensor files for the command.

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reference/fill.hpp"
#include "tools/io/safetensors.hpp"

namespace tessera::testing {

using Shape = std::vector<std::int64_t>;

inline io::Array zeros(io::Element element, Shape shape) {
  io::Array array{element, std::move(shape), {}};
  array.bytes.resize(static_cast<std::size_t>(io::byte_size(array.shape, element).value()));
  return array;
}

/// Standard normal fp32.
inline io::Array gaussian(Shape shape, std::uint64_t seed) {
  io::Array array = zeros(io::Element::f32, std::move(shape));
  const auto count = static_cast<std::int64_t>(array.bytes.size() / sizeof(float));
  reference::fill_gaussian(Tensor::bhsd(array.bytes.data(), DType::fp32, {.dim = count}), seed);
  return array;
}

/// int32.
inline io::Array numbers(const std::vector<std::int32_t>& values) {
  io::Array array = zeros(io::Element::i32, {static_cast<std::int64_t>(values.size())});
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

inline std::map<std::string, io::Array> qkv(const Shape& q, const Shape& k) {
  return {{"q", gaussian(q, 1)}, {"k", gaussian(k, 2)}, {"v", gaussian(k, 3)}};
}
inline std::map<std::string, io::Array> qkv(const Shape& shape) { return qkv(shape, shape); }

/// Returns the path as text.
inline std::string write_tensors(const std::filesystem::path& path,
                                 const std::map<std::string, io::Array>& tensors,
                                 const io::Metadata& metadata = {}) {
  io::write_safetensors(path, {tensors.begin(), tensors.end()}, metadata);
  return path.string();
}

}  // namespace tessera::testing
