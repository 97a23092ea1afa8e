// Measures the figures that the project holds itself to, against the peak measured in the same
// rounds, and writes them as JSON.
//
//   tessera_figures OUT.json [ROUNDS]
//
// A round measures, one after another, the peak and a case, for every case: so both see the same
// clock and neighbours. A figure is the median of the rounds. Exit status 0; 1 if a goal is missed;
// 2 for wrong use or a failure.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <tessera/tessera.hpp>

#include "bench/peak.hpp"
#include "bench/resident.hpp"
#include "bench/workload.hpp"

namespace tessera::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr int kDefaultRounds = 15;
constexpr double kFullGoal = 0.75, kCausalGoal = 0.70;  // of the peak
constexpr double kMemoryGoal = 1 << 20;  // bytes a thread, workspace and arenas together
constexpr double kPlanGoal = 20, kExecuteGoal = 20;  // µs

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Seconds a call of `function`, over at least `least` seconds and three calls.
template <class Function>
double seconds_of(const Function& function, double least) {
  const auto begin = Clock::now();
  std::int64_t calls = 0;
  double elapsed = 0;
  while (calls < 3 || elapsed < least) {
    function();
    ++calls;
    elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return elapsed / static_cast<double>(calls);
}

struct Cell {
  Case c;
  double goal;
  Workload workload{c};
  Runner runner{workload};
  std::vector<double> seconds{}, peak{}, fraction{};
};

Json forward_figures(int rounds) {
  const DeviceInfo device = device_info();
  if (!has_peak(device.isa))
    throw std::runtime_error("no peak is known for instruction set " + device.isa);
  std::vector<std::unique_ptr<Cell>> cells;
  for (const std::int64_t head_dim : {64, 128}) {
    for (const Visible visible : {Visible::Full, Visible::Causal}) {
      const Case c{.head_dim = head_dim, .visible = visible, .seq = 2048};
      cells.push_back(
          std::make_unique<Cell>(c, visible == Visible::Full ? kFullGoal : kCausalGoal));
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (const auto& cell : cells) {
      cell->peak.push_back(measure_peak(device.isa, device.threads));
      cell->runner.run();  // wakes the threads that slept meanwhile
      cell->seconds.push_back(seconds_of([&] { cell->runner.run(); }, 0.2));
      cell->fraction.push_back(flops_of(cell->c) / cell->seconds.back() / cell->peak.back());
    }
  }
  Json figures = Json::array();
  for (const auto& cell : cells) {
    const double seconds = median(cell->seconds), fraction = median(cell->fraction);
    const auto [low, high] = std::minmax_element(cell->fraction.begin(), cell->fraction.end());
    figures.push_back({{"name", "forward/" + name_of(cell->c)},
                       {"kernel", cell->runner.kernel()},
                       {"milliseconds", seconds * 1e3},
                       {"gflops_per_second", flops_of(cell->c) / seconds / 1e9},
                       {"peak_gflops_per_second", median(cell->peak) / 1e9},
                       {"peak_fraction", fraction},
                       {"peak_fraction_lowest", *low},
                       {"peak_fraction_highest", *high},
                       {"goal", cell->goal},
                       {"met", fraction >= cell->goal}});
  }
  return figures;
}

/// Median over rounds of the microseconds a call takes.
template <class Function>
Json latency_figure(const std::string& name, int rounds, double goal, const Function& function) {
  std::vector<double> microseconds;
  microseconds.reserve(static_cast<std::size_t>(rounds));
  for (int round = 0; round < rounds; ++round)
    microseconds.push_back(1e6 * seconds_of(function, 0.02));
  const double figure = median(microseconds);
  return {{"name", name}, {"microseconds", figure}, {"goal", goal}, {"met", figure < goal}};
}

Json latency_figures(int rounds) {
  Json figures = Json::array();
  const Case tiny{.head_dim = 64, .seq = 16};
  for (const Case& c : {tiny, Case{.head_dim = 128, .visible = Visible::Causal, .seq = 2048}}) {
    const Workload workload(c);
    const Problem problem = workload.problem();
    figures.push_back(latency_figure("plan/" + name_of(c), rounds, kPlanGoal,
                                     [&] { static_cast<void>(plan(problem)); }));
  }
  const Workload workload(tiny);
  const Runner runner(workload);
  runner.run();
  figures.push_back(
      latency_figure("execute/" + name_of(tiny), rounds, kExecuteGoal, [&] { runner.run(); }));
  return figures;
}

/// Bytes of this process in memory; 0 where the system does not say.
double used_bytes() {
  release_free_memory();
  return static_cast<double>(resident_bytes().value_or(0));
}

/// Workspace as the plan states it, and how much the process grows when execute brings its own
/// memory: arenas, stacks, whatever there is. The first case also carries what the parallel runtime
/// needs to start.
Json memory_figures() {
  const double threads = device_info().threads;
  Json figures = Json::array();
  for (const std::int64_t seq : {2048, 8192}) {
    for (const std::int64_t head_dim : {64, 128}) {
      const Case c{.head_dim = head_dim, .seq = seq};
      const Workload workload(c);
      const Plan planned = plan(workload.problem());
      const double before = used_bytes();
      execute(planned, workload.args());
      Stream{}.synchronize();
      const double grown = std::max(0.0, used_bytes() - before);
      const double each = std::max(static_cast<double>(planned.workspace_size()), grown) / threads;
      figures.push_back({{"name", "workspace/" + name_of(c)},
                         {"workspace_bytes", planned.workspace_size()},
                         {"process_growth_bytes", static_cast<std::int64_t>(grown)},
                         {"bytes_per_thread", static_cast<std::int64_t>(each)},
                         {"goal", static_cast<std::int64_t>(kMemoryGoal)},
                         {"met", each <= kMemoryGoal}});
    }
  }
  return figures;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

Json machine() {
  const DeviceInfo device = device_info();
  double load[1] = {-1};
  static_cast<void>(getloadavg(load, 1));
  return {{"device", device.name},     {"isa", device.isa},       {"space", device.space},
          {"threads", device.threads}, {"memory", device.memory}, {"load_average", load[0]}};
}

Json build() {
  const BuildInfo info = build_info();
  const Version& v = info.version;
  return {{"tessera_version", to_string(v)}, {"commit", info.commit},
          {"backend", info.backend},         {"toolkit", info.toolkit},
          {"compiler", info.compiler},       {"build_type", info.build_type}};
}

bool all_met(const Json& figures) {
  return std::ranges::all_of(figures, [](const Json& figure) { return figure["met"].get<bool>(); });
}

int measure(const char* path, int rounds) {
  Json report{{"date", now_utc()}, {"machine", machine()}, {"build", build()}, {"rounds", rounds}};
  report["batch_heads"] = kHeads;
  report["memory"] = memory_figures();  // first: later, the arenas are there already
  report["forward"] = forward_figures(rounds);
  report["latency"] = latency_figures(rounds);
  const std::string text = report.dump(2) + '\n';
  std::ofstream file(path);
  if (!(file << text).flush()) throw std::runtime_error(std::string(path) + ": cannot be written");
  std::cout << text;
  return all_met(report["memory"]) && all_met(report["forward"]) && all_met(report["latency"]) ? 0
                                                                                               : 1;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) try {
  const int rounds = argc == 3 ? std::atoi(argv[2]) : tessera::bench::kDefaultRounds;
  if (argc < 2 || argc > 3 || rounds < 1) {
    std::fprintf(stderr, "usage: tessera_figures OUT.json [ROUNDS]\n");
    return 2;
  }
  return tessera::bench::measure(argv[1], rounds);
} catch (const std::exception& error) {
  std::fprintf(stderr, "tessera_figures: %s\n", error.what());
  return 2;
}
