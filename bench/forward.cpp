// <forward|backward|decode>/<dtype>/d<head_dim>/<full|causal|window>/s<seq>[/<extra>]: throughput
// at batch·heads 8.

#include <chrono>
#include <cstdint>
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
std::int64_t cached_batch = 0;  // 0: not measured yet

const Workload& workload_of(const Case& c) {
  if (cached_name != full_name_of(c)) {
    release_data();  // before the new data comes
    cached = std::make_unique<const Workload>(c);
    cached_name = full_name_of(c);
    cached_batch = 0;
  }
  return *cached;
}

// Calls between two synchronisations: a device that works asynchronously is kept busy for 2 ms,
// where the launches of a host space return when done anyway. The same for all repetitions: Google
// Benchmark wants as many iterations of each, and they come in whole batches.
std::int64_t batch_of(const Runner& runner) {
  runner.run();
  if (cached_batch > 0) return cached_batch;
  const auto begin = Clock::now();
  runner.run();
  constexpr double kBusy = 2e-3;
  cached_batch = 1 + static_cast<std::int64_t>(kBusy / seconds_since(begin));
  return cached_batch;
}

}  // namespace

void run_throughput(benchmark::State& state, const Case& c) {
  const DeviceInfo device = device_info();
  const Runner runner(workload_of(c), adapter());
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
  if (c.operation == Operation::decode) {  // which memory bounds, not arithmetic
    state.counters["kv_bytes_per_second"] = bytes_of(c) / per_call;
  } else {
    state.counters["flops_per_second"] = flops_of(c) / per_call;
    if (peak > 0) state.counters["peak_fraction"] = flops_of(c) / per_call / peak;
  }
  state.SetLabel(std::string(runner.kernel()));
}

namespace {

std::vector<Case> forward_cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    for (const Visible visible : {Visible::Full, Visible::Causal}) {
      for (const std::int64_t head_dim : {64, 128}) {
        for (const std::int64_t seq : {512, 2048, 4096}) {
          all.push_back({.dtype = dtype, .head_dim = head_dim, .visible = visible, .seq = seq});
        }
      }
      all.push_back({.dtype = dtype, .head_dim = 256, .visible = visible, .seq = 2048});
    }
  }
  all.push_back({.dtype = DType::bf16, .head_dim = 128, .visible = Visible::Window, .seq = 4096});
  for (const Extra extra :
       {Extra::Gqa4, Extra::Softcap, Extra::Alibi, Extra::Bias, Extra::Dropout}) {
    all.push_back({.dtype = DType::bf16,
                   .head_dim = 128,
                   .visible = Visible::Causal,
                   .seq = 2048,
                   .extra = extra});
  }
  return all;
}

std::vector<Case> backward_cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    for (const Visible visible : {Visible::Full, Visible::Causal}) {
      for (const std::int64_t head_dim : {64, 128}) {
        all.push_back({.dtype = dtype,
                       .head_dim = head_dim,
                       .visible = visible,
                       .seq = 2048,
                       .operation = Operation::backward});
      }
    }
  }
  all.push_back({.dtype = DType::bf16,
                 .head_dim = 128,
                 .visible = Visible::Causal,
                 .seq = 2048,
                 .extra = Extra::Gqa4,
                 .operation = Operation::backward});
  return all;
}

std::vector<Case> decode_cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    for (const std::int64_t seq : {2048, 16384}) {
      for (const Extra extra : {Extra::None, Extra::Gqa4}) {
        all.push_back({.dtype = dtype,
                       .head_dim = 128,
                       .visible = Visible::Causal,
                       .seq = seq,
                       .extra = extra,
                       .operation = Operation::decode});
      }
    }
  }
  return all;
}

}  // namespace

void release_data() noexcept {
  cached.reset();
  cached_name.clear();
}

void register_throughput() {
  for (const auto& cases : {forward_cases(), backward_cases(), decode_cases(), preset_cases()}) {
    for (const Case& c : cases)
      add(to_string(c.operation), run_throughput, c, benchmark::kMillisecond);
  }
}

}  // namespace tessera::bench
