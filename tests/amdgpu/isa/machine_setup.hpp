#pragma once
// The registers with which waves start.

#include "tests/amdgpu/isa/machine.hpp"
#include "tests/amdgpu/isa/state.hpp"

namespace tessera::amdgpu {

// What HSA calls the dispatch packet: kernels read the sizes of grid and workgroup in it.
struct DispatchPacket {
  u16 header = 0, setup = 3;
  u16 workgroup_size[3]{};
  u16 reserved = 0;
  u32 grid_size[3]{};
  u32 private_bytes = 0, lds_bytes = 0;
  u64 kernel_object = 0, arguments = 0, reserved2 = 0, completion = 0;
};

void start_wave(Wave& wave, const Kernel& kernel, const Launch& launch, u32 index,
                const DispatchPacket& packet);

}  // namespace tessera::amdgpu
