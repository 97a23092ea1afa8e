#pragma once
/// What a subcommand answers, for people and for programs.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tools/command/failure.hpp"

namespace tessera::tools {

using Json = nlohmann::ordered_json;

struct Report {
  Status status = Status::Fine;
  std::string text{};  ///< complete lines
  Json json{};

  /// "name      value", the values of all lines below one another.
  void line(std::string_view name, std::string_view value);
};

/// "1 thread", "2 threads".
std::string counted(std::int64_t count, std::string_view what);

/// The document for a call that failed.
Json failure_json(std::string_view command, std::string_view message, Status status);

/// One document; text that is not UTF-8 is replaced.
std::string to_text(const Json& json);

}  // namespace tessera::tools
