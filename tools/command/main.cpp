/// The `tessera` command: attention on files, checked and timed.
///
/// Exit status: 0 fine; 1 a check failed; 2 bad input or usage; 3 this build or device cannot do
/// it. What went wrong is one line on stderr. With --json, stdout of a
/// subcommand holds one JSON document and nothing else, whatever happens; --help and --version
/// print text.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <tessera/error.hpp>
#include <tessera/info.hpp>

#include "tools/command/subcommands.hpp"
#include "tools/command/usage.hpp"
#include "tools/io/error.hpp"
#include "tools/io/signals.hpp"

namespace {

using namespace tessera;
using namespace tessera::tools;

/// What the command line says.
struct Request {
  bool json = false;
  std::optional<std::int64_t> threads{};
  AttentionFlags attention{};
  std::optional<std::string> output{};
  BenchFlags bench{};
};

/// Before anything starts threads: the runtimes read these variables once.
void set_threads(std::int64_t threads) {
  const std::string text = fmt::format("{}", threads);
  ::setenv("OMP_NUM_THREADS", text.c_str(), 1);
  ::setenv("KOKKOS_NUM_THREADS", text.c_str(), 1);
}

void print(std::string_view text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) throw BadInput("standard output cannot be written");
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

int fail(const Request& request, std::string_view command, const std::string& what, Status status) {
  const std::string text = one_line(what);
  // If that cannot be written either, the status still tells. (fmt::print would throw.)
  std::fputs(fmt::format("tessera: {}\n", text).c_str(), stderr);
  if (request.json) {
    try {
      print(to_text(failure_json(command, text, status)));
    } catch (const BadInput&) {  // said already that something is wrong
    }
  }
  return static_cast<int>(status);
}

CLI::Option* add_output(CLI::App& app, Request& request, const std::string& help) {
  return app
      .add_option_function<std::string>(
          "-o,--output", [&](const std::string& file) { request.output = file; }, help)
      ->type_name("OUT");
}

void define(CLI::App& app, Request& request) {
  app.description(
      "Exact attention, computed tile by tile: on tensors from files, checked and timed.");
  app.set_version_flag(
      "--version", [] { return "tessera " + to_string(library_version()); }, "Print the version");
  app.set_help_flag("-h,--help", "Print this text");
  app.formatter_fn([](const CLI::App* shown, const std::string& name, CLI::AppFormatMode) {
    return help_text(*shown, name);
  });
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("--json", request.json,
               "Print one JSON document instead of text; --help and --version stay text");
  add_threads_flag(app, request.threads);
  app.footer(
      "Exit status: 0 fine, 1 a check failed, 2 bad input or usage, 3 this build or device cannot "
      "do it.");

  app.add_subcommand("info", "What this build is, and what it runs on");
  CLI::App* run =
      app.add_subcommand("run",
                         "Compute attention on a file's tensors and write out, and lse, the "
                         "logarithm of each row's sum of exp(score)");
  add_attention_flags(*run, request.attention);
  add_output(*run, request,
             "The file to write: X.safetensors (out and lse), or X.npy (out; lse goes to "
             "X.lse.npy). It appears complete or not at all")
      ->required();
  CLI::App* check = app.add_subcommand(
      "check",
      "Compute attention on a file's tensors and compare it with a float64 reference, and with "
      "out_full and lse_full (--mask causal: out_causal and lse_causal) where the file has them");
  add_attention_flags(*check, request.attention);
  CLI::App* bench = app.add_subcommand(
      "bench", "Time attention on random tensors, and a naive computation beside it");
  add_bench_flags(*bench, request.bench);
  add_output(*bench, request, "Write what --json prints to this file too: X.json");
}

Report answer(const std::string& command, const Request& request) {
  if (request.threads) set_threads(*request.threads);
  if (command == "info") return info();
  if (command == "run") return run(request.attention, request.output.value_or(""));
  if (command == "check") return check(request.attention);
  return bench(request.bench, request.output);
}

/// --help and --version.
int explain(const CLI::App& app, const CLI::Success& success, const Request& request) {
  std::ostringstream text;  // what is printed to std::cout may be lost unseen
  const int status = app.exit(success, text, text);
  try {
    print(text.str());
  } catch (const BadInput& error) {
    return fail(request, subcommand_of(app), error.what(), Status::BadInput);
  }
  return status;
}

int run_command(const std::string& command, const Request& request) {
  try {
    const Report report = answer(command, request);
    print(request.json ? to_text(report.json) : report.text);
    return static_cast<int>(report.status);
  } catch (const BadInput& error) {
    return fail(request, command, error.what(), Status::BadInput);
  } catch (const io::FileError& error) {
    return fail(request, command, error.what(), Status::BadInput);
  } catch (const InvalidArgument& error) {
    return fail(request, command, error.what(), Status::BadInput);
  } catch (const std::bad_alloc&) {
    return fail(request, command, "not enough memory", Status::CannotDoIt);
  } catch (const std::exception& error) {  // Unsupported, DeviceError
    return fail(request, command, error.what(), Status::CannotDoIt);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CLI::App app;
  std::string command;
  io::handle_signals();
  try {
    app.name("tessera");
    define(app, request);
    app.parse(argc, argv);
    command = app.get_subcommands().front()->get_name();
  } catch (const CLI::Success& success) {  // --help, --version
    return explain(app, success, request);
  } catch (const CLI::ParseError& error) {
    // The parser may have stopped before it came to --json.
    for (int i = 1; i < argc; ++i)
      request.json = request.json || std::string_view(argv[i]) == "--json";
    return fail(request, subcommand_of(app), complaint(app, error), Status::BadInput);
  }
  return run_command(command, request);
}
