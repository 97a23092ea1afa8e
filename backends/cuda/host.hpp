#pragma once
// What the kernel families of the CUDA backend and the way to them know of each other. No vendor
// header: a stream is a void*.

#include <vector>

#include "core/src/backend.hpp"

namespace tessera::cuda {

// What planning and launching need to know of a device.
struct Device {
  int index = 0;
  int capability = 0;  // 90: compute capability 9.0; 0: there is no device
  int multiprocessors = 0;
  std::size_t shared_memory = 0;  // bytes that a block may ask for
  std::size_t l2 = 0;             // bytes
};

// Properties are read once a device. With TESSERA_CUDA_ARCH set, its capability is reported.
const Device& device(int index);

// One launch: everything is validated, the stream's device is current, `workspace` holds what the
// candidate asked for.
struct Launch {
  const backend::Candidate& candidate;
  const Problem& problem;
  const kernel::ForwardArguments& arguments;
  void* workspace;
  void* stream;  // cudaStream_t
  const Device& device;
};

// Throws DeviceError, which names `what`, unless `error`, a cudaError_t, is cudaSuccess.
void check(int error, const char* what);

// A family appends its candidates for the problem on that device, best first, those that cannot
// compute it with the reason; `launch` is called with one of its own.
namespace hopper {
void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all);
void launch(const Launch& launch);
}  // namespace hopper
namespace mma {
void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all);
void launch(const Launch& launch);
}  // namespace mma
namespace simt {
void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all);
void launch(const Launch& launch);
}  // namespace simt

}  // namespace tessera::cuda
