#pragma once
// Runs a grid of workgroups, waves one after the other from barrier to barrier.
//
// What is not modelled, so that a kernel which runs here may still be wrong on hardware: caches and
// the order in which other workgroups see writes; the wait states that some pairs of instructions
// need (s_nop); the order of sums within one matrix instruction, and its treatment of denormals;
// the last bit of exp, log, rcp, rsq and sqrt; flushing of 16-bit denormals; barriers other than
// the workgroup's; how long anything takes.

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/amdgpu/isa/code_object.hpp"
#include "tests/amdgpu/isa/disassembly.hpp"
#include "tests/amdgpu/isa/memory_map.hpp"

namespace tessera::amdgpu {

enum class WaveOrder { Forward, Reverse, Random };

struct Settings {
  WaveOrder order = WaveOrder::Forward;
  u64 seed = 0;
  u32 threads = 1;
};
// TESSERA_SIMULATED_ORDER: "forward", "reverse", "random" or "random:SEED";
// TESSERA_SIMULATED_THREADS. Throws std::invalid_argument for anything else.
Settings settings_from_environment();

struct Launch {
  std::array<u32, 3> grid{1, 1, 1};   // workgroups
  std::array<u32, 3> block{1, 1, 1};  // work-items
  u32 dynamic_lds = 0;
  std::span<const u8> arguments{};  // the kernarg segment, hidden arguments included
};

struct Statistics {
  u64 wave_instructions = 0;
  std::map<std::string, u64> opcodes{};
};

// A finding of the checks or an instruction that isn't implemented; the text says where.
struct KernelFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Statistics run_grid(const Program& program, const Kernel& kernel, const CodeObject& object,
                    const Launch& launch, MemoryMap memory, const Settings& settings);

}  // namespace tessera::amdgpu
