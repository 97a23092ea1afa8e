#pragma once
/// Runs the `tessera` command as a program: its output, its exit status, and that it ends.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tessera::testing {

struct Outcome {
  int status = -1;  ///< exit status; 128 + signal if it was killed
  bool timed_out = false;
  std::string out{};
  std::string error{};  ///< stderr; with Terminal::Yes, what the terminal would have shown

  /// stdout as the one JSON document that it must be.
  nlohmann::json json() const;
};

/// Whether stderr is a terminal.
enum class Terminal { No, Yes };

/// What a run of the command is subject to.
struct Surroundings {
  std::map<std::string, std::string> variables{};  ///< added to the environment
  Terminal terminal = Terminal::No;
  std::optional<std::size_t> longest_file{};  ///< bytes, as by ulimit -f
  /// Called now and then while the command runs; the signal that it returns is sent.
  std::function<std::optional<int>()> interrupt{};
  std::string standard_output{};  ///< the file that stdout is, instead of Outcome::out
  std::string standard_error{};   ///< the same of stderr
};

/// Runs `tessera ARGUMENTS...` for at most a minute (more where instrumented).
Outcome run_tessera_in(const Surroundings& surroundings, const std::vector<std::string>& arguments);
Outcome run_tessera(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& variables = {},
                    Terminal terminal = Terminal::No);

/// A file of examples/data.
std::string example(const std::string& name);

/// The file's `tensor` as raw bytes.
std::string tensor_bytes(const std::string& file, const std::string& tensor);

}  // namespace tessera::testing
