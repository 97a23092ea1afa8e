// What surrounds the kernels, in a program that does not know Kokkos: lazy initialisation, threads,
// memory, exit.

#include "backends/kokkos/runtime.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <Kokkos_Core.hpp>
#include <tessera/attention.hpp>
#include <tessera/buffer.hpp>
#include <tessera/error.hpp>
#include <tessera/info.hpp>
#include <tessera/plan.hpp>

#include "backends/kokkos/parallel.hpp"
#include "tests/unit/kokkos/call.hpp"

namespace tessera::testing {
namespace {

// Registered before Tessera's own, so it runs after it: whoever initialises finalises.
void require_finalized() {
  if (!Kokkos::is_finalized()) std::_Exit(3);
}

// For outputs wherever they are allocated.
Plan plan_for(const SmallCall& call) {
  std::vector<float> out;
  Problem problem = describe(call.args(out));
  problem.out->alignment = alignof(float);
  return tessera::plan(problem);
}

void execute_from_threads(const SmallCall& call, const Plan& plan,
                          std::vector<std::vector<float>>& outs) {
  std::vector<std::thread> threads;
  threads.reserve(outs.size());
  for (std::vector<float>& out : outs) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) execute(plan, call.args(out));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Before all tests: nobody has touched Kokkos yet.
class Lazily : public ::testing::Environment {
  void SetUp() override {
    std::atexit(require_finalized);
    unsetenv("OMP_PROC_BIND");  // Kokkos warns without it, unless told not to
    ::testing::internal::CaptureStderr();

    ASSERT_FALSE(Kokkos::is_initialized());
    Buffer buffer(100);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 128, 0u);
    EXPECT_FALSE(Kokkos::is_initialized()) << "memory needs no Kokkos on a host";

