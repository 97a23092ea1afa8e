#pragma once
// Kernels on devices.

#include <string_view>

namespace tessera::hip {

// The kernel of an instance on a device, as a launch takes it (hipFunction_t). Its code object is
// loaded at first use and stays until the process ends; may be called by several threads at once.
// Throws Unsupported if the build has none for the device's target, DeviceError if it cannot be
// loaded.
const void* function(int device, std::string_view instance);

}  // namespace tessera::hip
