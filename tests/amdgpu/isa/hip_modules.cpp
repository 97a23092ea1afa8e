// The functions of HIP for code objects and launches.

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/amdgpu/isa/hip_runtime.hpp"

namespace tessera::amdgpu {
namespace {

template <class F>
int guarded(F act) {
  if (const int state = runtime().state(); state != kHipSuccess) return noted(state);
  return noted(act());
}

struct Sizes {
  std::array<u32, 3> grid, block;
};

// The value of a hidden argument, which the runtime and not the caller gives; false for one that
// isn't known.
bool hidden_value(const std::string& kind, const Sizes& sizes, u32 dynamic_lds, u64& value) {
  constexpr std::array<char, 3> kAxes{'x', 'y', 'z'};
  for (std::size_t i = 0; i < kAxes.size(); ++i) {
    if (kind == fmt::format("hidden_block_count_{}", kAxes[i])) return value = sizes.grid[i], true;
    if (kind == fmt::format("hidden_group_size_{}", kAxes[i])) return value = sizes.block[i], true;
    if (kind == fmt::format("hidden_remainder_{}", kAxes[i]) ||
        kind == fmt::format("hidden_global_offset_{}", kAxes[i]))
      return value = 0, true;
  }
  if (kind == "hidden_grid_dims")
    return value = sizes.grid[2] > 1 ? 3 : sizes.grid[1] > 1 ? 2 : 1, true;
  if (kind == "hidden_dynamic_lds_size") return value = dynamic_lds, true;
  if (kind == "hidden_none") return value = 0, true;
  return false;
}

bool is_hidden(const KernelArgument& argument) { return argument.kind.starts_with("hidden_"); }

// The kernarg segment; empty with an error printed if it can't be made.
int gather(const Kernel& kernel, const Sizes& sizes, u32 dynamic_lds, void** params, void** extra,
           std::vector<u8>& out) {
  out.assign(kernel.kernarg_bytes, 0);
  if (extra) {
    const void* buffer = nullptr;
    std::size_t bytes = 0;
    for (std::size_t i = 0; reinterpret_cast<std::uintptr_t>(extra[i]) != kLaunchEnd; i += 2) {
      const auto key = reinterpret_cast<std::uintptr_t>(extra[i]);
      if (key == kLaunchBufferPointer)
        buffer = extra[i + 1];
      else if (key == kLaunchBufferSize)
        bytes = *static_cast<const std::size_t*>(extra[i + 1]);
      else
        return kHipInvalidValue;
    }
    if (!buffer || bytes > out.size()) return kHipInvalidValue;
    std::memcpy(out.data(), buffer, bytes);
  }
  std::size_t at = 0;
  for (const KernelArgument& argument : kernel.arguments) {
    if (static_cast<std::size_t>(argument.offset) + argument.size > out.size())
      return kHipInvalidImage;
    if (!is_hidden(argument)) {
      if (!extra && (!params || !params[at])) return kHipInvalidValue;
      if (!extra) std::memcpy(out.data() + argument.offset, params[at++], argument.size);
      continue;
    }
    u64 value = 0;
    if (!hidden_value(argument.kind, sizes, dynamic_lds, value)) {
      fmt::print(stderr, "simulated device: kernel {} wants the argument {}, which is not known\n",
                 kernel.name, argument.kind);
      return kHipNotSupported;
    }
    std::memcpy(out.data() + argument.offset, &value,
                std::min<std::size_t>(argument.size, sizeof value));
  }
  return kHipSuccess;
}

int launch(Function* function, const Sizes& sizes, unsigned dynamic_lds, Stream* stream,
           void** params, void** extra) {
  if (!runtime().knows(function)) return kHipInvalidHandle;
  if (!runtime().knows(stream)) return kHipInvalidHandle;
  if (params && extra) return kHipInvalidValue;
  const Kernel& kernel = *function->kernel;
  u64 threads = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    if (sizes.grid[i] == 0 || sizes.block[i] == 0) return kHipInvalidConfiguration;
    threads *= sizes.block[i];
  }
  if (threads > std::min(1024u, kernel.max_threads)) return kHipInvalidConfiguration;
  if (static_cast<u64>(kernel.lds_bytes) + dynamic_lds > runtime().target()->lds_bytes)
    return kHipLaunchOutOfResources;
  std::vector<u8> arguments;
  if (const int error = gather(kernel, sizes, dynamic_lds, params, extra, arguments);
      error != kHipSuccess)
    return error;
  return runtime().launch(*function, {.grid = sizes.grid,
                                      .block = sizes.block,
                                      .dynamic_lds = dynamic_lds,
                                      .arguments = arguments});
}

u32 rounded_up(u32 value, u32 step) { return (value + step - 1) / step * step; }

int resident_blocks(const Kernel& kernel, u32 threads, u64 dynamic_lds) {
  const Target& target = *runtime().target();
  const bool gfx9 = target.generation == Generation::Gfx9;
  const u32 waves = (threads + target.wave_size - 1) / target.wave_size;
  const u32 units = gfx9 ? 4 : 2, most = gfx9 ? 8 : 16,
            granule = gfx9 ? 8 : 24;  // SIMDs of a compute unit, waves of one
  const u32 registers = std::max(rounded_up(kernel.vector_registers, granule), granule);
  const u32 a_unit = std::min(most, target.vector_registers / registers);
  u64 blocks = static_cast<u64>(a_unit) * units / waves;
  const u64 lds = kernel.lds_bytes + dynamic_lds;
  if (lds) blocks = std::min<u64>(blocks, target.lds_bytes / lds);
  return static_cast<int>(blocks);
}

}  // namespace
}  // namespace tessera::amdgpu

