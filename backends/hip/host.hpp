#pragma once
// What the kernel families of the HIP backend and the way to them know of each other. No vendor
// header: a stream is a void*.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "backends/hip/target.hpp"
#include "core/src/backend.hpp"

namespace tessera::hip {

// What planning and launching need to know of a device.
struct Device {
  int index = 0;
  std::string isa{};  // "gfx942"; empty: there is no device
  Generation generation = Generation::Unknown;
  int multiprocessors = 0;
  int wave = 0;                   // lanes
  std::size_t shared_memory = 0;  // LDS, bytes that a work-group may ask for
  std::size_t l2 = 0;             // bytes
};

// Properties are read once a device. With TESSERA_HIP_ARCH set it is one of that target.
const Device& device(int index);

// One launch: everything is validated, the stream's device is current, `workspace` holds what the
// candidate asked for.
struct Launch {
  const backend::Candidate& candidate;
  const Problem& problem;
  const kernel::ForwardArguments& arguments;
  void* workspace;
  void* stream;  // hipStream_t
  const Device& device;
};

// Queues the kernel of an instance (code_objects.hpp) with its one argument, a trivially copyable
// struct of `bytes` bytes, which is copied. `grid` counts work-groups, `threads` is a work-group's,
// `lds_bytes` what it needs beside the kernel's own. Throws DeviceError, and Unsupported if there
// is no code for the device.
void queue(const Launch& launch, std::string_view instance, std::array<unsigned, 3> grid,
           unsigned threads, std::size_t lds_bytes, const void* parameters, std::size_t bytes);

// A family appends its candidates for the problem on that device, best first, those that cannot
// compute it with the reason; `launch` is called with one of its own.
namespace decode {
void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all);
void launch(const Launch& launch);
}  // namespace decode
namespace matrix {
void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all);
void launch(const Launch& launch);
}  // namespace matrix
namespace fp32 {
void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all);
void launch(const Launch& launch);
}  // namespace fp32

// Of gradients; a launch's arguments are those of forward in `arguments`.
namespace gradient {
void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all);
void launch(const Launch& launch, const kernel::BackwardArguments& arguments);
}  // namespace gradient

}  // namespace tessera::hip
