#include "tools/command/memory.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <tessera/error.hpp>

namespace tessera::tools {
namespace {

/// A line "Name:   123 kB" of a file in /proc, in bytes.
std::optional<std::int64_t> line_of(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!std::string_view(line).starts_with(name)) continue;
    const std::size_t digits = line.find_first_of("0123456789");
    std::int64_t kib = 0;
    if (digits == std::string::npos) return std::nullopt;
    std::from_chars(line.data() + digits, line.data() + line.size(), kib);
    return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> resident_bytes() { return line_of("/proc/self/status", "VmRSS:"); }
std::optional<std::int64_t> peak_resident_bytes() { return line_of("/proc/self/status", "VmHWM:"); }

bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5\n" << std::flush;  // 5: reset the peak resident set size (proc(5))
  return file.good();
}

void require_memory(std::string_view who, double bytes) {
  const std::optional<std::int64_t> available = line_of("/proc/meminfo", "MemAvailable:");
  if (!available || bytes <= static_cast<double>(*available)) return;
  constexpr double kGib = 1 << 30;
  throw Unsupported(fmt::format("{}: needs {:.1f} GiB of memory; {:.1f} GiB are available", who,
                                bytes / kGib, static_cast<double>(*available) / kGib));
}

void release_free_memory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace tessera::tools
