// stack/fp32/d64/<full|causal>/s2048/<both|lse|nothing>: forward and backward of 12 attention
// calls, one after another as in a network of 12 layers, for each choice of what backward is given:
// out and lse, lse alone, or nothing. kept_bytes is what lies between forward and backward beyond
// every layer's q, k and v.

#include <string_view>

#include <benchmark/benchmark.h>

#include "bench/layers.hpp"
#include "bench/register.hpp"
#include "bench/workload.hpp"

namespace tessera::bench {
namespace {

template <Kept kept>
void run_stack(benchmark::State& state, const Case& c) {
  Stack stack(c, kept);
  stack.run();
  while (state.KeepRunning()) stack.run();
  state.counters["flops"] = kLayers * 3.5 * flops_of(c);
  state.counters["kept_bytes"] = static_cast<double>(stack.kept_bytes());
}

}  // namespace

void register_stack() {
  for (const Visible visible : {Visible::Full, Visible::Causal}) {
    Case c{.head_dim = 64, .visible = visible, .seq = 2048};
    const auto add_one = [&](auto function, std::string_view name) {
      c.note = name;
      add("stack", function, c, benchmark::kMillisecond);
    };
    add_one(run_stack<Kept::Both>, "both");
    add_one(run_stack<Kept::Lse>, "lse");
    add_one(run_stack<Kept::Nothing>, "nothing");
  }
}

}  // namespace tessera::bench
