#include "backends/kokkos/settings.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <tessera/error.hpp>

#if defined(KOKKOS_ENABLE_OPENMP)
#include <omp.h>
#endif

namespace tessera::kokkos {
namespace {

// Kokkos' OpenMP space crashes above so many threads (5.2).
[[maybe_unused]] constexpr int kMostThreads = 512;

std::optional<std::string_view> variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? std::optional<std::string_view>(value) : std::nullopt;
}

[[noreturn]] void refuse(const char* name, std::string_view value, const std::string& allowed) {
  throw DeviceError("the environment variable " + std::string(name) + " is '" + std::string(value) +
                    "'; must be " + allowed);
}

std::optional<int> number(const char* name, int least) {
  const auto text = variable(name);
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size() || value < least)
    refuse(name, *text, "a whole number, at least " + std::to_string(least));
  return value;
}

void check_word(const char* name, std::initializer_list<std::string_view> allowed) {
  const auto text = variable(name);
  if (!text || std::ranges::find(allowed, *text) != allowed.end()) return;
  std::string list;
  for (const std::string_view word : allowed)
    list += (list.empty() ? "" : word == *(allowed.end() - 1) ? " or " : ", ") + std::string(word);
  refuse(name, *text, list);
}

}  // namespace

Kokkos::InitializationSettings settings() {
  for (const char* const name :
       {"KOKKOS_DISABLE_WARNINGS", "KOKKOS_PRINT_CONFIGURATION", "KOKKOS_TUNE_INTERNALS"})
    check_word(name, {"0", "1", "false", "no", "true", "yes"});
  check_word("KOKKOS_MAP_DEVICE_ID_BY", {"mpi_rank", "random"});
  static_cast<void>(number("KOKKOS_DEVICE_ID", 0));
  [[maybe_unused]] const std::optional<int> asked = number("KOKKOS_NUM_THREADS", 1);

  Kokkos::InitializationSettings result;
  result.set_disable_warnings(true);
#if defined(KOKKOS_ENABLE_OPENMP)
  if (asked.value_or(omp_get_max_threads()) > kMostThreads) result.set_num_threads(kMostThreads);
  // Kokkos counts them by starting all of them: more than there is memory for end the process.
  if (omp_get_max_threads() > kMostThreads) omp_set_num_threads(kMostThreads);
#endif
  return result;
}

}  // namespace tessera::kokkos
