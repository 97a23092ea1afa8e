#pragma once
// Why a family cannot compute a problem, where it is the same for all: the device, and the head
// dimensions of the build.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/problem.hpp>

#include "backends/cuda/host.hpp"
#include "tessera_head_dims.hpp"

namespace tessera::cuda {

// --- Devices ---------------------------------------------------------------------------------

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

// --- Head dimensions -------------------------------------------------------------------------

#define TESSERA_LIST_ITEM(dim) dim,
inline constexpr auto kHeadDims =
    std::to_array<std::int64_t>({TESSERA_FOR_EACH_HEAD_DIM(TESSERA_LIST_ITEM)});
#undef TESSERA_LIST_ITEM

constexpr bool is_built(std::int64_t bucket) {
  return std::find(kHeadDims.begin(), kHeadDims.end(), bucket) != kHeadDims.end();
}

// The smallest bucket that holds `dim`; 0 if none does.
constexpr std::int64_t bucket(std::int64_t dim) {
  for (const std::int64_t b : kHeadDims)
    if (b >= dim) return b;
  return 0;
}

inline std::string reject_dim(std::string_view name, std::int64_t dim) {
  const std::string is = std::string(name) + ".extent.dim is " + std::to_string(dim) + "; ";
  if (dim % 8 != 0)
    return is + "must be a multiple of 8: pad to " + std::to_string((dim + 7) / 8 * 8);
  if (bucket(dim) != 0) return {};
  return is + "the largest of this build's head dimensions (" TESSERA_BUILD_HEAD_DIMS ") is " +
         std::to_string(kHeadDims.back());
}

inline std::string reject_dims(const Problem& p) {
  std::string reason = reject_dim("query", p.query.extent.dim);
  return reason.empty() ? reject_dim("value", p.value.extent.dim) : reason;
}

// What is said where a family has no kernel that holds them, though the build has the buckets.
inline std::string both_dims(const Problem& p) {
  return "query.extent.dim is " + std::to_string(p.query.extent.dim) + " and value.extent.dim " +
         std::to_string(p.value.extent.dim) + "; ";
}

}  // namespace tessera::cuda
