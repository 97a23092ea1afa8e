#pragma once
/// Number formats of tensor elements.

#include <cstdint>
#include <string_view>

#include <tessera/export.hpp>

namespace tessera {

/// Element type of a tensor or vector. Query, key, value and out: fp32, fp16 or bf16.
enum class DType : std::uint8_t {
  fp32,   ///< IEEE 754 binary32
  fp16,   ///< IEEE 754 binary16
  bf16,   ///< the upper half of a binary32
  int32,  ///< indices: prefix sums, lengths
  int64,  ///< indices: prefix sums
  uint8,  ///< boolean masks: non-zero is visible
};

/// Bytes an element takes; 0 for a value that is not one of the enumerators.
constexpr std::int64_t size_of(DType type) noexcept {
  switch (type) {
    case DType::fp32:
    case DType::int32:
      return 4;
    case DType::fp16:
    case DType::bf16:
      return 2;
    case DType::int64:
      return 8;
    case DType::uint8:
      return 1;
  }
  return 0;
}

/// `"fp32"`, `"bf16"`, …; `"unknown"` for a value that is not one of the enumerators.
TESSERA_API std::string_view to_string(DType type) noexcept;

}  // namespace tessera
