#include "tools/io/element.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tessera::io {
namespace {

struct Row {
  Element element;
  std::int64_t size;
  std::string_view name;
  std::string_view descr;
};

constexpr std::array kRows{
    Row{Element::f64, 8, "F64", "<f8"},      Row{Element::f32, 4, "F32", "<f4"},
    Row{Element::f16, 2, "F16", "<f2"},      Row{Element::bf16, 2, "BF16", ""},
    Row{Element::f8_e4m3, 1, "F8_E4M3", ""}, Row{Element::f8_e5m2, 1, "F8_E5M2", ""},
    Row{Element::i64, 8, "I64", "<i8"},      Row{Element::i32, 4, "I32", "<i4"},
    Row{Element::i16, 2, "I16", "<i2"},      Row{Element::i8, 1, "I8", "|i1"},
    Row{Element::u64, 8, "U64", "<u8"},      Row{Element::u32, 4, "U32", "<u4"},
    Row{Element::u16, 2, "U16", "<u2"},      Row{Element::u8, 1, "U8", "|u1"},
    Row{Element::boolean, 1, "BOOL", "|b1"},
};

constexpr const Row& row(Element element) noexcept {
  return kRows[static_cast<std::size_t>(element)];
}

static_assert(row(Element::bf16).name == "BF16" && row(Element::boolean).name == "BOOL",
              "rows stand in the order of the enumerators");

std::optional<Element> find(std::string_view text, std::string_view Row::* spelling) noexcept {
  const auto* found =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.*spelling == text; });
  if (text.empty() || found == kRows.end()) return std::nullopt;
  return found->element;
}

std::string list(std::string_view Row::* spelling) {
  std::string text;
  for (const Row& r : kRows) {
    if ((r.*spelling).empty()) continue;
    if (!text.empty()) text += ", ";
    text += r.*spelling;
  }
  return text;
}

}  // namespace

std::int64_t size_of(Element element) noexcept { return row(element).size; }
std::string_view name_of(Element element) noexcept { return row(element).name; }
std::string_view descr_of(Element element) noexcept { return row(element).descr; }
std::optional<Element> element_from_name(std::string_view name) noexcept {
  return find(name, &Row::name);
}
std::optional<Element> element_from_descr(std::string_view descr) noexcept {
  return find(descr, &Row::descr);
}
std::string element_names() { return list(&Row::name); }
std::string element_descrs() { return list(&Row::descr); }

std::optional<std::int64_t> byte_size(const std::vector<std::int64_t>& shape,
                                      Element element) noexcept {
  std::int64_t bytes = size_of(element);
  bool empty = false;
  for (const std::int64_t extent : shape) {
    empty = empty || extent == 0;
    if (extent < 0 || __builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes)) {
      return std::nullopt;
    }
  }
  return empty ? 0 : bytes;
}

std::string to_string(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace tessera::io
