#pragma once
// Makes a device current for a while.

#include <optional>

namespace tessera::gpu {

// Makes `device` current for the calling thread and the one before current again at its end. Throws
// DeviceError if the device cannot be had.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  std::optional<int> before_{};  // empty: it was current already
};

}  // namespace tessera::gpu
