#include "backends/gpu_common/device_guard.hpp"

#include <string>

#include "backends/gpu_common/device_api.hpp"
#include "backends/gpu_common/error.hpp"

namespace tessera::gpu {

DeviceGuard::DeviceGuard(int device) {
  const DeviceApi& api = device_api();
  int current = 0;
  check(api.get_device(&current), "asking for the current device");
  if (current == device) return;
  if (const int error = api.set_device(device); error != 0) {
    // A runtime may have switched and failed then.
    if (api.set_device(current) != 0) forget_error();
    check(error, "making device " + std::to_string(device) + " current");
  }
  before_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (before_ && device_api().set_device(*before_) != 0) forget_error();
}

}  // namespace tessera::gpu