using namespace tessera::amdgpu;

TESSERA_HIP_EXPORT int hipModuleLoadData(Module** module, const void* image) {
  return guarded(
      [&]() -> int { return module && image ? runtime().load(image, module) : kHipInvalidValue; });
}
TESSERA_HIP_EXPORT int hipModuleUnload(Module* module) {
  return guarded([&] { return runtime().unload(module); });
}
TESSERA_HIP_EXPORT int hipModuleGetFunction(Function** function, Module* module, const char* name) {
  return guarded([&]() -> int {
    return function && name ? runtime().find_function(module, name, function) : kHipInvalidValue;
  });
}
TESSERA_HIP_EXPORT int hipFuncSetAttribute(const void* handle, int which, int value) {
  return guarded([&]() -> int {
    const auto* function = static_cast<const Function*>(handle);
    if (!runtime().knows(function)) return kHipInvalidHandle;
    if (which != kMaxDynamicSharedMemory && which != kSharedMemoryCarveout) return kHipInvalidValue;
    const i64 most = static_cast<i64>(runtime().target()->lds_bytes) - function->kernel->lds_bytes;
    return value >= 0 && (which == kSharedMemoryCarveout || value <= most) ? kHipSuccess
                                                                           : kHipInvalidValue;
  });
}
TESSERA_HIP_EXPORT int hipModuleLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y,
                                             unsigned grid_z, unsigned block_x, unsigned block_y,
                                             unsigned block_z, unsigned dynamic_lds, Stream* stream,
                                             void** params, void** extra) {
  return guarded([&] {
    return launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}}, dynamic_lds,
                  stream, params, extra);
  });
}
TESSERA_HIP_EXPORT int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                          Function* function,
                                                                          int threads,
                                                                          std::size_t dynamic_lds) {
  return guarded([&]() -> int {
    if (!blocks || threads <= 0 || threads > 1024) return kHipInvalidValue;
    if (!runtime().knows(function)) return kHipInvalidHandle;
    *blocks = resident_blocks(*function->kernel, static_cast<u32>(threads), dynamic_lds);
    return kHipSuccess;
  });
}
