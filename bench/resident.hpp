#pragma once
/// How much memory this process has.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace tessera::bench {

/// A line "Name:   123 kB" of a file in /proc, in bytes; nullopt where there is none.
inline std::optional<std::int64_t> bytes_in_proc(const char* path, std::string_view name) {
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

/// Bytes resident now; nullopt where the system does not say.
inline std::optional<std::int64_t> resident_bytes() {
  return bytes_in_proc("/proc/self/status", "VmRSS:");
}

/// Gives what has been freed back to the system, so that it is not counted: new memory taken from
/// it would not show.
inline void release_free_memory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace tessera::bench
