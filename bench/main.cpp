// Google Benchmark over Tessera's public API, or with --adapter PATH.so over somebody else's
// implementation behind <tessera/adapter.h>. bench/README.md says what the names mean.
//
// Times that count are real_time. Google Benchmark is left to decide the number of iterations by
// processor time, which for a host space is the same and needs no suffix in the names; forward/…
// computes its rates from its own clock.

#include <cstdio>
#include <exception>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>
#include <tessera/tessera.hpp>

#include "bench/register.hpp"

namespace {

void add_context() {
  const tessera::BuildInfo build = tessera::build_info();
  const tessera::DeviceInfo device = tessera::device_info();
  const auto add = [](const char* key, std::string_view value) {
    benchmark::AddCustomContext(key, std::string(value));
  };
  add("backend", build.backend);
  add("device", device.name);
  add("isa", device.isa);
  add("space", device.space);
  add("threads", std::to_string(device.threads));
  add("tessera_version", to_string(build.version));
  add("commit", build.commit);
  add("toolkit", build.toolkit);
  add("compiler", build.compiler);
  add("build_type", build.build_type);
  if (const auto* adapter = tessera::bench::adapter()) add("adapter", adapter->name());
}

void print_help() {
  std::fputs(
      "tessera_bench [--adapter PATH.so]\n"
      "          measures somebody else's implementation, behind <tessera/adapter.h>, in the "
      "place\n"
      "          of Tessera's. What follows is Google Benchmark's.\n\n",
      stdout);
  benchmark::PrintDefaultHelp();
}

/// Takes --adapter PATH or --adapter=PATH out of the arguments.
std::optional<std::string> take_adapter(std::vector<char*>& arguments) {
  constexpr std::string_view kFlag = "--adapter";
  std::optional<std::string> path;
  for (auto it = arguments.begin(); it != arguments.end();) {
    const std::string_view argument(*it);
    if (argument == kFlag) {
      const auto value = std::next(it);
      path = value != arguments.end() ? *value : "";
      it = arguments.erase(it, value != arguments.end() ? std::next(value) : value);
    } else if (argument.starts_with(kFlag) && argument.substr(kFlag.size()).starts_with('=')) {
      path = argument.substr(kFlag.size() + 1);
      it = arguments.erase(it);
    } else {
      ++it;
    }
  }
  if (path && path->empty())
    throw std::invalid_argument("--adapter has no value; must be --adapter=PATH.so");
  return path;
}

}  // namespace

int main(int argc, char** argv) try {
  // Several rounds of each, unless the caller says otherwise: a later flag wins.
  std::string repetitions = "--benchmark_repetitions=7", seconds = "--benchmark_min_time=0.1";
  std::vector<char*> arguments{argv[0], repetitions.data(), seconds.data()};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  const std::optional<std::string> path = take_adapter(arguments);
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);

  benchmark::Initialize(&count, arguments.data(), print_help);
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  std::optional<tessera::bench::Adapter> adapter;
  if (path) tessera::bench::set_adapter(&adapter.emplace(*path));
  add_context();
  tessera::bench::register_throughput();
  if (!adapter) {  // what else there is, is about Tessera alone
    tessera::bench::register_latency();
    tessera::bench::register_naive();
    tessera::bench::register_stack();
  }
  const bool any = benchmark::RunSpecifiedBenchmarks() > 0;
  tessera::bench::release_data();
  benchmark::Shutdown();
  return any ? 0 : 1;  // Google Benchmark has said that nothing matches
} catch (const std::exception& error) {
  std::fprintf(stderr, "tessera_bench: %s\n", error.what());
  return 1;
}
