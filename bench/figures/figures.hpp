#pragma once
/// What the figures share. Every section is an array of objects that have a "name", what was
/// measured, the "goal" and whether it was "met". A figure is the median of the rounds; a round
/// measures what a figure is a ratio of right before and after it, so that both see the same clock
/// and neighbours.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>
#include <tessera/tessera.hpp>

#include "bench/workload.hpp"

namespace tessera::bench {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double median(std::vector<double> values);

/// Seconds a call of `function`, over at least `least` seconds and `calls` calls.
template <class Function>
double seconds_of(const Function& function, double least, std::int64_t calls = 3) {
  const auto begin = Clock::now();
  std::int64_t done = 0;
  double elapsed = 0;
  while (done < calls || elapsed < least) {
    function();
    ++done;
    elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return elapsed / static_cast<double>(done);
}

/// "<prefix>", "<prefix>_lowest" and "<prefix>_highest" of the rounds.
void add_rounds(Json& figure, const std::string& prefix, const std::vector<double>& values);

/// Workspace and what execute allocates itself, bytes a thread. First: later, arenas are there.
Json memory_figures();
/// fp32 forward or backward, seq 2048, as a share of the FMA peak.
Json arithmetic_figures(Operation operation, int rounds);
/// Microseconds of planning, and of a tiny problem.
Json latency_figures(int rounds);
/// Decode, K and V eight times the last-level cache, as a share of the bandwidth of reading them.
Json decode_figures(int rounds);
/// Forward and backward of 12 layers, out and lse computed again, beside keeping both.
Json recompute_figures(int rounds);
/// Rate of packed documents beside that of a dense batch of their mean length.
Json packed_figures(int rounds);
/// The exponent of seq in the time of forward.
Json growth_figures(int rounds);

}  // namespace tessera::bench
