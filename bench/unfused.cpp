// naive/<dtype>/d<head_dim>/<full|causal>/s<seq>: attention that stores the score matrix, for
// scale: from a BLAS where the build found one (examples/blas_adapter.c), else from plain loops.

#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include "bench/naive.hpp"
#include "bench/peak.hpp"
#include "bench/register.hpp"
#include "bench/workload.hpp"

namespace tessera::bench {
namespace {

void count(benchmark::State& state, const Case& c, const std::string& label) {
  state.counters["flops"] = flops_of(c);
  state.counters["bytes"] = bytes_of(c);
  state.SetLabel(label);
}

void run_loops(benchmark::State& state, const Case& c) {
  const int threads = device_info().threads;
  const Workload workload(c);
  while (state.KeepRunning()) naive_forward(workload.args(), workload.options(), threads);
  count(state, c, "loops");
}

#ifdef TESSERA_BLAS_ADAPTER
void run_blas(benchmark::State& state, const Case& c) {
  static const Adapter blas(TESSERA_BLAS_ADAPTER);
  const Workload workload(c);
  const Runner runner(workload, &blas);
  runner.run();
  while (state.KeepRunning()) runner.run();
  count(state, c, blas.name());
}
constexpr auto kRun = run_blas;
#else
constexpr auto kRun = run_loops;
#endif

}  // namespace

void register_naive() {
  if (!has_peak(device_info().isa)) return;  // it computes on the host: the data must lie there
  static_cast<void>(run_loops);
  for (const Visible visible : {Visible::Full, Visible::Causal}) {
    for (const std::int64_t seq : {512, 2048}) {
      add("naive", kRun, {.head_dim = 64, .visible = visible, .seq = seq}, benchmark::kMillisecond);
    }
  }
}

}  // namespace tessera::bench
