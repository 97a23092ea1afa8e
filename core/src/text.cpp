#include "core/src/text.hpp"

#include <array>
#include <charconv>

namespace tessera::detail {
namespace {

template <class... Format>
std::string number(Format... format) {
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), format...).ptr;
  return {digits.data(), end};
}

std::string list(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return concat("[", a, ", ", b, ", ", c, ", ", d, "]");
}

}  // namespace

std::string to_text(float value) { return number(value); }
std::string to_text(double value) { return number(value); }
std::string to_text(const Extents& e) { return list(e.batch, e.head, e.seq, e.dim); }
std::string to_text(const Strides& s) { return list(s.batch, s.head, s.seq, s.dim); }
std::string to_text(const void* address) {
  return "0x" + number(reinterpret_cast<std::uintptr_t>(address), 16);
}

void refuse(std::string_view argument, std::string_view value, std::string_view allowed) {
  throw InvalidArgument(std::string(argument), concat("is ", value, "; ", allowed));
}

void decline(const std::string& text) { throw Unsupported(text); }

}  // namespace tessera::detail
