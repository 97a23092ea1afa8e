// The code objects of a build that the tests make up: texts that have what the fake runtime looks
// for, the target and the kernels' names.

#include <array>

#include "backends/hip/code_objects.hpp"

namespace tessera::hip {
namespace {

constexpr char kText[] =
    "gfx90a gfx942: tessera_alone  tessera_first  tessera_launched  tessera_second ";
constexpr char kLacking[] = "gfx942: tessera_other";
constexpr char kFor90a[] = "gfx90a: tessera_older";

CodeObject object(std::string_view instance, std::string_view target, std::span<const char> text) {
  const auto bytes = std::as_bytes(text);
  return {instance, target, bytes.data(), bytes.size()};
}

}  // namespace

std::span<const CodeObject> code_objects() noexcept {
  static const std::array all{
      object("alone", "gfx942", kText),    object("first", "gfx90a", kText),
      object("first", "gfx942", kText),    object("lacking", "gfx942", kLacking),
      object("launched", "gfx942", kText), object("misfit", "gfx942", kFor90a),
      object("older", "gfx1100", kFor90a), object("older", "gfx90a", kFor90a),
      object("second", "gfx942", kText)};
  return all;
}

}  // namespace tessera::hip
