#pragma once
// The HIP runtime, opened when it is first needed: the library is built and loaded where there is
// none. TESSERA_HIP_RUNTIME names its file, else the system's is taken.

#include <cstddef>
#include <string>

#include "backends/hip/abi.hpp"

namespace tessera::hip {

// Its functions by their names there, without "hip". They return its error numbers, 0 for success.
struct Runtime {
  int (*get_device_count)(int* count) = nullptr;
  int (*get_device)(int* device) = nullptr;
  int (*set_device)(int device) = nullptr;
  int (*get_device_properties)(void* properties, int device) = nullptr;

  int (*mem_get_info)(std::size_t* free, std::size_t* total) = nullptr;
  int (*malloc)(void** data, std::size_t bytes) = nullptr;
  int (*free)(void* data) = nullptr;
  int (*malloc_async)(void** data, std::size_t bytes, void* stream) = nullptr;
  int (*free_async)(void* data, void* stream) = nullptr;
  int (*memcpy_async)(void* destination, const void* source, std::size_t bytes, int kind,
                      void* stream) = nullptr;
  int (*memset_async)(void* data, int byte, std::size_t bytes, void* stream) = nullptr;

  int (*stream_synchronize)(void* stream) = nullptr;
  int (*stream_is_capturing)(void* stream, int* status) = nullptr;
  int (*stream_wait_event)(void* stream, void* event, unsigned flags) = nullptr;
  int (*event_create_with_flags)(void** event, unsigned flags) = nullptr;
  int (*event_record)(void* event, void* stream) = nullptr;
  int (*event_destroy)(void* event) = nullptr;

  int (*get_last_error)() = nullptr;
  int (*peek_at_last_error)() = nullptr;
  const char* (*get_error_name)(int error) = nullptr;
  const char* (*get_error_string)(int error) = nullptr;

  int (*module_load_data)(void** module, const void* image) = nullptr;
  int (*module_get_function)(void** function, void* module, const char* name) = nullptr;
  int (*module_launch_kernel)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, void* stream, void** parameters,
                              void** extra) = nullptr;
  int (*module_occupancy_max_active_blocks_per_multiprocessor)(int* blocks, void* function,
                                                               int threads,
                                                               std::size_t shared_bytes) = nullptr;

  abi::PropertiesLayout properties{};  // as get_device_properties writes them
};

struct Opened {
  Runtime runtime{};
  std::string library{};  // what was opened
  std::string why_not{};  // empty if it has every function
};

// Opens the file `chosen`, or the system's runtime if it is null or empty. What could be opened but
// lacks a function is no runtime, and no other is tried in its place.
Opened open_runtime(const char* chosen);

// The process's, which is never closed; null if there is none, for the reason that `why_no_runtime`
// tells.
const Runtime* runtime() noexcept;
const char* why_no_runtime() noexcept;

}  // namespace tessera::hip
