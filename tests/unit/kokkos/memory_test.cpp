// The scratch memory that is kept between launches, where there is no memory to be had.

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include <gtest/gtest.h>
#include <tessera/attention.hpp>
#include <tessera/error.hpp>

#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/runtime.hpp"
#include "tests/robustness/failing_new.hpp"
#include "tests/unit/kokkos/call.hpp"

namespace tessera::testing {
namespace {

using Which = FailingNew::Which;

enum class Ended : std::uint8_t { done, device_error, bad_alloc };

template <class Call>
Ended end_of(Call call) {
  try {
    call();
    return Ended::done;
  } catch (const DeviceError&) {
    return Ended::device_error;
  } catch (const std::bad_alloc&) {
    return Ended::bad_alloc;
  }
}

Ended get_arena(std::size_t bytes) {
  return end_of([&] { kokkos::arena(bytes); });
}

TEST(Arena, ThatCannotGrowIsADeviceErrorAndGrowsLater) {
  const std::lock_guard lock(kokkos::launch_lock());
  kokkos::arena(1 << 20);
  const std::int64_t with_arena = live_allocations();
  for (const auto& [which, expected] :
       {std::pair{Which::one, Ended::device_error}, {Which::all_from, Ended::bad_alloc}}) {
    Ended ended{};
    {
      const FailingNew failing(1, which);
      ended = get_arena(2 << 20);
    }
    EXPECT_EQ(ended, expected);
    EXPECT_EQ(live_allocations(), with_arena - 1) << "the smaller one makes room";
    EXPECT_EQ(get_arena(1 << 20), Ended::done);
    EXPECT_EQ(live_allocations(), with_arena);
  }
}

// The next launch must allocate it.
void empty_arena() {
  const std::lock_guard lock(kokkos::launch_lock());
  EXPECT_EQ(get_arena(std::size_t{1} << 60), Ended::device_error);
}

TEST(Arena, ThatCannotBeHadLeavesOutputsAsTheyWere) {
  const SmallCall call;
  std::vector<float> expected, out;
  forward(call.args(expected));
  const Args args = call.args(out);
  for (const Which which : {Which::one, Which::all_from}) {
    int device_errors = 0;
    bool over = false;
    for (int n = 1; !over; ++n) {
      ASSERT_LT(n, 1000);
      empty_arena();
      std::fill(out.begin(), out.end(), -1.0f);
      const std::int64_t before = live_allocations();
      Ended ended{};
      {
        const FailingNew failing(n, which);
        ended = end_of([&] { forward(args); });
        over = !failing.failed();
      }
      EXPECT_EQ(live_allocations() - before, ended == Ended::done ? 1 : 0) << n;
      if (ended == Ended::device_error) ++device_errors;
      if (ended == Ended::done) {
        EXPECT_EQ(out, expected) << n;
      } else {
        EXPECT_EQ(out, std::vector<float>(out.size(), -1.0f)) << n;
      }
      if (over) {
        EXPECT_EQ(ended, Ended::done);
      }
    }
    if (which == Which::one) {
      EXPECT_EQ(device_errors, 1) << "the arena's own allocation";
    }
  }
}

}  // namespace
}  // namespace tessera::testing
