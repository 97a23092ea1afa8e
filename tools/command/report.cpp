#include "tools/command/report.hpp"

#include <fmt/format.h>

namespace tessera::tools {

void Report::line(std::string_view name, std::string_view value) {
  text += fmt::format("{:<10} {}\n", name, value);
}

std::string counted(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Json failure_json(std::string_view command, std::string_view message, Status status) {
  Json json;
  json["command"] = command;
  json["error"] = message;
  json["exit_status"] = static_cast<int>(status);
  return json;
}

std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tessera::tools
