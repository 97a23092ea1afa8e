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

bool is_on(const char* name) {
  const std::string_view value = read(name);
  if (value == "1") return true;
  if (!value.empty() && value != "0") refuse(name, value, "must be 1, or 0 or absent to be off");
  return false;
}

}  // namespace

bool is_called(std::string_view kernel, std::string_view wanted) {
  return concat(".", kernel, ".").find(concat(".", wanted, ".")) != std::string::npos;
}

std::string_view forced_kernel() noexcept { return read("TESSERA_KERNEL"); }
bool check_values() { return is_on("TESSERA_CHECK_VALUES"); }
bool sync_launches() { return is_on("TESSERA_SYNC_LAUNCHES"); }

}  // namespace tessera::detail
