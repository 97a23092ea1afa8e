#include "bench/peak.hpp"

#include <cstdio>
#include <string_view>

#include <gtest/gtest.h>
#include <tessera/info.hpp>

namespace tessera::bench {
namespace {

TEST(Peak, IsKnownForProcessorsOnly) {
  EXPECT_TRUE(has_peak("portable"));
  EXPECT_FALSE(has_peak("sm_90a"));
  EXPECT_FALSE(has_peak(""));
}

TEST(Peak, IsKnownForHostSpacesOnly) {
  const DeviceInfo device = device_info();
  const bool host = build_info().backend == "kokkos" && device.isa != "generic";
  EXPECT_EQ(has_peak(device.isa), host) << device.isa;
}

bool processor_has([[maybe_unused]] std::string_view isa) {
#if defined(__x86_64__)
  if (isa == "avx512") return __builtin_cpu_supports("avx512f");
  if (isa == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return false;
}

// A processor of the last twenty years starts an SSE multiplication or addition of 4 floats every
// cycle at 1 GHz and more, and none has yet done 4 multiply-adds of 16 floats in one at 10 GHz. A
// neighbour may take most of the time. AVX2's peak is four times SSE's, if nobody disturbs:
// registers are twice as wide and multiply-adds are one instruction instead of two. Which
// instructions a processor has is known only when the test runs.
TEST(Peak, IsPlausibleInEachInstructionSet) {
  constexpr double kLowest = 0.5e9, kHighest = 4 * 2 * 16 * 10e9;
  const double portable = measure_peak("portable", 1);
  EXPECT_GT(portable, kLowest);
  EXPECT_LT(portable, kHighest);
  for (const char* isa : {"avx2", "avx512"}) {
    if (!processor_has(isa)) {
      std::printf("not run here: %s, which this processor lacks\n", isa);
      continue;
    }
    const double peak = measure_peak(isa, 1);
    EXPECT_GT(peak, portable) << isa;
    EXPECT_LT(peak, kHighest) << isa;
  }
}

}  // namespace
}  // namespace tessera::bench
