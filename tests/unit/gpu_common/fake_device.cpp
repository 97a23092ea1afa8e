#include "tests/unit/gpu_common/fake_device.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "backends/gpu_common/device_api.hpp"

namespace tessera::testing {

bool FakeDevice::was_called(const std::string& call) const {
  return std::find(calls.begin(), calls.end(), call) != calls.end();
}

FakeDevice& fake_device() {
  static FakeDevice fake;
  return fake;
}

}  // namespace tessera::testing

namespace tessera::gpu {
namespace {

using testing::fake_device;
using testing::FakeDevice;

// What `function` answers; it is noted, as a runtime does.
int answer(const char* function) {
  FakeDevice& fake = fake_device();
  const auto found = fake.fails.find(function);
  if (found == fake.fails.end()) return 0;
  fake.noted = found->second;
  return found->second;
}

// Likewise, of a function that does something on a stream or a device.
int act(const char* function, std::size_t bytes) {
  FakeDevice& fake = fake_device();
  fake.calls.push_back(std::string(function) + " " + std::to_string(bytes) + " on " +
                       std::to_string(fake.current));
  return answer(function);
}

alignas(128) std::byte memory[1];

int allocate(const char* function, std::size_t bytes, void** data) {
  fake_device().asked_for = bytes;
  if (const int error = act(function, bytes); error != 0) return error;
  ++fake_device().live;
  *data = &memory[0];
  return 0;
}

int release(const char* function) {
  if (const int error = act(function, 0); error != 0) return error;
  --fake_device().live;
  return 0;
}

constexpr DeviceApi kFake{
    .space = "Fake",
    .device_count = [](int* count) -> int {
      if (fake_device().devices == 0) return fake_device().noted = testing::kNoDevice;
      *count = fake_device().devices;
      return answer("device_count");
    },
    .get_device = [](int* device) -> int {
      *device = fake_device().current;
      return answer("get_device");
    },
    .set_device = [](int device) -> int {
      if (const int error = answer("set_device"); error != 0 && device != 0) return error;
      fake_device().current = device;
      return 0;
    },
    .properties = [](int device, DeviceProperties* result) -> int {
      result->capability = 90;
      result->multiprocessors = 7;
      result->memory = 1000;
      std::snprintf(result->name.data(), result->name.size(), "fake %d", device);
      std::snprintf(result->isa.data(), result->isa.size(), "fake_90");
      return answer("properties");
    },
    .memory_info = [](std::size_t* free, std::size_t* total) -> int {
      *free = 11;
      *total = 1000;
      return answer("memory_info");
    },
    .allocate = [](std::size_t bytes, void** data) { return allocate("allocate", bytes, data); },
    .release = [](void*) { return release("release"); },
    .allocate_async = [](std::size_t bytes, void*,
                         void** data) { return allocate("allocate_async", bytes, data); },
    .release_async = [](void*, void*) { return release("release_async"); },
    .copy_async = [](void*, const void*, std::size_t bytes,
                     void*) { return act("copy_async", bytes); },
    .stream_synchronize = [](void*) { return act("stream_synchronize", 0); },
    .stream_capturing = [](void*, bool* capturing) -> int {
      *capturing = fake_device().capturing;
      return answer("stream_capturing");
    },
    .last_error =
        [] {
          const int error = fake_device().noted;
          fake_device().noted = 0;
          return error;
        },
    .peek_error = [] { return fake_device().noted; },
    .error_name =
        [](int error) {
          return error == testing::kOutOfMemory ? "fakeOutOfMemory"
                 : error == testing::kNoDevice  ? "fakeNoDevice"
                                                : "fakeFault";
        },
    .error_text =
        [](int error) {
          return error == testing::kOutOfMemory ? "no memory"
                 : error == testing::kNoDevice  ? "no device"
                                                : "a fault";
        }};

}  // namespace

const DeviceApi& device_api() noexcept { return kFake; }

}  // namespace tessera::gpu
