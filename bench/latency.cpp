// What a call costs beside the arithmetic:
//   plan/…       planning a problem, from Problem to Plan
//   execute/…    a tiny problem with its plan and workspace, from call to result
//   workspace/…  planning a long problem and asking for its workspace, which the counters report

#include <exception>

#include <benchmark/benchmark.h>

#include "bench/register.hpp"
#include "bench/workload.hpp"

namespace tessera::bench {
namespace {

void run_plan(benchmark::State& state, const Case& c) try {
  const Workload workload(c);
  const Problem problem = workload.problem();
  for (auto _ : state) benchmark::DoNotOptimize(plan(problem).workspace_size());
} catch (const std::exception& error) {
  state.SkipWithError(error.what());
}

void run_execute(benchmark::State& state, const Case& c) try {
  const Workload workload(c);
  const Runner runner(workload);
  runner.run();  // the first call may load kernels and start threads
  for (auto _ : state) runner.run();
} catch (const std::exception& error) {
  state.SkipWithError(error.what());
}

void run_workspace(benchmark::State& state, const Case& c) try {
  const Workload workload(c);
  const Problem problem = workload.problem();
  std::size_t bytes = 0;
  for (auto _ : state) bytes = plan(problem).workspace_size();
  state.counters["workspace_bytes"] = static_cast<double>(bytes);
  state.counters["workspace_bytes_per_thread"] = static_cast<double>(bytes) / device_info().threads;
} catch (const std::exception& error) {
  state.SkipWithError(error.what());
}

using Function = void (*)(benchmark::State&, const Case&);

void add(const char* kind, Function function, const Case& c) {
  benchmark::RegisterBenchmark((kind + name_of(c)).c_str(), function, c)
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

void register_latency() {
  constexpr Case kTiny{DType::fp32, 64, Visible::Full, 16, Extra::None};
  constexpr Case kTinyCausal{DType::bf16, 128, Visible::Causal, 16, Extra::None};
  constexpr Case kLong{DType::fp32, 64, Visible::Full, 2048, Extra::None};
  constexpr Case kLongCausal{DType::bf16, 128, Visible::Causal, 2048, Extra::None};
  for (const Case& c : {kTiny, kLong, kLongCausal}) add("plan/", run_plan, c);
  for (const Case& c : {kTiny, kTinyCausal}) add("execute/", run_execute, c);
  for (const std::int64_t seq : {2048, 16384}) {
    for (const std::int64_t head_dim : {64, 128}) {
      add("workspace/", run_workspace, {DType::fp32, head_dim, Visible::Full, seq, Extra::None});
    }
  }
}

}  // namespace tessera::bench
