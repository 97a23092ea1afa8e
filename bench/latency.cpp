// What a call costs beside the arithmetic:
//   plan/…       planning a problem, from Problem to Plan
//   execute/…    a tiny problem with its plan and workspace, from call to result
//   workspace/…  planning a long problem and asking for its workspace, which the counters report

#include <cstddef>
#include <cstdint>

#include <benchmark/benchmark.h>

#include "bench/register.hpp"
#include "bench/workload.hpp"

namespace tessera::bench {
namespace {

void run_plan(benchmark::State& state, const Case& c) {
  const Workload workload(c);
  const Problem problem = workload.problem();
  while (state.KeepRunning()) benchmark::DoNotOptimize(plan(problem).workspace_size());
}

void run_execute(benchmark::State& state, const Case& c) {
  const Workload workload(c);
  const Runner runner(workload);
  runner.run();  // the first call may load kernels and start threads
  while (state.KeepRunning()) runner.run();
}

void run_workspace(benchmark::State& state, const Case& c) {
  const Workload workload(c);
  const Problem problem = workload.problem();
  std::size_t bytes = 0;
  while (state.KeepRunning()) bytes = plan(problem).workspace_size();
  state.counters["workspace_bytes"] = static_cast<double>(bytes);
  state.counters["workspace_bytes_per_thread"] = static_cast<double>(bytes) / device_info().threads;
}

}  // namespace

void register_latency() {
  constexpr Case kTiny{.dtype = DType::fp32, .head_dim = 64, .seq = 16};
  constexpr Case kTinyCausal{
      .dtype = DType::bf16, .head_dim = 128, .visible = Visible::Causal, .seq = 16};
  constexpr Case kLong{.dtype = DType::fp32, .head_dim = 64, .seq = 2048};
  constexpr Case kLongCausal{
      .dtype = DType::bf16, .head_dim = 128, .visible = Visible::Causal, .seq = 2048};
  for (const Case& c : {kTiny, kLong, kLongCausal})
    add("plan", run_plan, c, benchmark::kMicrosecond);
  for (const Case& c : {kTiny, kTinyCausal})
    add("execute", run_execute, c, benchmark::kMicrosecond);
  for (const std::int64_t seq : {2048, 16384}) {
    for (const std::int64_t head_dim : {64, 128}) {
      add("workspace", run_workspace, {.head_dim = head_dim, .seq = seq}, benchmark::kMicrosecond);
    }
  }
}

}  // namespace tessera::bench
