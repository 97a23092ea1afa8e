// What only the first call of a process does: each allocation that it makes fails once, in a
// process of its own. (Not with all that follow: a destructor in Kokkos 5.2 allocates while its
// initialisation is given up, which ends the process.) The call may succeed, with the right bits,
// or throw std::bad_alloc or DeviceError; so may the next one, if the parallel runtime cannot be
// had any more. None may crash or hang, then or at the process' end.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include <gtest/gtest.h>
#include <tessera/error.hpp>
#include <tessera/tessera.hpp>

#include "tests/robustness/failing_new.hpp"

namespace tessera::testing {
namespace {

enum Outcome : int { kDone = 0, kRefused = 3, kWrong = 4, kNothingFailed = 5 };

// Equal keys and values: every output is the value. The longer heads need more scratch memory.
template <std::int64_t kDim>
Outcome call() noexcept {
  constexpr std::int64_t kRows = 70;
  static std::array<float, 2 * kRows * kDim> data, out;
  data.fill(0.5F);
  out.fill(-1);
  const Extents extents{.head = 2, .seq = kRows, .dim = kDim};
  try {
    const ConstTensor in = ConstTensor::bhsd(data.data(), DType::fp32, extents);
    forward({.query = in,
             .key = in,
             .value = in,
             .out = Tensor::bhsd(out.data(), DType::fp32, extents)});
  } catch (const std::bad_alloc&) {
    return kRefused;
  } catch (const DeviceError&) {
    return kRefused;
  }
  for (const float x : out)
    if (x != 0.5F) return kWrong;
  return kDone;
}

// In a child: a call in which allocation `n` fails, and two more.
[[noreturn]] void run_child(std::int64_t n) {
  bool failed = false;
  Outcome first{};
  {
    const FailingNew failing(n, FailingNew::Which::one);
    first = call<16>();
    failed = failing.failed();
  }
  const Outcome second = call<64>();
  const Outcome third = call<16>();
  if (first == kWrong || second == kWrong || third == kWrong) std::exit(kWrong);
  if (first == kDone && (second != kDone || third != kDone)) std::exit(kWrong);
  std::exit(failed ? (third == kDone ? kDone : kRefused) : kNothingFailed);
}

TEST(FirstCall, EveryAllocationMayFail) {
  constexpr std::int64_t kMost = 5000;
  int ended[kNothingFailed + 1] = {};
  for (std::int64_t n = 1; ended[kNothingFailed] == 0; ++n) {
    ASSERT_LT(n, kMost) << "more allocations than a first call makes";
    std::fflush(nullptr);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) run_child(n);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "allocation " << n << ": signal " << WTERMSIG(status);
    const int code = WEXITSTATUS(status);
    ASSERT_TRUE(code == kDone || code == kRefused || code == kNothingFailed)
        << "allocation " << n << ": ends with status " << code;
    ++ended[code];
  }
  std::printf("allocations that failed: %d, after which calls are refused: %d\n",
              ended[kDone] + ended[kRefused], ended[kRefused]);
  EXPECT_GT(ended[kDone] + ended[kRefused], 0);
}

}  // namespace
}  // namespace tessera::testing
