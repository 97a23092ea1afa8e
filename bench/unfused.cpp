// naive/<dtype>/d<head_dim>/<full|causal>/s<seq>: attention that stores the score matrix, for
// scale.

#include <cstdint>

#include <benchmark/benchmark.h>

#include "bench/naive.hpp"
#include "bench/peak.hpp"
#include "bench/register.hpp"
#include "bench/workload.hpp"

namespace tessera::bench {
namespace {

void run_naive(benchmark::State& state, const Case& c) {
  const int threads = device_info().threads;
  const Workload workload(c);
  while (state.KeepRunning()) naive_forward(workload.args(), workload.options(), threads);
  state.counters["flops"] = flops_of(c);
  state.counters["bytes"] = bytes_of(c);
}

}  // namespace

void register_naive() {
  if (!has_peak(device_info().isa)) return;  // it computes on the host: the data must lie there
  for (const Visible visible : {Visible::Full, Visible::Causal}) {
    for (const std::int64_t seq : {512, 2048}) {
      add("naive", run_naive, {.head_dim = 64, .visible = visible, .seq = seq},
          benchmark::kMillisecond);
    }
  }
}

}  // namespace tessera::bench
