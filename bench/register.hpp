#pragma once
/// The benchmarks by kind. Each register_ function gives its own to Google Benchmark; main.cpp
/// calls them.

#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/workload.hpp"

namespace tessera::bench {

void register_throughput();  ///< forward/…, backward/…, decode/…
void register_latency();     ///< plan/…, execute/…, workspace/…: what a call costs beside the
                             ///< arithmetic
void register_naive();       ///< naive/…: unfused attention on the host, for scale
void register_stack();       ///< stack/…: 12 layers, and what they keep for backward

/// Shapes of models that exist.
std::vector<Case> preset_cases();

/// Whose throughput is measured: null for Tessera's own. Set before anything is registered.
const Adapter* adapter() noexcept;
void set_adapter(const Adapter* adapter) noexcept;

/// Frees the data of the last benchmark; while the device still stands, that is before main
/// returns.
void release_data() noexcept;

/// Registers function(state, c) under "kind/" and the case's name, its times shown in `unit`. An
/// exception becomes the benchmark's error.
void add(std::string_view kind, void (*function)(benchmark::State&, const Case&), const Case& c,
         benchmark::TimeUnit unit);

}  // namespace tessera::bench