    // Eight threads at once find it uninitialised.
    const SmallCall call;
    const Plan plan = plan_for(call);
    std::vector<std::vector<float>> outs(8);
    execute_from_threads(call, plan, outs);
    EXPECT_TRUE(Kokkos::is_initialized());
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }
};
const auto* const kLazily = ::testing::AddGlobalTestEnvironment(new Lazily);

TEST(Runtime, ThreadsThatExecuteOnePlanGetTheSameBits) {
  ASSERT_NE(kLazily, nullptr);
  const SmallCall call;
  std::vector<float> expected;
  const Plan plan = plan_for(call);
  execute(plan, call.args(expected));
  std::vector<std::vector<float>> outs(8);
  execute_from_threads(call, plan, outs);
  for (const std::vector<float>& out : outs) {
    EXPECT_EQ(std::memcmp(out.data(), expected.data(), expected.size() * sizeof(float)), 0);
  }
}

struct Tally {
  std::vector<std::atomic<int>> runs = std::vector<std::atomic<int>>(1000);
  std::vector<std::atomic<int>> busy =
      std::vector<std::atomic<int>>(static_cast<std::size_t>(kokkos::threads()));
  std::atomic<int> shared = 0;   // a thread index that two tasks had at once
  std::atomic<int> outside = 0;  // a thread index out of range
};

TEST(Runtime, RunsEveryTaskOnceOnAThreadOfItsOwn) {
  Tally tally;
  const auto body = [](void* context, kernel::Index task, int thread) {
    Tally& t = *static_cast<Tally*>(context);
    if (thread < 0 || thread >= kokkos::threads()) {
      ++t.outside;
      return;
    }
    std::atomic<int>& busy = t.busy[static_cast<std::size_t>(thread)];
    if (busy.fetch_add(1) != 0) ++t.shared;
    ++t.runs[static_cast<std::size_t>(task)];
    busy.fetch_sub(1);
  };
  for (const int tasks : {0, 1, 2, 1000}) {
    const std::lock_guard lock(kokkos::launch_lock());
    for (auto& runs : tally.runs) runs = 0;
    kokkos::run_tasks(tasks, {}, body, &tally);
    for (int i = 0; i < 1000; ++i)
      ASSERT_EQ(tally.runs[static_cast<std::size_t>(i)], i < tasks ? 1 : 0) << i;
  }
  EXPECT_EQ(tally.shared, 0);
  EXPECT_EQ(tally.outside, 0);
}

TEST(Runtime, ArenaIsKeptAndGrows) {
  const std::lock_guard lock(kokkos::launch_lock());
  void* const first = kokkos::arena(1 << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 128, 0u);
  std::memset(first, 1, 1 << 20);
  EXPECT_EQ(kokkos::arena(1000), first);
  EXPECT_EQ(kokkos::arena(1 << 20), first);
  std::memset(kokkos::arena(3 << 20), 1, 3 << 20);
}

TEST(Runtime, MemoryThatIsNotThereIsADeviceError) {
  EXPECT_THROW(Buffer(std::size_t{1} << 60), DeviceError);
  const std::lock_guard lock(kokkos::launch_lock());
  EXPECT_THROW(kokkos::arena(std::size_t{1} << 60), DeviceError);
  EXPECT_NE(kokkos::arena(100), nullptr);
}

// Segments of one row, whose longest nobody names.
TEST(Runtime, WorkspaceOfPackedDecodeGrowsWithRowsNotWithTheirSquare) {
  const auto workspace = [](std::int64_t segments) {
    const Extents extents{.batch = 1, .head = 8, .seq = segments, .dim = 16};
    std::vector<float> input(static_cast<std::size_t>(8 * segments * 16)), out(input.size());
    std::vector<std::int32_t> begins(static_cast<std::size_t>(segments) + 1);
    std::iota(begins.begin(), begins.end(), 0);
    const Args args{
        .query = ConstTensor::bhsd(input.data(), DType::fp32, extents),
        .key = ConstTensor::bhsd(input.data(), DType::fp32, extents),
        .value = ConstTensor::bhsd(input.data(), DType::fp32, extents),
        .out = Tensor::bhsd(out.data(), DType::fp32, extents),
        .cu_seqlens_q = {.data = begins.data(), .dtype = DType::int32, .size = segments + 1},
        .cu_seqlens_k = {.data = begins.data(), .dtype = DType::int32, .size = segments + 1}};
    return tessera::plan(describe(args, {}, Operation::decode)).workspace_size();
  };
  EXPECT_GT(workspace(1024), 0u);
  EXPECT_LE(workspace(4096), 5 * workspace(1024));
}

// A task writes its rows as it ends: nothing waits for other parts.
TEST(Runtime, WorkspaceOfUncutDecodeIsTheThreadsScratch) {
  const auto planned = [](std::int64_t rows, std::int64_t keys) {
    const auto spec = [](std::int64_t head, std::int64_t seq) {
      const Extents extent{.batch = 4, .head = head, .seq = seq, .dim = 128};
      return TensorSpec{.dtype = DType::bf16, .extent = extent, .stride = bhsd_strides(extent)};
    };
    Problem p{.operation = Operation::decode, .query = spec(32, rows), .key = spec(8, keys)};
    p.value = p.key;
    p.out = p.query;
    return plan(p);
  };
  const std::size_t small = std::size_t{1} << 18;  // a thread
  for (const std::int64_t rows : {64, 512, 4096}) {
    const Plan made = planned(rows, 4096);
    ASSERT_EQ(made.splits(), 1) << rows;
    EXPECT_LE(made.workspace_size(), small * static_cast<std::size_t>(kokkos::threads())) << rows;
  }
  EXPECT_LE(planned(1, 4096).workspace_size(), std::size_t{13} << 20);
}

TEST(Runtime, BuffersCopy) {
  Buffer from(4), to(4), empty(0);
  EXPECT_NE(empty.data(), nullptr);
  const int value = 42;
  int back = 0;
  copy(from.data(), &value, sizeof value);
  copy(to.data(), from.data(), sizeof value);
  copy(&back, to.data(), sizeof back);
  Stream().synchronize();
  EXPECT_EQ(back, 42);
}

TEST(Runtime, DeviceInfo) {
  EXPECT_EQ(device_count(), 1);
  const DeviceInfo info = device_info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.isa.empty());
  EXPECT_EQ(info.space, Kokkos::DefaultExecutionSpace::name());
  EXPECT_EQ(info.threads, Kokkos::DefaultExecutionSpace().concurrency());
  EXPECT_GT(info.memory, std::uint64_t{1} << 28);
  EXPECT_EQ(build_info().backend, "kokkos");
  EXPECT_EQ(build_info().toolkit, "Kokkos " + std::to_string(KOKKOS_VERSION / 10000) + "." +
                                      std::to_string(KOKKOS_VERSION / 100 % 100) + "." +
                                      std::to_string(KOKKOS_VERSION % 100));
}

}  // namespace
}  // namespace tessera::testing
