// forward/<dtype>/d<head_dim>/<full|causal|window>/s<seq>[/<extra>]: throughput at batch·heads 8.

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/peak.hpp"
#include "bench/register.hpp"
#include "bench/workload.hpp"

namespace tessera::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Repetitions of one benchmark follow one another and share its data.
std::unique_ptr<const Workload> cached;
std::string cached_name;

const Workload& workload_of(const Case& c) {
  if (cached_name != name_of(c)) {
    release_data();  // before the new data comes
    cached = std::make_unique<const Workload>(c);
    cached_name = name_of(c);
  }
  return *cached;
}

// Calls between two synchronisations: a device that works asynchronously is kept busy for 2 ms,
// where the launches of a host space return when done anyway.
std::int64_t batch_of(const Runner& runner) {
  runner.run();
  const auto begin = Clock::now();
  runner.run();
  constexpr double kBusy = 2e-3;
  return 1 + static_cast<std::int64_t>(kBusy / seconds_since(begin));
}

void run_forward(benchmark::State& state, const Case& c) try {
  const DeviceInfo device = device_info();
  const Runner runner(workload_of(c));
  const double peak = has_peak(device.isa) ? measure_peak(device.isa, device.threads) : 0;
  const std::int64_t batch =
      batch_of(runner);  // also wakes the threads that slept while the peak was measured

  const auto begin = Clock::now();
  while (state.KeepRunningBatch(batch)) {
    for (std::int64_t i = 0; i < batch; ++i) runner.queue();
    Stream{}.synchronize();
  }
  const double per_call = seconds_since(begin) / static_cast<double>(state.iterations());

  state.counters["flops"] = flops_of(c);
  state.counters["bytes"] = bytes_of(c);
  state.counters["flops_per_second"] = flops_of(c) / per_call;
  if (peak > 0) state.counters["peak_fraction"] = flops_of(c) / per_call / peak;
  state.SetLabel(std::string(runner.plan().kernel()));
} catch (const std::exception& error) {
  state.SkipWithError(error.what());
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    for (const std::int64_t head_dim : {64, 128}) {
      for (const Visible visible : {Visible::Full, Visible::Causal}) {
        for (const std::int64_t seq : {512, 2048, 4096})
          all.push_back({dtype, head_dim, visible, seq, Extra::None});
      }
    }
    all.push_back({dtype, 256, Visible::Full, 2048, Extra::None});
    all.push_back({dtype, 256, Visible::Causal, 2048, Extra::None});
  }
  all.push_back({DType::bf16, 128, Visible::Window, 4096, Extra::None});
  for (const Extra extra :
       {Extra::Gqa4, Extra::Softcap, Extra::Alibi, Extra::Bias, Extra::Dropout}) {
    all.push_back({DType::bf16, 128, Visible::Causal, 2048, extra});
  }
  return all;
}

}  // namespace

void release_data() noexcept {
  cached.reset();
  cached_name.clear();
}

void register_forward() {
  for (const Case& c : cases()) {
    benchmark::RegisterBenchmark(("forward/" + name_of(c)).c_str(), run_forward, c)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace tessera::bench
