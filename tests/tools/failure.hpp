#pragma once
/// What a failure of the command looks like.

#include <string>
#include <vector>

namespace tessera::testing {

using Words = std::vector<std::string>;

inline constexpr const char* kSubcommands[] = {"info", "run", "check", "bench"};

/// The first word that is one; empty if none is.
std::string subcommand_in(const Words& arguments);

/// Fails as it should: `status`, nothing on stdout, one line on stderr that says `message`; with
/// --json the same in a document on stdout, which names the subcommand too.
void expect_failure(const Words& arguments, int status, const std::string& message);

}  // namespace tessera::testing
