#include "backends/gpu_common/launch_scope.hpp"

#include <string>

#include <tessera/error.hpp>

#include "backends/gpu_common/device_api.hpp"
#include "backends/gpu_common/error.hpp"
#include "core/src/backend.hpp"

namespace tessera::gpu {
namespace {

void* take(std::size_t bytes, const Stream& stream) {
  const DeviceApi& api = device_api();
  const std::string size = std::to_string(bytes) + " bytes";
  if (backend::capturing(stream)) {
    throw Unsupported("the stream is being captured, where no memory can be taken: give " + size +
                      " (Plan::workspace_size) as Args::workspace");
  }
  void* data = nullptr;
  check(api.allocate_async(bytes, stream.native(), &data),
        "taking a workspace of " + size + " on device " + std::to_string(stream.device()),
        "; one may be given as Args::workspace");
  return data;
}

// An error that nobody has seen yet is not this launch's: it is told before.
std::string_view with_nothing_pending(std::string_view kernel) {
  if (const int error = device_api().peek_error(); error != 0)
    check(error, "a call before " + std::string(kernel) + " was launched", kMaybeEarlier);
  return kernel;
}

}  // namespace

Workspace::Workspace(void* given, std::size_t bytes, const Stream& stream)
    : data_(given), stream_(stream.native()) {
  if (given != nullptr || bytes == 0) return;
  data_ = take(bytes, stream);
  owned_ = true;
}

Workspace::~Workspace() {
  if (owned_ && device_api().release_async(data_, stream_) != 0) forget_error();
}

LaunchScope::LaunchScope(std::string_view kernel, std::size_t workspace_bytes, void* workspace,
                         const Stream& stream)
    : kernel_(with_nothing_pending(kernel)),
      guard_(stream.device()),
      workspace_(workspace, workspace_bytes, stream) {}

void LaunchScope::finish() const {
  check(device_api().last_error(), "launching " + std::string(kernel_));
}

}  // namespace tessera::gpu
