#include "bench/peak.hpp"

#include <string>

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

// A processor of the last twenty years starts an SSE multiplication or addition of 4 floats every
// cycle at 1 GHz and more, and none has yet done 4 multiply-adds of 16 floats in one at 10 GHz. A
// neighbour may take most of the time.
TEST(Peak, IsPlausible) {
  const double peak = measure_peak("portable", 1);
  EXPECT_GT(peak, 0.5e9);
  EXPECT_LT(peak, 4 * 2 * 16 * 10e9);
}

#if defined(__x86_64__)
// Four times, if nobody disturbs: registers are twice as wide and multiply-adds are one instruction
// instead of two. Which instructions a processor has is known only when the test runs.
TEST(Peak, OfAvx2IsAboveThatOfSse) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "no AVX2 here";
  EXPECT_GT(measure_peak("avx2", 1), measure_peak("portable", 1));
}
#endif

}  // namespace
}  // namespace tessera::bench
