// The generic kernel made up as on a device (teams of several threads, one lane a key) gives the
// bits that it gives as on a host; so does any number of threads.

#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <tessera/attention.hpp>
#include <tessera/kokkos.hpp>
#include <tessera/plan.hpp>

#include "backends/kokkos/generic/forward_kernel.hpp"
#include "core/src/plan_impl.hpp"
#include "tests/unit/kokkos/call.hpp"

namespace tessera::testing {
namespace {

using kokkos::Space;

std::vector<float> compute(const Options& options, Stream stream = {}) {
  const SmallCall call;
  std::vector<float> out;
  const Args args = call.args(out);
  const Plan plan = tessera::plan(describe(args, options));
  EXPECT_EQ(plan.kernel(), "forward.generic") << "set TESSERA_KERNEL=generic";
  execute(plan, args, stream);
  return out;
}

template <int kWidth>
std::vector<float> compute_with(const Options& options, int threads, int level) {
  using Kernel = kokkos::generic::ForwardKernel<kokkos::Fp32, kWidth>;
  const SmallCall call;
  std::vector<float> out;
  const Args args = call.args(out);
  const kernel::ForwardArguments a = detail::lower_forward(describe(args, options), args);
  const kernel::WorkOrder order = kernel::work_order(a, kokkos::generic::kRows, nullptr);
  kokkos::generic::Policy policy(Space(), static_cast<int>(order.size()), threads, 1);
  const std::size_t bytes =
      kokkos::generic::Scratch::of(a.dim, a.dim_v).bytes() + kokkos::generic::kAlign;
  policy.set_scratch_size(level, Kokkos::PerTeam(bytes));
  Kokkos::parallel_for(policy, Kernel(a, order, 0, level));
  Space().fence();
  return out;
}

#ifdef KOKKOS_ENABLE_OPENMP
// How many threads an instance has in fact.
std::size_t threads_of(const Space& space) {
  std::mutex mutex;
  std::set<std::thread::id> ids;
  Kokkos::parallel_for(Kokkos::RangePolicy<Space>(space, 0, 1000), [&](int) {
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  space.fence();
  return ids.size();
}
#endif

const Options kOptions[] = {{}, {.mask = Mask::causal(Alignment::TopLeft)}, {.dropout = 0.25}};

TEST(Teams, GiveTheSameBits) {
  for (const Options& options : kOptions) {
    const std::vector<float> expected = compute(options);
    EXPECT_EQ(compute_with<8>(options, 1, 1), expected);
    EXPECT_EQ(compute_with<4>(options, 1, 0), expected);
    EXPECT_EQ(compute_with<1>(options, 1, 0), expected);
    if (Space().concurrency() < 2) continue;
    EXPECT_EQ(compute_with<1>(options, 2, 0), expected);
    EXPECT_EQ(compute_with<8>(options, 2, 1), expected);
  }
}

#ifdef KOKKOS_ENABLE_OPENMP  // whose instances have some number of threads
TEST(Teams, ThreadsDoNotMatter) {
  compute({});  // initialises Kokkos
  const Space alone(1);
  ASSERT_EQ(threads_of(alone), 1u);
  for (const Options& options : kOptions) {
    EXPECT_EQ(compute(options, as_stream(alone)), compute(options));
  }
}
#endif

}  // namespace
}  // namespace tessera::testing
