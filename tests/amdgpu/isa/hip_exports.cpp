// The functions of HIP that the simulated runtime exports.

#include <fmt/core.h>

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/amdgpu/isa/hip_runtime.hpp"

namespace tessera::amdgpu {
namespace {

constexpr int kVersion = 60300000;  // 6.3.0

// Runs `act` unless there is no device or a launch has failed before.
template <class F>
int guarded(F act) {
  if (const int state = runtime().state(); state != kHipSuccess) return noted(state);
  return noted(act());
}

bool is_device(int device) { return device == 0; }

int copy(void* to, const void* from, std::size_t bytes, int kind) {
  if (bytes == 0) return kHipSuccess;
  if (!to || !from || kind < kHostToHost || kind > kDefaultKind) return kHipInvalidValue;
  const bool to_device = kind == kHostToDevice || kind == kDeviceToDevice;
  const bool from_device = kind == kDeviceToHost || kind == kDeviceToDevice;
  if (!runtime().may_copy(to, bytes, to_device) || !runtime().may_copy(from, bytes, from_device))
    return kHipInvalidValue;
  std::memmove(to, from, bytes);
  return kHipSuccess;
}

int fill(void* data, int byte, std::size_t bytes) {
  if (bytes == 0) return kHipSuccess;
  if (!data || !runtime().may_copy(data, bytes, true)) return kHipInvalidValue;
  std::memset(data, byte, bytes);
  return kHipSuccess;
}

// HIP's names, without what all begin with, and what they mean.
struct ErrorText {
  int error;
  const char* name;
  const char* text;
};
constexpr std::array<ErrorText, 14> kErrors{{
    {kHipSuccess, "hipSuccess", "no error"},
    {kHipInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {kHipOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {kHipInvalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {kHipNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {kHipInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {kHipInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {kHipNoBinaryForGpu, "hipErrorNoBinaryForGpu",
     "no kernel image is available for execution on the device"},
    {kHipInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {kHipNotFound, "hipErrorNotFound", "named symbol not found"},
    {kHipLaunchOutOfResources, "hipErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {kHipLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {kHipNotSupported, "hipErrorNotSupported", "operation not supported"},
    {kHipUnknown, "hipErrorUnknown", "unknown error"},
}};
const ErrorText& text_of(int error) {
  for (const ErrorText& each : kErrors)
    if (each.error == error) return each;
  return kErrors.back();
}

void fill_properties(HipDeviceProperties& p) {
  const Target& target = *runtime().target();
  p = {};
  target.product.copy(p.name, sizeof p.name - 1);
  target.name.copy(p.architecture, sizeof p.architecture - 1);
  p.total_memory = runtime().total_memory();
  p.shared_per_block = target.lds_bytes;
  p.shared_per_multiprocessor = p.max_shared_per_multiprocessor = target.lds_bytes;
  p.warp_size = static_cast<int>(target.wave_size);
  p.max_threads_per_block = 1024;
  for (int& most : p.max_threads) most = 1024;
  for (int& most : p.max_grid) most = std::numeric_limits<int>::max();
  p.major = target.major;
  p.minor = target.minor;
  p.multiprocessors = static_cast<int>(target.compute_units);
  p.l2_bytes = static_cast<int>(target.l2_bytes);
  p.max_threads_per_multiprocessor = 2048;
}

int attribute(int which, int& value) {
  const Target& target = *runtime().target();
  switch (which) {
    case kL2CacheSize:
      value = static_cast<int>(target.l2_bytes);
      break;
    case kCapabilityMajor:
      value = target.major;
      break;
    case kCapabilityMinor:
      value = target.minor;
      break;
    case kMaxThreadsPerBlock:
      value = 1024;
      break;
    case kMultiprocessorCount:
      value = static_cast<int>(target.compute_units);
      break;
    case kMaxSharedMemoryPerBlock:
    case kSharedMemoryPerBlockOptin:
    case kMaxSharedMemoryPerMultiprocessor:
      value = static_cast<int>(target.lds_bytes);
      break;
    case kWarpSize:
      value = static_cast<int>(target.wave_size);
      break;
    default:
      return kHipInvalidValue;
  }
  return kHipSuccess;
}

}  // namespace
}  // namespace tessera::amdgpu

using namespace tessera::amdgpu;

TESSERA_HIP_EXPORT int hipInit(unsigned flags) {
  if (flags) return noted(kHipInvalidValue);
  return runtime().target() ? kHipSuccess : noted(kHipNoDevice);
}
TESSERA_HIP_EXPORT int hipRuntimeGetVersion(int* version) {
  return version ? (*version = kVersion, kHipSuccess) : noted(kHipInvalidValue);
}
TESSERA_HIP_EXPORT int hipDriverGetVersion(int* version) { return hipRuntimeGetVersion(version); }
TESSERA_HIP_EXPORT int hipGetDeviceCount(int* count) {
  if (!count) return noted(kHipInvalidValue);
  *count = runtime().target() ? 1 : 0;
  return *count ? kHipSuccess : noted(kHipNoDevice);
}
TESSERA_HIP_EXPORT int hipGetDevice(int* device) {
  if (!device) return noted(kHipInvalidValue);
  if (!runtime().target()) return noted(kHipNoDevice);
  *device = 0;
  return kHipSuccess;
}
TESSERA_HIP_EXPORT int hipSetDevice(int device) {
  if (!runtime().target()) return noted(kHipNoDevice);
  return is_device(device) ? kHipSuccess : noted(kHipInvalidDevice);
}
TESSERA_HIP_EXPORT int hipDeviceGetAttribute(int* value, int which, int device) {
  if (!value) return noted(kHipInvalidValue);
  if (!runtime().target()) return noted(kHipNoDevice);
  return is_device(device) ? noted(attribute(which, *value)) : noted(kHipInvalidDevice);
}
TESSERA_HIP_EXPORT int hipGetDevicePropertiesR0600(HipDeviceProperties* properties, int device) {
  if (!properties) return noted(kHipInvalidValue);
  if (!runtime().target()) return noted(kHipNoDevice);
  if (!is_device(device)) return noted(kHipInvalidDevice);
  fill_properties(*properties);
  return kHipSuccess;
}
TESSERA_HIP_EXPORT int hipDeviceSynchronize() {
  return guarded([] { return kHipSuccess; });
}

TESSERA_HIP_EXPORT int hipMemGetInfo(std::size_t* free, std::size_t* total) {
  return guarded([&]() -> int {
    if (!free || !total) return kHipInvalidValue;
    *free = runtime().free_memory();
    *total = runtime().total_memory();
    return kHipSuccess;
  });
}
TESSERA_HIP_EXPORT int hipMalloc(void** data, std::size_t bytes) {
  return guarded(
      [&]() -> int { return data ? runtime().allocate(data, bytes) : kHipInvalidValue; });
}
TESSERA_HIP_EXPORT int hipFree(void* data) {
  return guarded([&] { return runtime().release(data); });
}
TESSERA_HIP_EXPORT int hipMallocAsync(void** data, std::size_t bytes, Stream* stream) {
  return guarded([&]() -> int {
    if (!runtime().knows(stream)) return kHipInvalidHandle;
    return data ? runtime().allocate(data, bytes) : kHipInvalidValue;
  });
}
TESSERA_HIP_EXPORT int hipFreeAsync(void* data, Stream* stream) {
  return guarded([&]() -> int {
    return runtime().knows(stream) ? runtime().release(data) : kHipInvalidHandle;
  });
}
TESSERA_HIP_EXPORT int hipMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  return guarded([&] { return copy(to, from, bytes, kind); });
}
TESSERA_HIP_EXPORT int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind,
                                      Stream* stream) {
  return guarded([&]() -> int {
    return runtime().knows(stream) ? copy(to, from, bytes, kind) : kHipInvalidHandle;
  });
}
TESSERA_HIP_EXPORT int hipMemset(void* data, int byte, std::size_t bytes) {
  return guarded([&] { return fill(data, byte, bytes); });
}
TESSERA_HIP_EXPORT int hipMemsetAsync(void* data, int byte, std::size_t bytes, Stream* stream) {
  return guarded([&]() -> int {
    return runtime().knows(stream) ? fill(data, byte, bytes) : kHipInvalidHandle;
  });
}

TESSERA_HIP_EXPORT int hipStreamCreateWithFlags(Stream** stream, unsigned flags) {
  return guarded([&]() -> int {
    if (!stream || flags > 1) return kHipInvalidValue;
    *stream = runtime().make_stream();
    return kHipSuccess;
  });
}
TESSERA_HIP_EXPORT int hipStreamDestroy(Stream* stream) {
  return guarded([&] { return runtime().destroy_stream(stream); });
}
TESSERA_HIP_EXPORT int hipStreamSynchronize(Stream* stream) {
  return guarded(
      [&]() -> int { return runtime().knows(stream) ? kHipSuccess : kHipInvalidHandle; });
}
TESSERA_HIP_EXPORT int hipStreamIsCapturing(Stream* stream, int* status) {
  return guarded([&]() -> int {
    if (!status) return kHipInvalidValue;
    if (!runtime().knows(stream)) return kHipInvalidHandle;
    *status = 0;  // none: graphs can't be captured here
    return kHipSuccess;
  });
}
TESSERA_HIP_EXPORT int hipStreamWaitEvent(Stream* stream, Event* event, unsigned flags) {
  return guarded([&]() -> int {
    if (flags) return kHipInvalidValue;
    return runtime().knows(stream) && runtime().knows(event) ? kHipSuccess : kHipInvalidHandle;
  });
}

TESSERA_HIP_EXPORT int hipEventCreateWithFlags(Event** event, unsigned flags) {
  return guarded([&]() -> int {
    if (!event || flags > (kEventBlockingSync | kEventDisableTiming)) return kHipInvalidValue;
    *event = runtime().make_event(flags);
    return kHipSuccess;
  });
}
TESSERA_HIP_EXPORT int hipEventCreate(Event** event) {
  return hipEventCreateWithFlags(event, kEventDefault);
}
TESSERA_HIP_EXPORT int hipEventDestroy(Event* event) {
  return guarded([&] { return runtime().destroy_event(event); });
}
TESSERA_HIP_EXPORT int hipEventRecord(Event* event, Stream* stream) {
  return guarded([&]() -> int {
    if (!runtime().knows(event) || !runtime().knows(stream)) return kHipInvalidHandle;
    event->recorded = true;
    event->time = std::chrono::steady_clock::now();
    return kHipSuccess;
  });
}
TESSERA_HIP_EXPORT int hipEventSynchronize(Event* event) {
  return guarded([&]() -> int { return runtime().knows(event) ? kHipSuccess : kHipInvalidHandle; });
}
TESSERA_HIP_EXPORT int hipEventElapsedTime(float* milliseconds, Event* start, Event* stop) {
  return guarded([&]() -> int {
    if (!milliseconds) return kHipInvalidValue;
    for (const Event* event : {start, stop})
      if (!runtime().knows(event) || !event->recorded || (event->flags & kEventDisableTiming))
        return kHipInvalidHandle;
    *milliseconds = std::chrono::duration<float, std::milli>(stop->time - start->time).count();
    return kHipSuccess;
  });
}

TESSERA_HIP_EXPORT int hipGetLastError() { return last_error(true); }
TESSERA_HIP_EXPORT int hipPeekAtLastError() { return last_error(false); }
TESSERA_HIP_EXPORT const char* hipGetErrorName(int error) { return text_of(error).name; }
TESSERA_HIP_EXPORT const char* hipGetErrorString(int error) { return text_of(error).text; }
