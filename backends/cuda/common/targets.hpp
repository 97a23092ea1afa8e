#pragma once
// What devices the kernels of a family are compiled for, in CMake's words: "80-real;90-virtual".

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera::cuda {

// Can a device of that compute capability (90: 9.0) run them? Machine code (-real) runs on the same
// major version from its minor on, PTX (-virtual) on everything from its version on; a bare number
// is both.
constexpr bool runs_on(std::string_view targets, int capability) {
  while (!targets.empty()) {
    const std::size_t end = targets.find(';');
    const std::string_view target = targets.substr(0, end);
    targets = end == std::string_view::npos ? std::string_view{} : targets.substr(end + 1);
    int number = 0;
    std::size_t digits = 0;
    for (; digits < target.size() && target[digits] >= '0' && target[digits] <= '9'; ++digits)
      number = 10 * number + (target[digits] - '0');
    const std::string_view kind = target.substr(digits);
    const bool code = kind != "-virtual", ptx = kind != "-real";
    if (code && number / 10 == capability / 10 && number <= capability) return true;
    if (ptx && number <= capability) return true;
  }
  return false;
}
static_assert(runs_on("80-real;90-virtual", 86) && runs_on("80-real;90-virtual", 120));
static_assert(!runs_on("90-real", 80) && !runs_on("90-real", 100) && !runs_on("80-real", 90));
static_assert(runs_on("80", 120) && !runs_on("89-real", 86) && !runs_on("", 90));

// Why such a device has no code of the family; empty if it has.
inline std::string reject_target(std::string_view targets, int capability) {
  if (runs_on(targets, capability)) return {};
  return "this build's kernels are compiled for " + std::string(targets) +
         ", the device has compute capability " + std::to_string(capability / 10) + "." +
         std::to_string(capability % 10) +
         ": build with CMAKE_CUDA_ARCHITECTURES=" + std::to_string(capability) + "-real";
}

}  // namespace tessera::cuda
