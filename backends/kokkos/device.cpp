#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <string>

#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/runtime.hpp"
#include "backends/kokkos/vector/vector.hpp"
#include "core/src/backend.hpp"

namespace tessera {
namespace kokkos {
namespace {

// The value of the first of `keys` in a file of lines "key : value"; empty if there is none.
std::string read_value(const char* path, std::initializer_list<std::string_view> keys) try {
  std::ifstream file(path);
  file.exceptions(std::ios::badbit);  // for want of memory, a line would be cut and nobody told
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key =
        std::string_view(line).substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    if (std::ranges::find(keys, key) == keys.end()) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    if (value != std::string::npos) return line.substr(value);
  }
  return {};
} catch (const std::ios::failure&) {
  return {};
}

}  // namespace

std::string host_name() {
  // x86, then what ARM, POWER and RISC-V kernels write.
  std::string name = read_value("/proc/cpuinfo", {"model name", "Model", "cpu", "uarch"});
  return name.empty() ? "unknown processor" : name;
}

std::uint64_t host_memory() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page = sysconf(_SC_PAGESIZE);
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page);
}

}  // namespace kokkos

namespace backend {

int device_count() { return 1; }

DeviceInfo device_info(int) {
  const std::string space(kokkos::space_name());
  if (!kokkos::host_space())
    return {.name = space, .isa = "generic", .space = space, .threads = 1, .memory = 0};
  return {.name = kokkos::host_name(),
          .isa = std::string(kokkos::vector::best_isa()),
          .space = space,
          .threads = kokkos::threads(),
          .memory = kokkos::host_memory()};
}

}  // namespace backend
}  // namespace tessera
