#include "backends/gpu_common/error.hpp"

#include <tessera/error.hpp>

#include "backends/gpu_common/device_api.hpp"

namespace tessera::gpu {

std::string describe(int error) {
  const DeviceApi& api = device_api();
  return std::string(api.error_text(error)) + " (" + api.error_name(error) + ")";
}

void check(int error, std::string_view what, std::string_view hint) {
  if (error == 0) return;
  forget_error();
  throw DeviceError(std::string(what) + " failed: " + describe(error) + std::string(hint));
}

void forget_error() noexcept { device_api().last_error(); }

}  // namespace tessera::gpu
