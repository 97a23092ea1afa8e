#pragma once
// Why a family cannot compute a problem on a device, where it is the same for all.

#include <cstddef>
#include <string>
#include <string_view>

#include "backends/cuda/host.hpp"
#include "backends/gpu_common/head_dims.hpp"
#include "backends/gpu_common/problem.hpp"

namespace tessera::cuda {

using gpu::both_dims;
using gpu::bucket;
using gpu::general;
using gpu::is_16_bit;
using gpu::is_built;
using gpu::reject_dims;
using gpu::rows_aligned;

// Can a device of that compute capability (90: 9.0) run what is compiled for `targets`, in CMake's
// words "80-real,90-virtual"? Machine code (-real) runs on the same
// major version from its minor on, PTX (-virtual) on everything from its version on; a bare number
// is both.
constexpr bool runs_on(std::string_view targets, int capability) {
  while (!targets.empty()) {
    const std::size_t end = targets.find(',');
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
static_assert(runs_on("80-real,90-virtual", 86) && runs_on("80-real,90-virtual", 120));
static_assert(!runs_on("90-real", 80) && !runs_on("90-real", 100) && !runs_on("80-real", 90));
static_assert(runs_on("80", 120) && !runs_on("89-real", 86) && !runs_on("", 90));

inline std::string version_text(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

// Of a family that runs from 8.0 on. (That there is no device is said for all families at once.)
inline std::string reject_device(const Device& device, std::string_view targets) {
  const std::string has = "the device has compute capability " + version_text(device.capability);
  if (device.capability < 80) return has + "; it needs 8.0";
  if (runs_on(targets, device.capability)) return {};
  return has + "; this build's kernels are compiled for " + std::string(targets) +
         ": build with CMAKE_CUDA_ARCHITECTURES=" + std::to_string(device.capability) + "-real";
}

}  // namespace tessera::cuda
