#pragma once
// The texts of errors: put together only when one is thrown, so that a call that succeeds builds no
// string.

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/error.hpp>
#include <tessera/tensor.hpp>

namespace tessera::detail {

std::string to_text(std::signed_integral auto value) { return std::to_string(value); }
std::string to_text(std::unsigned_integral auto value) { return std::to_string(value); }
std::string to_text(float value);  // shortest that reads back: 0.1, nan, -inf
std::string to_text(double value);
std::string to_text(const Extents& extents);  // [2, 8, 512, 64]
std::string to_text(const Strides& strides);
std::string to_text(const void* address);  // 0x7f…
inline std::string_view to_text(std::string_view text) { return text; }
inline std::string_view to_text(const char* text) { return text; }
inline std::string_view to_text(DType type) { return to_string(type); }

// concat("tile ", 64, " × ", 128)
template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string text;
  (text.append(to_text(parts)), ...);
  return text;
}

// Throws InvalidArgument: "<argument> is <value>; <allowed>".
[[noreturn]] void refuse(std::string_view argument, std::string_view value,
                         std::string_view allowed);

// Throws Unsupported.
[[noreturn]] void decline(const std::string& text);

}  // namespace tessera::detail
