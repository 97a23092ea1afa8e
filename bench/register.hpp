#pragma once
/// The benchmarks by kind. Each function registers its own with Google Benchmark; main.cpp calls
/// them.

namespace tessera::bench {

void register_forward();  ///< forward/…: throughput
void register_latency();  ///< plan/…, execute/…, workspace/…: what a call costs beside the
                          ///< arithmetic

/// Frees the data of the last benchmark; while the device still stands, that is before main
/// returns.
void release_data() noexcept;

}  // namespace tessera::bench
