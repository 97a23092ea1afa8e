// Which kernels there are, and the way to them. A kernel's name is operation.family.rest.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <tessera/error.hpp>

#include "backends/gpu_common/devices.hpp"
#include "backends/gpu_common/error.hpp"
#include "backends/gpu_common/launch_scope.hpp"
#include "backends/hip/host.hpp"
#include "backends/hip/modules.hpp"
#include "core/src/backend.hpp"
#include "tessera_head_dims.hpp"

namespace tessera {
namespace hip {
namespace {

// --- Devices ---------------------------------------------------------------------------------

std::string known_targets() {
  std::string text;
  for (const Target& target : kTargets) text.append(text.empty() ? "" : ", ").append(target.isa);
  return text;
}

// TESSERA_HIP_ARCH, gfx942 or another target: planning takes the device for one of that target,
// also where there is none. Null: unset.
const Target* assumed_target() {
  const char* const value = std::getenv("TESSERA_HIP_ARCH");
  const std::string_view text = value != nullptr ? value : "";
  if (text.empty()) return nullptr;
  const Target* const target = find_target(text);
  if (target == nullptr)
    throw DeviceError("the environment variable TESSERA_HIP_ARCH is '" + std::string(text) +
                      "'; must be one of " + known_targets());
  return target;
}

Device device_of(int index, const Target& target) {
  return {.index = index,
          .isa = std::string(target.isa),
          .generation = target.generation,
          .multiprocessors = target.multiprocessors,
          .wave = wave_size(target.isa),
          .shared_memory = target.shared_memory,
          .l2 = target.l2};
}

Device read(int index, const Target* assumed) {
  const bool none = !gpu::why_no_device().empty();
  if (none) return assumed != nullptr ? device_of(index, *assumed) : Device{.index = index};
  const gpu::DeviceProperties properties = gpu::properties(index);
  const std::string_view isa = properties.isa.data();
  if (assumed != nullptr && assumed->isa != isa) return device_of(index, *assumed);
  const Target* const target = find_target(isa);
  return {.index = index,
          .isa = std::string(isa),
          .generation = target != nullptr ? target->generation : Generation::Unknown,
          .multiprocessors = properties.multiprocessors,
          .wave = wave_size(isa),
          .shared_memory = properties.shared_memory,
          .l2 = properties.l2};
}

}  // namespace

const Device& device(int index) {
  static std::mutex reading;
  static std::map<std::pair<int, const Target*>, Device> known;  // by index and assumed target
  const Target* const assumed = assumed_target();
  const std::lock_guard lock(reading);
  const auto found = known.find({index, assumed});
  if (found != known.end()) return found->second;
  return known.emplace(std::pair(index, assumed), read(index, assumed)).first->second;
}

// --- Launch ----------------------------------------------------------------------------------

void queue(const Launch& launch, std::string_view instance, std::array<unsigned, 3> grid,
           unsigned threads, std::size_t lds_bytes, const void* parameters, std::size_t bytes) {
  void* arguments[] = {const_cast<void*>(parameters)};
  gpu::check(
      gpu::device_api().launch({.kernel = function(launch.device.index, instance),
                                .grid = grid,
                                .block = {threads, 1, 1},
                                .shared_memory = lds_bytes,
                                .stream = launch.stream,
                                .arguments = arguments,
                                .argument_bytes = bytes}),
      "launching " + std::string(launch.candidate.kernel) + " (" + std::string(instance) + ")");
}

namespace {

using Append = void(const Problem&, const Device&, std::vector<backend::Candidate>&);

struct Family {
  std::string_view name{};
  Append* append = nullptr;
  void (*launch)(const Launch&) = nullptr;
};

// Of backward.
struct GradientFamily {
  std::string_view name{};
  Append* append = nullptr;
  void (*launch)(const Launch&, const kernel::BackwardArguments&) = nullptr;
};

// Those that this build has, best first.
constexpr std::array<Family, TESSERA_HIP_HAS_DECODE + TESSERA_HIP_HAS_MATRIX + TESSERA_HIP_HAS_FP32>
    kFamilies{{
#if TESSERA_HIP_HAS_DECODE
        {"split", decode::append, decode::launch},
#endif
#if TESSERA_HIP_HAS_MATRIX
        {"matrix", matrix::append, matrix::launch},
#endif
#if TESSERA_HIP_HAS_FP32
        {"fp32", fp32::append, fp32::launch},
#endif
    }};
// By the name of the forward kernels whose lse they take.
constexpr std::array<GradientFamily, TESSERA_HIP_HAS_GRADIENT> kGradientFamilies{{
#if TESSERA_HIP_HAS_GRADIENT
    {"matrix", gradient::append, gradient::launch},
#endif
}};

std::string_view family_of(std::string_view kernel) {
  kernel.remove_prefix(kernel.find('.') + 1);
  return kernel.substr(0, kernel.find('.'));
}

// Stands where there is no kernel to reject, so that the answer says what works.
backend::Candidate nothing(Operation operation) {
  const std::string none =
      "this build has none of the hip backend's kernels for it: a build with BACKEND=kokkos "
      "computes it";
  if (operation == Operation::forward) return {.kernel = "forward.hip", .rejected = none};
  if (operation == Operation::decode) return {.kernel = "decode.hip", .rejected = none};
  return {.kernel = "backward.hip", .rejected = none};
}

// A plan that was made for another target cannot run here.
void check_target(const Device& device) {
  if (assumed_target() == nullptr) return;
  const gpu::DeviceProperties properties = gpu::properties(device.index);
  const std::string_view isa = properties.isa.data();
  if (isa != device.isa)
    throw Unsupported("the environment variable TESSERA_HIP_ARCH is '" + device.isa +
                      "', which plans only: device " + std::to_string(device.index) + " is " +
                      std::string(isa));
}

// Launches by that of the families which the candidate is of; `arguments` are forward's, `more`
// what the family is given beside them.
template <class Families, class... More>
void launch(const Families& families, const backend::Candidate& candidate, const Problem& problem,
            const kernel::ForwardArguments& arguments, void* workspace, const Stream& stream,
            const More&... more) {
  const gpu::LaunchScope scope(candidate.kernel, candidate.workspace, workspace, stream);
  const Device& device = hip::device(stream.device());
  check_target(device);
  for (const auto& family : families) {
    if (family.name != family_of(candidate.kernel)) continue;
    family.launch({.candidate = candidate,
                   .problem = problem,
                   .arguments = arguments,
                   .workspace = scope.workspace(),
                   .stream = stream.native(),
                   .device = device},
                  more...);
    scope.finish();
    return;
  }
  throw Unsupported("this build has no family of kernels for " + std::string(candidate.kernel));
}

}  // namespace
}  // namespace hip

namespace backend {

std::string_view name() noexcept { return "hip"; }

std::string_view toolkit() noexcept { return TESSERA_HIP_TOOLKIT; }

std::string_view head_dims() noexcept { return TESSERA_BUILD_HEAD_DIMS; }

// A plan is made before there is a stream: for the current device.
std::vector<Candidate> candidates(const Problem& problem) {
  const hip::Device& device = hip::device(gpu::current_device());
  std::vector<Candidate> all;
  if (problem.operation == Operation::backward) {
    for (const hip::GradientFamily& family : hip::kGradientFamilies)
      family.append(problem, device, all);
  } else {
    for (const hip::Family& family : hip::kFamilies) family.append(problem, device, all);
  }
  if (device.isa.empty()) {
    const std::string reason = "there is no HIP device: " + gpu::why_no_device() +
                               "; TESSERA_HIP_ARCH=gfx942 or another of " + hip::known_targets() +
                               " plans without one";
    for (Candidate& candidate : all) candidate.rejected = reason;
  }
  if (all.empty()) all.push_back(hip::nothing(problem.operation));
  return all;
}

void launch(const Candidate& candidate, const Problem& problem,
            const kernel::ForwardArguments& arguments, void* workspace, const Stream& stream) {
  hip::launch(hip::kFamilies, candidate, problem, arguments, workspace, stream);
}

void launch(const Candidate& candidate, const Problem& problem,
            const kernel::BackwardArguments& arguments, void* workspace, const Stream& stream) {
  hip::launch(hip::kGradientFamilies, candidate, problem, arguments.forward, workspace, stream,
              arguments);
}

}  // namespace backend
}  // namespace tessera
