#pragma once
// The part of HIP's binary interface that the simulated runtime exports: numbers and layouts of
// HIP 6, in declarations of our own.

#include <cstddef>
#include <cstdint>

#define TESSERA_HIP_EXPORT extern "C" __attribute__((visibility("default")))

namespace tessera::amdgpu {

enum HipError : int {
  kHipSuccess = 0,
  kHipInvalidValue = 1,
  kHipOutOfMemory = 2,
  kHipInvalidConfiguration = 9,
  kHipNoDevice = 100,
  kHipInvalidDevice = 101,
  kHipInvalidImage = 200,
  kHipNoBinaryForGpu = 209,
  kHipInvalidHandle = 400,
  kHipNotFound = 500,
  kHipLaunchOutOfResources = 701,
  kHipLaunchFailure = 719,
  kHipNotSupported = 801,
  kHipUnknown = 999,
};

enum HipMemcpyKind : int {
  kHostToHost,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kDefaultKind
};

enum HipAttribute : int {
  kL2CacheSize = 19,
  kCapabilityMajor = 23,
  kMaxThreadsPerBlock = 56,
  kCapabilityMinor = 61,
  kMultiprocessorCount = 63,
  kMaxSharedMemoryPerBlock = 74,
  kSharedMemoryPerBlockOptin = 75,
  kWarpSize = 87,
  kMaxSharedMemoryPerMultiprocessor = 10002,
};

enum HipFunctionAttribute : int { kMaxDynamicSharedMemory = 8, kSharedMemoryCarveout = 9 };

inline constexpr unsigned kEventDefault = 0, kEventBlockingSync = 1, kEventDisableTiming = 2;
inline constexpr std::uintptr_t kLaunchBufferPointer = 1, kLaunchBufferSize = 2, kLaunchEnd = 3;

// hipDeviceProp_tR0600; fields that nobody asks for are lumped together and zero.
struct HipDeviceProperties {
  char name[256];
  char identifiers[32];
  std::size_t total_memory;
  std::size_t shared_per_block;
  int registers_per_block;
  int warp_size;
  std::size_t pitch;
  int max_threads_per_block;
  int max_threads[3];
  int max_grid[3];
  int clock_rate;
  std::size_t constant_memory;
  int major, minor;
  std::size_t texture_alignment[2];
  int device_overlap;
  int multiprocessors;
  char before_l2[224];
  int l2_bytes;
  int persisting_l2;
  int max_threads_per_multiprocessor;
  int caches[3];
  std::size_t shared_per_multiprocessor;
  char before_architecture[512];
  char architecture[256];
  std::size_t max_shared_per_multiprocessor;
  char rest[48];
};
static_assert(offsetof(HipDeviceProperties, total_memory) == 288);
static_assert(offsetof(HipDeviceProperties, warp_size) == 308);
static_assert(offsetof(HipDeviceProperties, major) == 360);
static_assert(offsetof(HipDeviceProperties, multiprocessors) == 388);
static_assert(offsetof(HipDeviceProperties, l2_bytes) == 616);
static_assert(offsetof(HipDeviceProperties, shared_per_multiprocessor) == 640);
static_assert(offsetof(HipDeviceProperties, architecture) == 1160);
static_assert(sizeof(HipDeviceProperties) == 1472);

}  // namespace tessera::amdgpu
