#pragma once
// What a GPU's runtime does for us, as a table of functions: the host side that the GPU backends
// share calls nothing else of it, and a test puts a table of its own in its place. The backend
// defines `device_api`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera::gpu {

struct DeviceProperties {
  std::array<char, 256> name{};  // ends with 0, as does isa
  std::array<char, 64> isa{};    // "sm_90a"
  int capability = 0;            // the vendor's number for the architecture: 90 for sm_90a
  int multiprocessors = 0;
  std::size_t shared_memory = 0;  // bytes, the most that a block may ask for
  std::size_t l2 = 0;             // bytes
  std::uint64_t memory = 0;       // bytes
};

// A launch by handle: the address by which the runtime knows a kernel.
struct KernelLaunch {
  const void* kernel = nullptr;
  std::array<unsigned, 3> grid{1, 1, 1};   // blocks
  std::array<unsigned, 3> block{1, 1, 1};  // threads
  std::size_t shared_memory = 0;           // dynamic, bytes a block
  void* stream = nullptr;
  void** arguments = nullptr;      // a pointer to each
  std::size_t argument_bytes = 0;  // of the one argument, where the runtime takes but one (HIP)
};

// Functions that return an int return the runtime's own error code, which is 0 for success. They
// act on the calling thread's current device. A stream is the vendor's handle, null for the legacy
// default stream; so is an event.
struct DeviceApi {
  std::string_view space{};  // "CUDA"

  // Devices.
  int (*device_count)(int* count) = nullptr;
  int (*get_device)(int* device) = nullptr;
  int (*set_device)(int device) = nullptr;
  int (*properties)(int device, DeviceProperties* result) = nullptr;

  // Memory. The asynchronous functions take their turn on the stream.
  int (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  int (*allocate)(std::size_t bytes, void** data) = nullptr;
  int (*release)(void* data) = nullptr;
  int (*allocate_async)(std::size_t bytes, void* stream, void** data) = nullptr;
  int (*release_async)(void* data, void* stream) = nullptr;
  int (*copy_async)(void* destination, const void* source, std::size_t bytes,
                    void* stream) = nullptr;  // in any direction
  int (*set_async)(void* data, int byte, std::size_t bytes, void* stream) = nullptr;

  // Streams and events.
  int (*stream_synchronize)(void* stream) = nullptr;
  int (*stream_capturing)(void* stream, bool* capturing) = nullptr;
  int (*event_create)(void** event) = nullptr;
  int (*event_record)(void* event, void* stream) = nullptr;
  int (*event_wait)(void* event, void* stream) = nullptr;  // the stream waits, not the host
  int (*event_destroy)(void* event) = nullptr;

  // Errors of the calling thread: `last_error` forgets it, `peek_error` does not.
  int (*last_error)() = nullptr;
  int (*peek_error)() = nullptr;
  const char* (*error_name)(int error) = nullptr;
  const char* (*error_text)(int error) = nullptr;

  // Kernels.
  int (*launch)(const KernelLaunch& launch) = nullptr;
  int (*allow_shared_memory)(const void* kernel, std::size_t bytes) = nullptr;  // dynamic
  int (*occupancy)(const void* kernel, int threads, std::size_t shared_memory,
                   int* blocks) = nullptr;  // resident blocks a multiprocessor
};

// The backend's. Never fails: what cannot be had, say for want of a driver, its functions answer.
const DeviceApi& device_api() noexcept;

}  // namespace tessera::gpu
