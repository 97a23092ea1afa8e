#include "bench/peak.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Chains in flight: more than latency (4 or 5 cycles) times units (2) of today's processors, fewer
// than registers (16).
constexpr int kChains = 12;
// Steps of every chain in a slice: about a millisecond at 2 units and 3 GHz.
constexpr std::int64_t kSteps = 400'000;
constexpr int kWarmUp = 5;   // slices: clocks rise, vector units wake
constexpr int kSlices = 17;  // slices that count
// A parallel runtime's threads spin for some time after its last task (libgomp: 300,000 pauses, 15
// ms here) and would compete with ours.
constexpr std::chrono::milliseconds kSpinning{25};

// Each chain is x <- x·factor + term, which tends to a number near 1: no denormal, no overflow.
constexpr float kFactor = 0.5F;
constexpr float kTerm = 0.5F;

struct Chains {
  int width;                            // floats a register
  float (*run)(std::int64_t) noexcept;  // the value only keeps the compiler from dropping the work
};

#if defined(__x86_64__)
[[gnu::target("avx512f"), gnu::noinline]] float run_avx512(std::int64_t steps) noexcept {
  const __m512 factor = _mm512_set1_ps(kFactor), term = _mm512_set1_ps(kTerm);
  __m512 chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = _mm512_set1_ps(static_cast<float>(i));
  for (std::int64_t step = 0; step < steps; ++step) {
    for (__m512& chain : chains) chain = _mm512_fmadd_ps(chain, factor, term);
  }
  for (int i = 1; i < kChains; ++i) chains[0] = _mm512_add_ps(chains[0], chains[i]);
  return _mm512_cvtss_f32(chains[0]);
}

[[gnu::target("avx2,fma"), gnu::noinline]] float run_avx2(std::int64_t steps) noexcept {
  const __m256 factor = _mm256_set1_ps(kFactor), term = _mm256_set1_ps(kTerm);
  __m256 chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = _mm256_set1_ps(static_cast<float>(i));
  for (std::int64_t step = 0; step < steps; ++step) {
    for (__m256& chain : chains) chain = _mm256_fmadd_ps(chain, factor, term);
  }
  for (int i = 1; i < kChains; ++i) chains[0] = _mm256_add_ps(chains[0], chains[i]);
  return _mm256_cvtss_f32(chains[0]);
}
#endif

// What the compiler's own target has: SSE on x86-64, a fused multiply-add of NEON on AArch64.
[[gnu::noinline]] float run_portable(std::int64_t steps) noexcept {
  using Vector = float __attribute__((vector_size(16)));
  const Vector factor = kFactor - Vector{}, term = kTerm - Vector{};
  Vector chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = static_cast<float>(i) - Vector{};
  for (std::int64_t step = 0; step < steps; ++step) {
    for (Vector& chain : chains) chain = chain * factor + term;
  }
  for (int i = 1; i < kChains; ++i) chains[0] += chains[i];
  return chains[0][0];
}

Chains chains_of(std::string_view isa) noexcept {
#if defined(__x86_64__)
  if (isa == "avx512") return {.width = 16, .run = run_avx512};
  if (isa == "avx2") return {.width = 8, .run = run_avx2};
#endif
  if (isa == "portable") return {.width = 4, .run = run_portable};
  return {.width = 0, .run = nullptr};
}

// Threads inherit the processors of the one that starts them. If a parallel runtime has bound that
// one, ours would share its processor and find a fraction of the peak, which would flatter what is
// compared with it.
void require_processors(int threads) {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < threads) {
    throw std::runtime_error("cannot measure the peak of " + std::to_string(threads) +
                             " threads: this one is bound to " + std::to_string(CPU_COUNT(&set)) +
                             " processors (OMP_PROC_BIND=false unbinds it)");
  }
#else
  static_cast<void>(threads);
#endif
}

struct Interval {
  Clock::time_point begin, end;
};

}  // namespace

bool has_peak(std::string_view isa) noexcept { return chains_of(isa).run != nullptr; }

double measure_peak(std::string_view isa, int threads) {
  const Chains chains = chains_of(isa);
  const auto count = static_cast<std::size_t>(threads);
  require_processors(threads);
  std::this_thread::sleep_for(kSpinning);

  std::vector<std::vector<Interval>> intervals(count, std::vector<Interval>(kWarmUp + kSlices));
  std::barrier start(threads);
  std::atomic<bool> cancelled = false;
  const auto work = [&](std::size_t thread) {
    float sum = 0;
    for (Interval& interval : intervals[thread]) {
      start.arrive_and_wait();
      if (cancelled) return;
      interval.begin = Clock::now();
      sum += chains.run(kSteps);
      interval.end = Clock::now();
    }
    volatile float sink = sum;
    static_cast<void>(sink);
  };
  {
    std::vector<std::jthread> workers;
    workers.reserve(count);
    try {
      for (std::size_t thread = 1; thread < count; ++thread) workers.emplace_back(work, thread);
    } catch (...) {  // those that started wait for all: let them go
      cancelled = true;
      for (std::size_t missing = workers.size(); missing < count; ++missing)
        start.arrive_and_drop();
      throw;
    }
    work(0);
  }

  std::vector<double> seconds;
  for (std::size_t slice = kWarmUp; slice < kWarmUp + kSlices; ++slice) {
    Interval all = intervals[0][slice];
    for (const auto& of_thread : intervals) {
      all.begin = std::min(all.begin, of_thread[slice].begin);
      all.end = std::max(all.end, of_thread[slice].end);
    }
    seconds.push_back(std::chrono::duration<double>(all.end - all.begin).count());
  }
  const auto middle = seconds.begin() + kSlices / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  return 2.0 * kChains * chains.width * static_cast<double>(kSteps) * threads / *middle;
}

}  // namespace tessera::bench
