#pragma once
// The compiled kernels that the library carries: one code object an instance and target, as the
// device compiler wrote it. The kernel's symbol in it is tessera_ and the instance's name.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

namespace tessera::hip {

struct CodeObject {
  std::string_view instance{};  // "forward_bf16_128", a name of some instances.cmake
  std::string_view target{};    // "gfx942"
  const std::byte* data = nullptr;
  std::size_t size = 0;
};

constexpr bool comes_before(const CodeObject& a, const CodeObject& b) {
  return std::tie(a.instance, a.target) < std::tie(b.instance, b.target);
}

// In `all`, which are in that order; null if it is not among them.
constexpr const CodeObject* find(std::span<const CodeObject> all, std::string_view instance,
                                 std::string_view target) {
  const CodeObject wanted{.instance = instance, .target = target};
  const auto found = std::lower_bound(all.begin(), all.end(), wanted, comes_before);
  return found == all.end() || comes_before(wanted, *found) ? nullptr : &*found;
}

// Those of this build, in order. The build generates it.
std::span<const CodeObject> code_objects() noexcept;

// The targets that the build has an instance for, or any if it is empty: "gfx90a, gfx942"; "no
// target" if none.
std::string targets_of(std::string_view instance = {});

// Why a device of that target cannot run the instance; empty if it can.
std::string reject_target(std::string_view target, std::string_view instance);

}  // namespace tessera::hip
