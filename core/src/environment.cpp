#include "core/src/environment.hpp"

#include <cstdlib>
#include <string>

#include "core/src/text.hpp"

namespace tessera::detail {
namespace {

std::string_view read(const char* name) noexcept {
  const char* value = std::getenv(name);
  return value != nullptr ? value : std::string_view{};
}

bool is_on(const char* name) noexcept {
  const std::string_view value = read(name);
  return !value.empty() && value != "0";
}

}  // namespace

bool is_called(std::string_view kernel, std::string_view wanted) {
  return concat(".", kernel, ".").find(concat(".", wanted, ".")) != std::string::npos;
}

std::string_view forced_kernel() noexcept { return read("TESSERA_KERNEL"); }
bool check_values() noexcept { return is_on("TESSERA_CHECK_VALUES"); }
bool sync_launches() noexcept { return is_on("TESSERA_SYNC_LAUNCHES"); }

}  // namespace tessera::detail
