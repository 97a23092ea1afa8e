// Which kernels there are, and the way to them. A kernel's name is operation.family.rest.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <tessera/error.hpp>

#include "backends/cuda/host.hpp"
#include "backends/gpu_common/devices.hpp"
#include "backends/gpu_common/error.hpp"
#include "backends/gpu_common/launch_scope.hpp"
#include "core/src/backend.hpp"
#include "tessera_head_dims.hpp"

namespace tessera {
namespace cuda {
namespace {

// TESSERA_CUDA_ARCH, 80 or 90: planning takes the device for one of that compute capability. 80
// keeps a Hopper card to the kernels for any, and either plans where there is no device. 0: unset.
int assumed_capability() {
  const char* const value = std::getenv("TESSERA_CUDA_ARCH");
  const std::string_view text = value != nullptr ? value : "";
  if (text.empty()) return 0;
  if (text == "80") return 80;
  if (text == "90") return 90;
  throw DeviceError("the environment variable TESSERA_CUDA_ARCH is '" + std::string(text) +
                    "'; must be 80 or 90");
}

// A device that is not there: an A100, an H100.
constexpr Device kA100{.capability = 80,
                       .multiprocessors = 108,
                       .shared_memory = 163u << 10,
                       .l2 = std::size_t{40} << 20};
constexpr Device kH100{.capability = 90,
                       .multiprocessors = 132,
                       .shared_memory = 227u << 10,
                       .l2 = std::size_t{50} << 20};

Device read(int index, int assumed) {
  if (!gpu::why_no_device().empty()) {
    Device device = assumed == 80 ? kA100 : assumed == 90 ? kH100 : Device{};
    device.index = index;
    return device;
  }
  const gpu::DeviceProperties properties = gpu::properties(index);
  return {.index = index,
          .capability = assumed != 0 ? assumed : properties.capability,
          .multiprocessors = properties.multiprocessors,
          .shared_memory = properties.shared_memory,
          .l2 = properties.l2};
}

}  // namespace

const Device& device(int index) {
  static std::mutex reading;
  static std::map<std::pair<int, int>, Device> known;  // by index and assumed capability
  const int assumed = assumed_capability();
  const std::lock_guard lock(reading);
  const auto found = known.find({index, assumed});
  if (found != known.end()) return found->second;
  return known.emplace(std::pair(index, assumed), read(index, assumed)).first->second;
}

void check(int error, const char* what) { gpu::check(error, what); }

namespace {

struct Family {
  std::string_view name{};
  void (*append)(const Problem&, const Device&, std::vector<backend::Candidate>&) = nullptr;
  void (*launch)(const Launch&) = nullptr;
};

// Those that this build has, best first.
constexpr std::array<Family, TESSERA_CUDA_HAS_HOPPER + TESSERA_CUDA_HAS_MMA + TESSERA_CUDA_HAS_SIMT>
    kFamilies{{
#if TESSERA_CUDA_HAS_HOPPER
        {"hopper", hopper::append, hopper::launch},
#endif
#if TESSERA_CUDA_HAS_MMA
        {"mma", mma::append, mma::launch},
#endif
#if TESSERA_CUDA_HAS_SIMT
        {"simt", simt::append, simt::launch},
#endif
    }};

std::string_view family_of(std::string_view kernel) {
  kernel.remove_prefix(kernel.find('.') + 1);
  return kernel.substr(0, kernel.find('.'));
}

// Stands where there is no kernel to reject, so that the answer says what works.
backend::Candidate nothing(Operation operation) {
  const std::string none =
      "this build has none of the cuda backend's kernels for it: a build with "
      "BACKEND=kokkos computes it";
  if (operation == Operation::forward) return {.kernel = "forward.cuda", .rejected = none};
  if (operation == Operation::decode) return {.kernel = "decode.cuda", .rejected = none};
  return {.kernel = "backward.cuda",
          .rejected =
              "the cuda backend has no backward yet: forward and decode work here, and a "
              "build with BACKEND=kokkos computes gradients"};
}

}  // namespace
}  // namespace cuda

namespace backend {

std::string_view name() noexcept { return "cuda"; }

std::string_view head_dims() noexcept { return TESSERA_BUILD_HEAD_DIMS; }

// A plan is made before there is a stream: for the current device.
std::vector<Candidate> candidates(const Problem& problem) {
  const cuda::Device& device = cuda::device(gpu::current_device());
  std::vector<Candidate> all;
  for (const cuda::Family& family : cuda::kFamilies) family.append(problem, device, all);
  if (device.capability == 0) {
    const std::string reason = "there is no CUDA device: " + gpu::why_no_device() +
                               "; TESSERA_CUDA_ARCH=80 or 90 plans without one";
    for (Candidate& candidate : all) candidate.rejected = reason;
  }
  const auto fits = [](const Candidate& candidate) { return candidate.rejected.empty(); };
  const bool some = std::any_of(all.begin(), all.end(), fits);
  if (all.empty() || (problem.operation == Operation::backward && !some))
    all.push_back(cuda::nothing(problem.operation));
  return all;
}

void launch(const Candidate& candidate, const Problem& problem,
            const kernel::ForwardArguments& arguments, void* workspace, const Stream& stream) {
  const gpu::LaunchScope scope(candidate.kernel, candidate.workspace, workspace, stream);
  for (const cuda::Family& family : cuda::kFamilies) {
    if (family.name != cuda::family_of(candidate.kernel)) continue;
    family.launch({.candidate = candidate,
                   .problem = problem,
                   .arguments = arguments,
                   .workspace = scope.workspace(),
                   .stream = stream.native(),
                   .device = cuda::device(stream.device())});
    scope.finish();
    return;
  }
  throw Unsupported("this build has no family of kernels for " + std::string(candidate.kernel));
}

void launch(const Candidate&, const Problem& problem, const kernel::BackwardArguments&, void*,
            const Stream&) {
  throw Unsupported(cuda::nothing(problem.operation).rejected);
}

}  // namespace backend
}  // namespace tessera
