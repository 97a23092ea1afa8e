#pragma once
// Where flat addresses mean LDS and private memory: outside what a process can have.

#include "tests/amdgpu/isa/formats.hpp"

namespace tessera::amdgpu {

inline constexpr u64 kSharedBase = u64{0x10000} << 32;
inline constexpr u64 kPrivateBase = u64{0x20000} << 32;
inline bool in_shared(u64 address) { return address >> 32 == kSharedBase >> 32; }
inline bool in_private(u64 address) { return address >> 32 == kPrivateBase >> 32; }

}  // namespace tessera::amdgpu
