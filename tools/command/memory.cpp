#include "tools/command/memory.hpp"

#include <fstream>

#include <fmt/format.h>
#include <tessera/error.hpp>

namespace tessera::tools {

std::optional<std::int64_t> peak_resident_bytes() {
  return bench::bytes_in_proc("/proc/self/status", "VmHWM:");
}

bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5\n" << std::flush;  // 5: reset the peak resident set size (proc(5))
  return file.good();
}

void require_memory(std::string_view who, double bytes) {
  const std::optional<std::int64_t> available =
      bench::bytes_in_proc("/proc/meminfo", "MemAvailable:");
  if (!available || bytes <= static_cast<double>(*available)) return;
  constexpr double kGib = 1 << 30;
  throw Unsupported(fmt::format("{}: needs {:.1f} GiB of memory; {:.1f} GiB are available", who,
                                bytes / kGib, static_cast<double>(*available) / kGib));
}

}  // namespace tessera::tools
