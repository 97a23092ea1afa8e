// The HIP runtime, opened at run time, as the table that the GPU backends share.

#include "backends/gpu_common/device_api.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "backends/hip/abi.hpp"
#include "backends/hip/runtime.hpp"
#include "backends/hip/target.hpp"

namespace tessera::gpu {
namespace {

using hip::Runtime;

// Our own error: no number of HIP's is negative.
constexpr int kNoRuntime = -1;

template <class Function, class... Arguments>
int call(Function Runtime::* function, Arguments... arguments) {
  const Runtime* const runtime = hip::runtime();
  return runtime != nullptr ? (runtime->*function)(arguments...) : kNoRuntime;
}

int device_count(int* count) {
  const int error = call(&Runtime::get_device_count, count);
  // Some versions say so, where there is no device.
  return error == hip::abi::kErrorInvalidDevice ? hip::abi::kErrorNoDevice : error;
}

// --- Properties --------------------------------------------------------------------------------

template <class T>
T number_at(const std::byte* properties, std::size_t offset) {
  T number{};
  std::memcpy(&number, properties + offset, sizeof number);
  return number;
}

// Text of at most 256 characters, all of which may be used.
std::string_view text_at(const std::byte* properties, std::size_t offset) {
  constexpr std::size_t kMost = 256;
  const auto* const text = reinterpret_cast<const char*>(properties + offset);
  return {text, static_cast<std::size_t>(std::find(text, text + kMost, '\0') - text)};
}

template <std::size_t kSize>
void put(std::string_view text, std::array<char, kSize>& into) {
  into = {};
  text.copy(into.data(), kSize - 1);
}

int properties(int device, DeviceProperties* result) {
  const Runtime* const runtime = hip::runtime();
  if (runtime == nullptr) return kNoRuntime;
  alignas(64) std::array<std::byte, 4096> all{};  // more than any version's
  static_assert(all.size() >= 2 * hip::abi::kPropertiesR0600.size);
  const int error = runtime->get_device_properties(all.data(), device);
  if (error != 0) return error;
  const hip::abi::PropertiesLayout& at = runtime->properties;
  const std::string_view isa = hip::isa_of(text_at(all.data(), at.gcn_arch_name));
  *result = {
      .capability = hip::number_of(isa),
      .multiprocessors = number_at<int>(all.data(), at.multi_processor_count),
      .shared_memory = number_at<std::size_t>(all.data(), at.shared_mem_per_block),
      .l2 = static_cast<std::size_t>(std::max(0, number_at<int>(all.data(), at.l2_cache_size))),
      .memory = number_at<std::size_t>(all.data(), at.total_global_mem)};
  put(text_at(all.data(), at.name), result->name);
  put(isa, result->isa);
  return 0;
}

// --- Streams and kernels -----------------------------------------------------------------------

int stream_capturing(void* stream, bool* capturing) {
  int status = hip::abi::kCaptureNone;
  const int error = call(&Runtime::stream_is_capturing, stream, &status);
  *capturing = status != hip::abi::kCaptureNone;
  return error;
}

void* mark(std::uintptr_t number) { return std::bit_cast<void*>(number); }

// Our kernels have one argument, which the runtime copies.
int launch(const KernelLaunch& launch) {
  std::size_t bytes = launch.argument_bytes;
  std::array<void*, 5> extra{mark(hip::abi::kArgumentsPointer), launch.arguments[0],
                             mark(hip::abi::kArgumentsSize), &bytes, mark(hip::abi::kArgumentsEnd)};
  return call(&Runtime::module_launch_kernel, const_cast<void*>(launch.kernel), launch.grid[0],
              launch.grid[1], launch.grid[2], launch.block[0], launch.block[1], launch.block[2],
              static_cast<unsigned>(launch.shared_memory), launch.stream,
              static_cast<void**>(nullptr), extra.data());
}

// --- Errors ------------------------------------------------------------------------------------

const char* error_name(int error) {
  if (error == kNoRuntime) return "no HIP runtime";
  const Runtime* const runtime = hip::runtime();
  return runtime != nullptr ? runtime->get_error_name(error) : "an error of no HIP runtime";
}

const char* error_text(int error) {
  if (error == kNoRuntime) return hip::why_no_runtime();
  const Runtime* const runtime = hip::runtime();
  return runtime != nullptr ? runtime->get_error_string(error) : hip::why_no_runtime();
}

// Without a runtime nothing was called that could have left an error.
int noted_error(int (*Runtime::*function)()) {
  const Runtime* const runtime = hip::runtime();
  return runtime != nullptr ? (runtime->*function)() : 0;
}

constexpr DeviceApi kHip{
    .space = "HIP",
    .device_count = device_count,
    .get_device = [](int* device) { return call(&Runtime::get_device, device); },
    .set_device = [](int device) { return call(&Runtime::set_device, device); },
    .properties = properties,
    .memory_info = [](std::size_t* free,
                      std::size_t* total) { return call(&Runtime::mem_get_info, free, total); },
    .allocate = [](std::size_t bytes, void** data) { return call(&Runtime::malloc, data, bytes); },
    .release = [](void* data) { return call(&Runtime::free, data); },
    .allocate_async = [](std::size_t bytes, void* stream,
                         void** data) { return call(&Runtime::malloc_async, data, bytes, stream); },
    .release_async = [](void* data,
                        void* stream) { return call(&Runtime::free_async, data, stream); },
    .copy_async =
        [](void* destination, const void* source, std::size_t bytes, void* stream) {
          return call(&Runtime::memcpy_async, destination, source, bytes, hip::abi::kMemcpyDefault,
                      stream);
        },
    .set_async =
        [](void* data, int byte, std::size_t bytes, void* stream) {
          return call(&Runtime::memset_async, data, byte, bytes, stream);
        },
    .stream_synchronize = [](void* stream) { return call(&Runtime::stream_synchronize, stream); },
    .stream_capturing = stream_capturing,
    .event_create =
        [](void** event) {
          return call(&Runtime::event_create_with_flags, event, hip::abi::kEventDisableTiming);
        },
    .event_record = [](void* event,
                       void* stream) { return call(&Runtime::event_record, event, stream); },
    .event_wait = [](void* event,
                     void* stream) { return call(&Runtime::stream_wait_event, stream, event, 0U); },
    .event_destroy = [](void* event) { return call(&Runtime::event_destroy, event); },
    .last_error = [] { return noted_error(&Runtime::get_last_error); },
    .peek_error = [] { return noted_error(&Runtime::peek_at_last_error); },
    .error_name = error_name,
    .error_text = error_text,
    .launch = launch,
    // A work-group may have all the LDS there is without asking.
    .allow_shared_memory = [](const void*, std::size_t) { return hip::abi::kSuccess; },
    .occupancy =
        [](const void* kernel, int threads, std::size_t shared_memory, int* blocks) {
          return call(&Runtime::module_occupancy_max_active_blocks_per_multiprocessor, blocks,
                      const_cast<void*>(kernel), threads, shared_memory);
        }};

}  // namespace

const DeviceApi& device_api() noexcept { return kHip; }

}  // namespace tessera::gpu
