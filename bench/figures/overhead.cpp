// What a call costs beside arithmetic: time to plan and to launch, memory.

#include "bench/figures/figures.hpp"
#include "bench/resident.hpp"

namespace tessera::bench {
namespace {

constexpr double kMemoryGoal = 1 << 20;  // bytes a thread, workspace and arenas together
constexpr double kPlanGoal = 20, kExecuteGoal = 20;  // µs

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

}  // namespace

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

namespace {

/// Bytes of this process in memory; 0 where the system does not say.
double used_bytes() {
  release_free_memory();
  return static_cast<double>(resident_bytes().value_or(0));
}

}  // namespace

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

}  // namespace tessera::bench
