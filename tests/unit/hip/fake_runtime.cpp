// The functions of a HIP runtime that the library asks for, of version 6 or, with
// FAKE_HIP_VERSION=5, of version 5. FAKE_HIP_LACKS_MODULES leaves two of them out.

#include <cstdint>
#include <cstring>

#include "tests/unit/hip/fake_hip.hpp"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using tessera::testing::FakeHip;

// It outlives every test.
FakeHip& fake() {
  static FakeHip& one = *new FakeHip;
  return one;
}

// What `function` answers; it is noted, as a runtime does.
int answer(const char* function) {
  FakeHip& f = fake();
  if (const auto found = f.fails.find(function); found != f.fails.end())
    return f.noted = found->second;
  return f.fault != 0 ? f.noted = f.fault : 0;
}

template <class... Numbers>
int act(const char* function, Numbers... numbers) {
  const std::lock_guard lock(fake().changing);
  std::string text = function;
  ((text += " " + std::to_string(numbers)), ...);
  fake().calls.push_back(text + " on " + std::to_string(fake().current));
  return answer(function);
}

template <class T>
void put(void* properties, std::size_t offset, const T& value) {
  std::memcpy(static_cast<char*>(properties) + offset, &value, sizeof value);
}

void put_text(void* properties, std::size_t offset, const std::string& text) {
  std::memcpy(static_cast<char*>(properties) + offset, text.c_str(), text.size() + 1);
}

alignas(128) std::byte memory[1];
char event[1];

}  // namespace

FAKE_EXPORT FakeHip* fake_hip();
FakeHip* fake_hip() { return &fake(); }

// --- Devices ---------------------------------------------------------------------------------

FAKE_EXPORT int hipGetDeviceCount(int* count) {
  *count = fake().devices;
  return answer("hipGetDeviceCount");
}
FAKE_EXPORT int hipGetDevice(int* device) {
  *device = fake().current;
  return answer("hipGetDevice");
}
FAKE_EXPORT int hipSetDevice(int device) {
  if (device >= fake().devices) return fake().noted = tessera::testing::kInvalidDevice;
  fake().current = device;
  return answer("hipSetDevice");
}

#if FAKE_HIP_VERSION == 5
FAKE_EXPORT int hipGetDeviceProperties(void* properties, int device) {
  put_text(properties, 0, "fake of 5, " + std::to_string(device));
  put(properties, 256, std::size_t{5000});
  put(properties, 264, std::size_t{65536});
  put(properties, 336, 104);
  put(properties, 340, 8192);
  put_text(properties, 396, fake().arch);
  return answer("hipGetDeviceProperties");
}
#else
// Versions that have the newer function keep the older, which must not be taken.
FAKE_EXPORT int hipGetDeviceProperties(void*, int) { return tessera::testing::kNotFound; }
FAKE_EXPORT int hipGetDevicePropertiesR0600(void* properties, int device) {
  put_text(properties, 0, "fake " + std::to_string(device));
  put(properties, 288, std::size_t{1000});
  put(properties, 296, std::size_t{65536});
  put(properties, 388, 304);
  put(properties, 616, 4096);
  put_text(properties, 1160, fake().arch);
  return answer("hipGetDevicePropertiesR0600");
}
#endif

// --- Memory ----------------------------------------------------------------------------------

FAKE_EXPORT int hipMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = 11;
  *total = 1000;
  return answer("hipMemGetInfo");
}
FAKE_EXPORT int hipMalloc(void** data, std::size_t bytes) {
  *data = &memory[0];
  return act("hipMalloc", bytes);
}
FAKE_EXPORT int hipFree(void*) { return act("hipFree"); }
FAKE_EXPORT int hipMallocAsync(void** data, std::size_t bytes, void*) {
  *data = &memory[0];
  return act("hipMallocAsync", bytes);
}
#ifndef FAKE_HIP_LACKS_MODULES
FAKE_EXPORT int hipFreeAsync(void*, void*) { return act("hipFreeAsync"); }
#endif
FAKE_EXPORT int hipMemcpyAsync(void*, const void*, std::size_t bytes, int kind, void*) {
  return act("hipMemcpyAsync", bytes, kind);
}
FAKE_EXPORT int hipMemsetAsync(void*, int byte, std::size_t bytes, void*) {
  return act("hipMemsetAsync", byte, bytes);
}

