#pragma once
/// What was built, and what it runs on.

#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/export.hpp>
#include <tessera/version.hpp>

namespace tessera {

/// Constants of this build; the views live for ever.
struct BuildInfo {
  Version version{};
  std::string_view backend{};     ///< "kokkos", "cuda" or "hip"
  std::string_view toolkit{};     ///< the backend's library and its version: "Kokkos 5.2.2"
  std::string_view compiler{};    ///< "GNU 12.2.0"
  std::string_view build_type{};  ///< "Release"
  std::string_view head_dims{};   ///< head dimension buckets that were built: "64;128;192;256;512"
  std::string_view commit{};      ///< abbreviated; "unknown" outside a checkout
};
TESSERA_API BuildInfo build_info() noexcept;

/// One device as the backend sees it.
struct DeviceInfo {
  std::string name{};        ///< the processor's or card's own name
  std::string isa{};         ///< instruction set in use: "avx512", "sm_90a", …
  std::string space{};       ///< where kernels run: "OpenMP", "CUDA", …
  int threads = 1;           ///< host threads that kernels use; 1 on a GPU
  std::uint64_t memory = 0;  ///< bytes
};
/// Devices of the backend that this build has: 1 on host spaces.
TESSERA_API int device_count();
/// Throws InvalidArgument if `device` is not in [0, device_count()), DeviceError if the device or
/// its settings in the environment cannot be used.
TESSERA_API DeviceInfo device_info(int device = 0);

}  // namespace tessera
