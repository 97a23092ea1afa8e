#pragma once
// In the place of backends/hip/common/lds.hip.hpp: LDS is memory that is looked after, and loads
// straight to it arrive no sooner than they are waited for.

#include <cstdint>

#include "backends/hip/common/gcn.hip.hpp"
#include "tests/amdgpu/lanes/lds.hpp"

#define TESSERA_HIP_LDS(Type, name, alignment) \
  Type& name = ::tessera::amdgpu::lanes::lds_variable<Type, alignment>()

namespace tessera::hip {

template <bool>
TESSERA_DEVICE void load_to_lds(std::uint32_t lds, __amdgpu_buffer_rsrc_t buffer,
                                std::uint32_t offset, std::uint32_t further) {
  amdgpu::lanes::DirectLoad load{lds, {}};
  amdgpu::lanes::load_buffer(buffer, offset, further, 4, load.word);
  amdgpu::lanes::meet(amdgpu::lanes::kLoadToLds, &load, nullptr);
}
template <int kLater>
TESSERA_DEVICE void wait_for_loads() {
  static_assert(kLater < 64);
  const int later = kLater;
  amdgpu::lanes::meet(amdgpu::lanes::kWaitForLoads, &later, nullptr);
}
TESSERA_DEVICE std::uint32_t lds_address(const std::uint16_t* in) {
  return amdgpu::lanes::lds_offset(in);
}
TESSERA_DEVICE Words2 read_transposed(const std::uint16_t* from) {
  return amdgpu::lanes::meet<Words2>(amdgpu::lanes::kReadTransposed,
                                     *reinterpret_cast<const Words2*>(from));
}

}  // namespace tessera::hip
