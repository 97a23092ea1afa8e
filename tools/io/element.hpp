#pragma once
/// Element types that tensor files hold, with their spelling in each format.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::io {

enum class Element : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
};

/// Bytes an element takes.
std::int64_t size_of(Element element) noexcept;

/// As .safetensors spells it: "F32", "BF16", "BOOL".
std::string_view name_of(Element element) noexcept;
std::optional<Element> element_from_name(std::string_view name) noexcept;
/// All of them, for messages: "F64, F32, …".
std::string element_names();

/// As .npy spells it, little-endian: "<f4", "|u1"; empty where NumPy has no such type (bf16, fp8).
std::string_view descr_of(Element element) noexcept;
std::optional<Element> element_from_descr(std::string_view descr) noexcept;
/// All of them, for messages: "<f8, <f4, …".
std::string element_descrs();

/// Bytes that a dense array takes; nullopt if the product leaves 63 bits, counting extents of 0 as
/// 1, so that the answer does not depend on the order of the axes.
std::optional<std::int64_t> byte_size(const std::vector<std::int64_t>& shape,
                                      Element element) noexcept;

/// "[2, 256, 12, 32]".
std::string to_string(const std::vector<std::int64_t>& shape);

}  // namespace tessera::io
