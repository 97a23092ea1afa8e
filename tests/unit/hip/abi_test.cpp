// Compiled where ROCm is installed: what we say of the HIP runtime's binary interface is what its
// header says.

#include "backends/hip/abi.hpp"

#include <hip/hip_runtime_api.h>

#include <cstdint>

#include <gtest/gtest.h>

namespace tessera::hip::abi {
namespace {

static_assert(kSuccess == hipSuccess && kErrorNoDevice == hipErrorNoDevice);
static_assert(kErrorInvalidDevice == hipErrorInvalidDevice);
static_assert(kMemcpyDefault == hipMemcpyDefault && kEventDisableTiming == hipEventDisableTiming);
static_assert(kCaptureNone == hipStreamCaptureStatusNone);
static_assert(sizeof(hipError_t) == sizeof(int) && sizeof(hipMemcpyKind) == sizeof(int));
static_assert(sizeof(hipStreamCaptureStatus) == sizeof(int));

constexpr PropertiesLayout kOurs = HIP_VERSION_MAJOR >= 6 ? kPropertiesR0600 : kPropertiesR0000;
static_assert(kOurs.name == offsetof(hipDeviceProp_t, name));
static_assert(kOurs.total_global_mem == offsetof(hipDeviceProp_t, totalGlobalMem));
static_assert(kOurs.shared_mem_per_block == offsetof(hipDeviceProp_t, sharedMemPerBlock));
static_assert(kOurs.multi_processor_count == offsetof(hipDeviceProp_t, multiProcessorCount));
static_assert(kOurs.l2_cache_size == offsetof(hipDeviceProp_t, l2CacheSize));
static_assert(kOurs.gcn_arch_name == offsetof(hipDeviceProp_t, gcnArchName));
static_assert(sizeof(hipDeviceProp_t) >=
              kOurs.gcn_arch_name + sizeof(hipDeviceProp_t::gcnArchName));
static_assert(sizeof(hipDeviceProp_t) <= 4096);

// Marks are pointers there, which no constant expression compares.
std::size_t number_of(const void* mark) { return reinterpret_cast<std::uintptr_t>(mark); }

TEST(Abi, MarksAreTheHeaders) {
  EXPECT_EQ(number_of(HIP_LAUNCH_PARAM_BUFFER_POINTER), kArgumentsPointer);
  EXPECT_EQ(number_of(HIP_LAUNCH_PARAM_BUFFER_SIZE), kArgumentsSize);
  EXPECT_EQ(number_of(HIP_LAUNCH_PARAM_END), kArgumentsEnd);
}

}  // namespace
}  // namespace tessera::hip::abi
