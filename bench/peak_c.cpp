// The peak for programs that are not C++: bench/peers measures it in the rounds of its comparisons.

#include <exception>

#include "bench/peak.hpp"

extern "C" {

/// tessera::bench::measure_peak; below 0 where there is none for `isa`, or it cannot be measured.
[[gnu::visibility("default")]] double tessera_bench_peak(const char* isa, int threads) {
  try {
    if (!tessera::bench::has_peak(isa)) return -1;
    return tessera::bench::measure_peak(isa, threads);
  } catch (const std::exception&) {
    return -1;
  }
}

}  // extern "C"
