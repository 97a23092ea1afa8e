#pragma once
// What we need to know of the HIP runtime's binary interface, so that no header of it is needed:
// numbers, and where its description of a device has what. tests/unit/hip compares them with the
// header where one is installed.

#include <cstddef>

namespace tessera::hip::abi {

inline constexpr int kSuccess = 0;
inline constexpr int kErrorNoDevice = 100;
inline constexpr int kErrorInvalidDevice = 101;

inline constexpr int kMemcpyDefault = 4;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr int kCaptureNone = 0;

// Marks in the list by which a launch takes its arguments as one block of bytes.
inline constexpr std::size_t kArgumentsPointer = 1;
inline constexpr std::size_t kArgumentsSize = 2;
inline constexpr std::size_t kArgumentsEnd = 3;

// Offsets in a device's properties, bytes.
struct PropertiesLayout {
  std::size_t size = 0;                   // of all
  std::size_t name = 0;                   // char[256]
  std::size_t total_global_mem = 0;       // size_t
  std::size_t shared_mem_per_block = 0;   // size_t
  std::size_t multi_processor_count = 0;  // int
  std::size_t l2_cache_size = 0;          // int
  std::size_t gcn_arch_name = 0;          // char[256]
};

// What hipGetDevicePropertiesR0600 writes (HIP 6 and 7), and hipGetDeviceProperties of HIP 5.
inline constexpr PropertiesLayout kPropertiesR0600{.size = 1472,
                                                   .name = 0,
                                                   .total_global_mem = 288,
                                                   .shared_mem_per_block = 296,
                                                   .multi_processor_count = 388,
                                                   .l2_cache_size = 616,
                                                   .gcn_arch_name = 1160};
inline constexpr PropertiesLayout kPropertiesR0000{.size = 792,
                                                   .name = 0,
                                                   .total_global_mem = 256,
                                                   .shared_mem_per_block = 264,
                                                   .multi_processor_count = 336,
                                                   .l2_cache_size = 340,
                                                   .gcn_arch_name = 396};

}  // namespace tessera::hip::abi
