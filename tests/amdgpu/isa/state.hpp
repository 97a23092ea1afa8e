#pragma once
// What a wave and a workgroup hold while they run.

#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/amdgpu/isa/checks.hpp"
#include "tests/amdgpu/isa/instruction.hpp"
#include "tests/amdgpu/isa/memory_map.hpp"
#include "tests/amdgpu/isa/target.hpp"

namespace tessera::amdgpu {

struct alignas(64) Row {
  u32 lane[kLanes];
};

// Floating point behaviour, from the kernel's descriptor and s_setreg.
struct FloatMode {
  u32 bits = 0xf0;  // round 32, round 16 and 64, denormals 32, denormals 16 and 64: two bits each
  u32 round32() const { return bits & 3; }
  u32 round16() const { return bits >> 2 & 3; }
  bool flush_in32() const { return (bits >> 4 & 1) == 0; }
  bool flush_out32() const { return (bits >> 4 & 2) == 0; }
  bool flush32() const { return (bits >> 4 & 3) != 3; }
  bool flush16() const { return (bits >> 6 & 3) != 3; }
};

struct Workgroup;
struct Program;

struct Wave {
  Row vector[kVectorRegisters];
  Row dpp_row;  // the first source after the lane selection
  u32 scalar[kScalarRegisters];
  u32 scc = 0;
  FloatMode mode{};
  u64 active = 0;  // lanes that the current instruction writes
  u64 lanes = ~u64{0};
  u32 size = 64;
  u32 pc = 0;  // index of the next instruction
  u32 id = 0;
  bool done = false, waiting = false, signalled = false, yielded = false;
  u64 executed = 0;
  i32 fault_lane = -1;
  Pending pending{};
  Workgroup* group = nullptr;
  std::vector<u8> scratch{};  // lane after lane

  u64 pair(int index) const { return scalar[index] | static_cast<u64>(scalar[index + 1]) << 32; }
  void set_pair(int index, u64 value) {
    scalar[index] = static_cast<u32>(value);
    scalar[index + 1] = static_cast<u32>(value >> 32);
  }
  u64 exec() const { return pair(kExec) & lanes; }
  u64 mask(int index) const { return size == 64 ? pair(index) : scalar[index]; }
  void set_mask(int index, u64 value) {
    if (size == 64)
      set_pair(index, value);
    else
      scalar[index] = static_cast<u32>(value);
  }
};

struct Workgroup {
  const Target* target = nullptr;
  const Program* program = nullptr;
  const MemoryMap* memory = nullptr;
  std::array<u32, 3> id{};
  std::vector<u8> lds{};
  u32 lds_size = 0;
  LdsChecker lds_checker{};
  u32 scratch_per_lane = 0;
  u64 clock = 0;
  std::vector<Wave*> waves{};
};

}  // namespace tessera::amdgpu
