#pragma once
/// The benchmarks by kind. Each register_ function gives its own to Google Benchmark; main.cpp
/// calls them.

#include <string_view>

#include <benchmark/benchmark.h>

#include "bench/workload.hpp"

namespace tessera::bench {

void register_forward();  ///< forward/…: throughput
void register_latency();  ///< plan/…, execute/…, workspace/…: what a call costs beside the
                          ///< arithmetic
void register_naive();    ///< naive/…: unfused attention on the host, for scale

/// Frees the data of the last benchmark; while the device still stands, that is before main
/// returns.
void release_data() noexcept;

/// Registers function(state, c) under "kind/" and the case's name, its times shown in `unit`. An
/// exception becomes the benchmark's error.
void add(std::string_view kind, void (*function)(benchmark::State&, const Case&), const Case& c,
         benchmark::TimeUnit unit);

}  // namespace tessera::bench
