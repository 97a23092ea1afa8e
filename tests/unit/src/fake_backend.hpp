#pragma once
// A backend in plain loops, so that the host core can be tested alone: what it hands to a kernel,
// what it does where the host cannot read device memory, how often it copies and waits. Computes
// forward in fp32 and bf16, and of backward only records what it is given; keeps every weight,
// since its purpose is to see the dropout it is given, not to draw.

#include <cstddef>
#include <string>

#include "core/src/backend.hpp"

namespace tessera::testing {

struct FakeBackend {
  // What it is.
  bool host_reads_device_memory = true;
  bool capturing = false;
  int devices = 2;
  std::size_t workspace = 0;           // that its kernels ask for
  std::size_t memory = 1u << 30;       // allocations beyond fail
  std::string rejects_everything{};    // if set, the reason why each kernel declines
  std::string fails_to_synchronize{};  // if set, the DeviceError's text

  // What happened.
  int planned = 0;
  int launched = 0;
  int copied = 0;
  int synchronized = 0;
  std::string launched_kernel{};
  kernel::ForwardArguments arguments{};
  kernel::BackwardArguments backward{};
  void* workspace_given = nullptr;
  Stream stream{};
};

// The one in this process. Its history is not kept while `recording` is off: then several threads
// may launch.
FakeBackend& fake_backend();
void set_recording(bool on);

}  // namespace tessera::testing
