// Device memory and copies. Runtimes align what they allocate to 256 bytes.

#include <algorithm>
#include <string>

#include <tessera/error.hpp>

#include "backends/gpu_common/device_api.hpp"
#include "backends/gpu_common/device_guard.hpp"
#include "backends/gpu_common/error.hpp"
#include "core/src/backend.hpp"

namespace tessera::backend {
namespace {

[[noreturn]] void fail_to_allocate(std::size_t bytes, int device, int error) {
  gpu::forget_error();
  std::string text = "allocating " + std::to_string(bytes) + " bytes on device " +
                     std::to_string(device) + " failed: " + gpu::describe(error);
  std::size_t free = 0, total = 0;
  if (gpu::device_api().memory_info(&free, &total) == 0) {
    text += "; " + std::to_string(free) + " of its " + std::to_string(total) + " bytes are free";
  } else {
    gpu::forget_error();
  }
  throw DeviceError(text);
}

}  // namespace

void* allocate(std::size_t bytes, int device) {
  const gpu::DeviceGuard guard(device);
  void* data = nullptr;
  const int error = gpu::device_api().allocate(std::max<std::size_t>(bytes, 1), &data);
  if (error != 0) fail_to_allocate(bytes, device, error);
  return data;
}

void release(void* data, int device) noexcept try {
  const gpu::DeviceGuard guard(device);
  if (gpu::device_api().release(data) != 0) gpu::forget_error();
} catch (...) {  // an earlier launch's fault: the next synchronisation tells it
}

void copy(void* destination, const void* source, std::size_t bytes, const Stream& stream) {
  const gpu::DeviceGuard guard(stream.device());
  gpu::check(gpu::device_api().copy_async(destination, source, bytes, stream.native()),
             "copying " + std::to_string(bytes) + " bytes", gpu::kMaybeEarlier);
}

void synchronize(const Stream& stream) {
  const gpu::DeviceGuard guard(stream.device());
  gpu::check(gpu::device_api().stream_synchronize(stream.native()),
             "waiting for a stream of device " + std::to_string(stream.device()),
             gpu::kMaybeEarlier);
}

bool capturing(const Stream& stream) {
  const gpu::DeviceGuard guard(stream.device());
  bool capturing = false;
  gpu::check(gpu::device_api().stream_capturing(stream.native(), &capturing),
             "asking whether the stream is captured");
  return capturing;
}

bool host_reads_device_memory() noexcept { return false; }

}  // namespace tessera::backend
