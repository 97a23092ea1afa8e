#include "backends/gpu_common/devices.hpp"

#include "backends/gpu_common/error.hpp"
#include "core/src/backend.hpp"

namespace tessera {
namespace gpu {
namespace {

// No driver and no device are errors to the runtime; to us, they are 0 devices.
int count_devices(int& error) noexcept {
  int count = 0;
  error = device_api().device_count(&count);
  if (error == 0) return count;
  forget_error();
  return 0;
}

}  // namespace

std::string why_no_device() {
  int error = 0;
  if (count_devices(error) > 0) return {};
  return error != 0 ? describe(error) : "the runtime counts none";
}

int current_device() noexcept {
  int device = 0;
  if (device_api().get_device(&device) == 0) return device;
  forget_error();
  return 0;
}

DeviceProperties properties(int device) {
  DeviceProperties result;
  check(device_api().properties(device, &result),
        "asking for the properties of device " + std::to_string(device));
  return result;
}

}  // namespace gpu

namespace backend {

int device_count() {
  int error = 0;
  return gpu::count_devices(error);
}

DeviceInfo device_info(int device) {
  const gpu::DeviceProperties properties = gpu::properties(device);
  return {.name = properties.name.data(),
          .isa = properties.isa.data(),
          .space = std::string(gpu::device_api().space),
          .threads = 1,
          .memory = properties.memory};
}

}  // namespace backend
}  // namespace tessera