// --- Streams, events, errors -----------------------------------------------------------------

FAKE_EXPORT int hipStreamSynchronize(void*) { return act("hipStreamSynchronize"); }
FAKE_EXPORT int hipStreamIsCapturing(void*, int* status) {
  *status = fake().capture_status;
  return answer("hipStreamIsCapturing");
}
FAKE_EXPORT int hipStreamWaitEvent(void*, void*, unsigned flags) {
  return act("hipStreamWaitEvent", flags);
}
FAKE_EXPORT int hipEventCreateWithFlags(void** made, unsigned flags) {
  *made = &event[0];
  return act("hipEventCreateWithFlags", flags);
}
FAKE_EXPORT int hipEventRecord(void*, void*) { return act("hipEventRecord"); }
FAKE_EXPORT int hipEventDestroy(void*) { return act("hipEventDestroy"); }
FAKE_EXPORT int hipGetLastError() {
  const int error = fake().noted;
  fake().noted = fake().fault;
  return error;
}
FAKE_EXPORT int hipPeekAtLastError() { return fake().noted; }
FAKE_EXPORT const char* hipGetErrorName(int error) {
  return error == tessera::testing::kNoDevice        ? "hipErrorNoDevice"
         : error == tessera::testing::kLaunchFailure ? "hipErrorLaunchFailure"
                                                     : "hipErrorOther";
}
FAKE_EXPORT const char* hipGetErrorString(int error) {
  return error == tessera::testing::kNoDevice        ? "no device is there"
         : error == tessera::testing::kLaunchFailure ? "the kernel failed"
                                                     : "something else";
}

// --- Modules: an image is a text that has the names of its kernels ---------------------------

#ifndef FAKE_HIP_LACKS_MODULES
FAKE_EXPORT int hipModuleLoadData(void** module, const void* image) {
  *module = const_cast<void*>(image);
  const int error = act("hipModuleLoadData");
  if (error != 0) return error;
  const std::string target = fake().arch.substr(0, fake().arch.find(':'));
  const bool fits = std::strstr(static_cast<const char*>(image), target.c_str()) != nullptr;
  return fits ? 0 : fake().noted = tessera::testing::kNoBinary;
}
#endif
FAKE_EXPORT int hipModuleGetFunction(void** function, void* module, const char* name) {
  if (const int error = act("hipModuleGetFunction"); error != 0) return error;
  const char* const found = std::strstr(static_cast<const char*>(module), name);
  if (found == nullptr) return fake().noted = tessera::testing::kNotFound;
  // A device's own, so that a test sees where one is launched that was loaded elsewhere.
  *function = const_cast<char*>(found + fake().current);
  fake().functions[*function] = name;
  return 0;
}
FAKE_EXPORT int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads,
                                                                   std::size_t shared) {
  *blocks = threads + static_cast<int>(shared);
  return answer("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor");
}
FAKE_EXPORT int hipModuleLaunchKernel(void* function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned shared, void* stream,
                                      void** parameters, void** extra) {
  const std::lock_guard lock(fake().changing);
  const auto is = [&](int at, std::uintptr_t mark) {
    return reinterpret_cast<std::uintptr_t>(extra[at]) == mark;
  };
  if (parameters != nullptr || !is(0, 1) || !is(2, 2) || !is(4, 3))
    return fake().noted = tessera::testing::kNotFound;
  const auto* const bytes = static_cast<const std::byte*>(extra[1]);
  fake().launches.push_back({.kernel = fake().functions[function],
                             .grid = {grid_x, grid_y, grid_z},
                             .block = {block_x, block_y, block_z},
                             .shared_bytes = shared,
                             .stream = stream,
                             .argument = {bytes, bytes + *static_cast<std::size_t*>(extra[3])},
                             .device = fake().current});
  return answer("hipModuleLaunchKernel");
}
