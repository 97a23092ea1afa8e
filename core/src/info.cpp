#include <tessera/info.hpp>
#include <tessera/version.hpp>

#include "core/src/backend.hpp"
#include "core/src/device.hpp"
#include "core/src/text.hpp"
#include "tessera_build_config.hpp"

namespace tessera {

Version library_version() noexcept { return kHeaderVersion; }

std::string to_string(const Version& version) {
  return detail::concat(version.major, ".", version.minor, ".", version.patch);
}

BuildInfo build_info() noexcept {
  return {.version = kHeaderVersion,
          .backend = backend::name(),
          .toolkit = backend::toolkit(),
          .compiler = TESSERA_BUILD_COMPILER,
          .build_type = TESSERA_BUILD_TYPE,
          .head_dims = backend::head_dims(),
          .commit = TESSERA_BUILD_COMMIT};
}

int device_count() { return backend::device_count(); }

DeviceInfo device_info(int device) {
  detail::check_device("device", device);
  return backend::device_info(device);
}

namespace detail {

void check_device(std::string_view argument, int device) {
  const int count = backend::device_count();
  if (device < 0 || device >= count) {
    refuse(argument, concat(device),
           concat("must be in [0, device_count()), which is [0, ", count, ")"));
  }
}

}  // namespace detail
}  // namespace tessera
