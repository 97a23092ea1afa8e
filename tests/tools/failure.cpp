#include "tests/tools/failure.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/command.hpp"

namespace tessera::testing {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string subcommand_in(const Words& arguments) {
  const auto found = std::ranges::find_first_of(arguments, kSubcommands);
  return found == arguments.end() ? "" : *found;
}

void expect_failure(const Words& arguments, int status, const std::string& message) {
  SCOPED_TRACE(::testing::PrintToString(arguments));
  const Outcome plain = run_tessera(arguments);
  EXPECT_EQ(plain.status, status);
  EXPECT_EQ(plain.out, "");
  EXPECT_THAT(plain.error, StartsWith("tessera: "));
  EXPECT_THAT(plain.error, HasSubstr(message));
  EXPECT_EQ(std::count(plain.error.begin(), plain.error.end(), '\n'), 1) << plain.error;
  EXPECT_THAT(plain.error, EndsWith("\n"));

  Words with_json{"--json"};  // in front: what lacks a value at the end would take it
  with_json.insert(with_json.end(), arguments.begin(), arguments.end());
  const Outcome json = run_tessera(with_json);
  EXPECT_EQ(json.status, status);
  // Two runs may differ in their figures (how much memory is available), one may not with itself.
  const std::string in_json = json.json().value("error", "");
  EXPECT_EQ(json.error, "tessera: " + in_json + "\n");
  EXPECT_EQ(json.json().value("exit_status", -1), status);
  EXPECT_THAT(in_json, HasSubstr(message));
  EXPECT_EQ(json.json().value("command", "none"), subcommand_in(arguments));
}

}  // namespace tessera::testing
