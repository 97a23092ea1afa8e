#include "bench/bandwidth.hpp"

#include <stdexcept>

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

// No memory yet gives a TB/s to a core, and none is so busy that it gives less than 1 MB/s.
TEST(Bandwidth, IsPlausibleForAnyNumberOfThreads) {
  const std::vector<std::byte> first(16 << 20), second(1000003);
  for (const int threads : {1, 2, 3}) {
    const double bandwidth = measure_read_bandwidth({first, second}, threads);
    EXPECT_GT(bandwidth, 1e6) << threads;
    EXPECT_LT(bandwidth, threads * 1e12) << threads;
  }
}

TEST(Bandwidth, NeedsSomethingToRead) {
  EXPECT_THROW(static_cast<void>(measure_read_bandwidth({}, 1)), std::runtime_error);
  EXPECT_THROW(static_cast<void>(measure_read_bandwidth({{}, {}}, 1)), std::runtime_error);
}

TEST(Bandwidth, LastLevelCacheIsMebibytesOrUnknown) {
  const std::size_t size = last_level_cache();
  if (size == 0) return;  // the system does not say
  EXPECT_GE(size, std::size_t{1} << 18);
  EXPECT_LE(size, std::size_t{1} << 34);
}

}  // namespace
}  // namespace tessera::bench
