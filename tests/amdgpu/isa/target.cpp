#include "tests/amdgpu/isa/target.hpp"

#include <array>

namespace tessera::amdgpu {
namespace {

constexpr u64 kGiB = u64{1} << 30;
constexpr u32 kMiB = 1u << 20;

constexpr std::array<Target, 5> kTargets{{
    {.name = "gfx90a",
     .machine = 0x3f,
     .generation = Generation::Gfx9,
     .major = 9,
     .minor = 0,
     .compute_units = 104,
     .l2_bytes = 8 * kMiB,
     .memory_bytes = 64 * kGiB,
     .product = "Simulated AMD Instinct MI250X"},
    {.name = "gfx942",
     .machine = 0x4c,
     .generation = Generation::Gfx9,
     .major = 9,
     .minor = 4,
     .compute_units = 304,
     .l2_bytes = 4 * kMiB,
     .memory_bytes = 192 * kGiB,
     .one_zero_float8 = true,
     .product = "Simulated AMD Instinct MI300X"},
    {.name = "gfx950",
     .machine = 0x4f,
     .generation = Generation::Gfx9,
     .major = 9,
     .minor = 5,
     .lds_bytes = 163840,
     .compute_units = 256,
     .l2_bytes = 4 * kMiB,
     .memory_bytes = 288 * kGiB,
     .product = "Simulated AMD Instinct MI355X"},
    {.name = "gfx1100",
     .machine = 0x41,
     .generation = Generation::Gfx11,
     .major = 11,
     .minor = 0,
     .wave_size = 32,
     .compute_units = 48,
     .l2_bytes = 6 * kMiB,
     .memory_bytes = 24 * kGiB,
     .vector_registers = 1536,
     .product = "Simulated AMD Radeon RX 7900 XTX"},
    {.name = "gfx1201",
     .machine = 0x4e,
     .generation = Generation::Gfx12,
     .major = 12,
     .minor = 0,
     .wave_size = 32,
     .compute_units = 32,
     .l2_bytes = 8 * kMiB,
     .memory_bytes = 16 * kGiB,
     .vector_registers = 1536,
     .product = "Simulated AMD Radeon RX 9070 XT"},
}};

}  // namespace

const Target* find_target(std::string_view name) {
  for (const Target& target : kTargets)
    if (target.name == name) return &target;
  return nullptr;
}

const Target* find_machine(u32 machine) {
  for (const Target& target : kTargets)
    if (target.machine == machine) return &target;
  return nullptr;
}

std::string_view target_names() { return "gfx90a, gfx942, gfx950, gfx1100, gfx1201"; }

}  // namespace tessera::amdgpu
