// The generic kernels made up as on a device (teams of several threads, one lane a key) give the
// bits that they give as on a host; so does any number of threads.

#include <array>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <tessera/attention.hpp>
#include <tessera/kokkos.hpp>
#include <tessera/plan.hpp>

#include "backends/kokkos/generic/backward_kernel.hpp"
#include "backends/kokkos/generic/forward_kernel.hpp"
#include "backends/kokkos/generic/teams.hpp"
#include "core/src/plan_impl.hpp"
#include "tests/unit/kokkos/call.hpp"

namespace tessera::testing {
namespace {

using kernel::Index;
using kokkos::Fp32;
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

// As on a device: a team a task, whose memory is Kokkos'.
template <class Kernel>
void launch(Index tasks, std::size_t bytes, int threads, int level, const Kernel& kernel) {
  using namespace kokkos::generic;
  Policy policy(Space(), static_cast<int>(tasks), threads, 1);
  policy.set_scratch_size(level, Kokkos::PerTeam(bytes + kAlign));
  Kokkos::parallel_for(policy, TeamTasks<Kernel>{kernel, 0, tasks, {bytes, level}});
  Space().fence();
}

template <int kWidth>
std::vector<float> compute_with(const Options& options, int threads, int level) {
  using Kernel = kokkos::generic::ForwardKernel<Fp32, kWidth>;
  const SmallCall call;
  std::vector<float> out;
  const Args args = call.args(out);
  const kernel::ForwardArguments a = detail::lower_forward(describe(args, options), args);
  const kernel::WorkOrder order = kernel::work_order(a, kokkos::generic::kRows, nullptr);
  launch(order.size(), kokkos::generic::Scratch::of(a.dim, a.dim_v).bytes(), threads, level,
         Kernel(a, order));
  return out;
}

// A call of backward with a bias that is broadcast over batch and keys, and sinks.
class GradientCall : SmallCall {
 public:
  using Results = std::array<std::vector<float>, 5>;

  explicit GradientCall(const Options& options) : options_(options) {
    args_ = args(out_);
    args_.lse = Tensor::lse(lse_.data(), 2, 3, 100);
    args_.bias = ConstTensor::bhsd(query.data(), DType::fp32, kBias);
    args_.sinks = ConstTensor::per_head(key.data(), DType::fp32, 3);
    forward(args_, options_);
    args_.dout = ConstTensor::bhsd(query.data(), DType::fp32, kExtents);
    args_.dlse = {value.data(), DType::fp32, {2, 3, 100, 1}, {300, 100, 1, 1}};
    for (std::size_t i = 0; i < 3; ++i) results_[i].assign(kCount, -1);
    args_.dq = Tensor::bhsd(results_[0].data(), DType::fp32, kExtents);
    args_.dk = Tensor::bhsd(results_[1].data(), DType::fp32, kExtents);
    args_.dv = Tensor::bhsd(results_[2].data(), DType::fp32, kExtents);
    results_[3].assign(300, -1);
    results_[4].assign(3, -1);
    args_.dbias = Tensor::bhsd(results_[3].data(), DType::fp32, kBias);
    args_.dsink = {results_[4].data(), DType::fp32, {.head = 3}, {.head = 1}};
  }

  const Results& compute(Stream stream = {}) {
    const Plan plan = tessera::plan(describe(args_, options_, Operation::backward));
    EXPECT_EQ(plan.kernel(), "backward.generic") << "set TESSERA_KERNEL=generic";
    execute(plan, args_, stream);
    return results_;
  }

  template <int kWidth>
  const Results& compute_with(int threads, int level) {
    using namespace kokkos::generic;
    std::vector<float> lse(600), delta(600);
    const Gradients g{detail::lower_backward(describe(args_, options_, Operation::backward), args_),
                      {lse.data(), delta.data()}};
    const kernel::ForwardArguments& a = g.arguments.forward;
    using Rows = RowStatistics<Fp32>;
    launch(Rows::tasks(a), Rows::bytes(a.dim_v), threads, level, Rows(g));
    const auto run = [&]<class Kernel>(Index tasks, const Kernel& kernel) {
      launch(tasks, GradientScratch::of(16, 16, Kernel::sums(16, 16)).bytes(), threads, level,
             kernel);
    };
    const kernel::WorkOrder rows = kernel::work_order(a, kRows, nullptr);
    const kernel::WorkOrder keys = kernel::key_work_order(a, kKeys, nullptr);
    run(rows.size(), QueryGradient<Fp32, kWidth>(g, rows));
    run(keys.size(), KeyGradient<Fp32, kWidth>(g, keys));
    using Bias = BiasGradient<Fp32, kWidth>;
    run(Bias::tasks(g.arguments), Bias(g));
    launch(a.head_q, 0, 1, level, SinkGradient(g));
    return results_;
  }

 private:
  static constexpr Extents kBias{.batch = 1, .head = 3, .seq = 100, .dim = 1};

  Options options_;
  Args args_;
  std::vector<float> out_, lse_ = std::vector<float>(600);
  Results results_;
};

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

TEST(Teams, GiveTheSameBitsOfGradients) {
  for (const Options& options : kOptions) {
    const GradientCall::Results expected = GradientCall(options).compute();
    EXPECT_EQ(GradientCall(options).compute_with<8>(1, 1), expected);
    EXPECT_EQ(GradientCall(options).compute_with<4>(1, 0), expected);
    EXPECT_EQ(GradientCall(options).compute_with<1>(1, 0), expected);
    if (Space().concurrency() < 2) continue;
    EXPECT_EQ(GradientCall(options).compute_with<1>(2, 0), expected);
    EXPECT_EQ(GradientCall(options).compute_with<8>(2, 1), expected);
  }
}

#ifdef KOKKOS_ENABLE_OPENMP  // whose instances have some number of threads
TEST(Teams, ThreadsDoNotMatter) {
  compute({});  // initialises Kokkos
  const Space alone(1);
  ASSERT_EQ(threads_of(alone), 1u);
  for (const Options& options : kOptions) {
    EXPECT_EQ(compute(options, as_stream(alone)), compute(options));
    EXPECT_EQ(GradientCall(options).compute(as_stream(alone)), GradientCall(options).compute());
  }
}
#endif

}  // namespace
}  // namespace tessera::testing
