#pragma once
// Which devices there are.

#include <string>

#include "backends/gpu_common/device_api.hpp"

namespace tessera::gpu {

// Why there is no device: "no CUDA-capable device is detected (cudaErrorNoDevice)". Empty if there
// is one.
std::string why_no_device();

// The calling thread's current device; 0 if there is none.
int current_device() noexcept;

DeviceProperties properties(int device);

}  // namespace tessera::gpu
