// The CUDA runtime as the table that the GPU backends share. The one host source that includes
// CUDA's headers.

#include "backends/gpu_common/device_api.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>

#include "core/src/backend.hpp"

namespace tessera {
namespace gpu {
namespace {

cudaStream_t stream_of(void* native) { return static_cast<cudaStream_t>(native); }
cudaEvent_t event_of(void* native) { return static_cast<cudaEvent_t>(native); }
dim3 dim_of(const std::array<unsigned, 3>& of) { return {of[0], of[1], of[2]}; }

int properties(int device, DeviceProperties* result) {
  cudaDeviceProp p{};
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess)
    return error;
  *result = {.capability = p.major * 10 + p.minor,
             .multiprocessors = p.multiProcessorCount,
             .shared_memory = p.sharedMemPerBlockOptin,
             .l2 = static_cast<std::size_t>(p.l2CacheSize),
             .memory = p.totalGlobalMem};
  std::snprintf(result->name.data(), result->name.size(), "%s", static_cast<const char*>(p.name));
  // Kernels for 9.0 use what only that architecture has, which its name tells by an a.
  std::snprintf(result->isa.data(), result->isa.size(), "sm_%d%s", result->capability,
                result->capability == 90 ? "a" : "");
  return cudaSuccess;
}

int stream_capturing(void* stream, bool* capturing) {
  cudaStreamCaptureStatus status{};
  const cudaError_t error = cudaStreamIsCapturing(stream_of(stream), &status);
  *capturing = status != cudaStreamCaptureStatusNone;
  return error;
}

int event_create(void** event) {
  cudaEvent_t made = nullptr;
  const cudaError_t error = cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
  *event = made;
  return error;
}

constexpr DeviceApi kCuda{
    .space = "CUDA",
    .device_count = [](int* count) -> int { return cudaGetDeviceCount(count); },
    .get_device = [](int* device) -> int { return cudaGetDevice(device); },
    .set_device = [](int device) -> int { return cudaSetDevice(device); },
    .properties = properties,
    .memory_info = [](std::size_t* free, std::size_t* total) -> int {
      return cudaMemGetInfo(free, total);
    },
    .allocate = [](std::size_t bytes, void** data) -> int { return cudaMalloc(data, bytes); },
    .release = [](void* data) -> int { return cudaFree(data); },
    .allocate_async = [](std::size_t bytes, void* stream, void** data) -> int {
      return cudaMallocAsync(data, bytes, stream_of(stream));
    },
    .release_async = [](void* data, void* stream) -> int {
      return cudaFreeAsync(data, stream_of(stream));
    },
    .copy_async = [](void* destination, const void* source, std::size_t bytes,
                     void* stream) -> int {
      return cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream_of(stream));
    },
    .set_async = [](void* data, int byte, std::size_t bytes, void* stream) -> int {
      return cudaMemsetAsync(data, byte, bytes, stream_of(stream));
    },
    .stream_synchronize = [](void* stream) -> int {
      return cudaStreamSynchronize(stream_of(stream));
    },
    .stream_capturing = stream_capturing,
    .event_create = event_create,
    .event_record = [](void* event, void* stream) -> int {
      return cudaEventRecord(event_of(event), stream_of(stream));
    },
    .event_wait = [](void* event, void* stream) -> int {
      return cudaStreamWaitEvent(stream_of(stream), event_of(event));
    },
    .event_destroy = [](void* event) -> int { return cudaEventDestroy(event_of(event)); },
    .last_error = []() -> int { return cudaGetLastError(); },
    .peek_error = []() -> int { return cudaPeekAtLastError(); },
    .error_name = [](int error) { return cudaGetErrorName(static_cast<cudaError_t>(error)); },
    .error_text = [](int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); },
    .launch = [](const KernelLaunch& launch) -> int {
      return cudaLaunchKernel(launch.kernel, dim_of(launch.grid), dim_of(launch.block),
                              launch.arguments, launch.shared_memory, stream_of(launch.stream));
    },
    .allow_shared_memory = [](const void* kernel, std::size_t bytes) -> int {
      return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes));
    },
    .occupancy = [](const void* kernel, int threads, std::size_t shared_memory,
                    int* blocks) -> int {
      return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared_memory);
    }};

}  // namespace

const DeviceApi& device_api() noexcept { return kCuda; }

}  // namespace gpu

namespace backend {

std::string_view toolkit() noexcept {
  static const auto text = [] {
    std::array<char, 32> made{};
    std::snprintf(made.data(), made.size(), "CUDA %d.%d", CUDART_VERSION / 1000,
                  CUDART_VERSION % 1000 / 10);
    return made;
  }();
  return text.data();
}

}  // namespace backend
}  // namespace tessera
