#pragma once
// The devices that can be simulated.

#include <cstddef>
#include <string_view>

#include "tests/amdgpu/isa/formats.hpp"

namespace tessera::amdgpu {

enum class Generation { Gfx9, Gfx11, Gfx12 };

struct Target {
  std::string_view name{};
  u32 machine = 0;  // e_flags & 0xff of its code objects
  Generation generation{};
  int major = 0, minor = 0;
  u32 wave_size = 64;
  u32 lds_bytes = 65536;  // the most that a workgroup may have
  u32 compute_units = 0;
  u32 l2_bytes = 0;
  u64 memory_bytes = 0;
  u32 vector_registers = 512;  // a lane and SIMD
  bool one_zero_float8 = false;
  std::string_view product{};
};

// Null if the name is none of them.
const Target* find_target(std::string_view name);
const Target* find_machine(u32 machine);
// All names, for messages.
std::string_view target_names();

}  // namespace tessera::amdgpu
