#pragma once
/// How the command line is explained: its help, and what is wrong with one.

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tessera::tools {

/// The text of --help, in lines of 80 columns: description, usage, operands, options, those of the
/// whole command last. `name` is what is typed: "tessera check".
std::string help_text(const CLI::App& app, const std::string& name);

/// The subcommand that was given; empty if none was understood.
std::string subcommand_of(const CLI::App& app);

/// What is wrong with the command line that `app` refused with `error`, and which help to look at.
/// Words that mean nothing come first: whatever else is wrong may follow from them.
std::string complaint(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tessera::tools
