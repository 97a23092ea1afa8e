// Where threads are not what they seem: a child of fork, the inside of a parallel region, and more
// threads than Kokkos can have, or memory (the test runs with OMP_NUM_THREADS=200000). None may
// hang or crash.

#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tessera/error.hpp>
#include <tessera/info.hpp>
#include <tessera/tessera.hpp>

namespace tessera::testing {
namespace {

// Large enough to be spread over threads.
struct Call {
  static constexpr Extents kExtents{.head = 2, .seq = 300, .dim = 64};
  std::vector<float> data = std::vector<float>(2 * 300 * 64, 0.5f);

  void operator()(std::vector<float>& out) const {
    const ConstTensor in = ConstTensor::bhsd(data.data(), DType::fp32, kExtents);
    forward({.query = in,
             .key = in,
             .value = in,
             .out = Tensor::bhsd(out.data(), DType::fp32, kExtents)});
  }
};

// Equal keys and values: every output is the value.
void expect_right(const std::vector<float>& out) {
  for (const float x : out) ASSERT_FLOAT_EQ(x, 0.5f);
}

TEST(Process, NoMoreThreadsThanKokkosCanHave) {
  const Call call;
  std::vector<float> out(call.data.size());
  call(out);
  expect_right(out);
  EXPECT_LE(device_info().threads, 512);
}

TEST(Process, InsideAParallelRegion) {
  const Call call;
  std::vector<std::vector<float>> outs(2, std::vector<float>(call.data.size()));
  std::vector<std::string> errors(2);
#pragma omp parallel for num_threads(2)
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    try {
      call(outs[at]);
    } catch (const DeviceError& error) {
      errors[at] = error.what();
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (errors[i].empty()) {
      expect_right(outs[i]);
    } else {
      EXPECT_NE(errors[i].find("parallel region"), std::string::npos) << errors[i];
    }
  }
}

TEST(Process, ChildOfForkGetsAnError) {
  const Call call;
  std::vector<float> out(call.data.size());
  call(out);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // a hang ends the child by a signal
    try {
      call(out);
    } catch (const DeviceError& error) {
      _exit(std::string(error.what()).find("fork") == std::string::npos ? 2 : 0);
    } catch (...) {
      _exit(3);
    }
    _exit(1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tessera::testing
