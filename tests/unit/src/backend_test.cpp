// What the host core asks of a backend and hands to it, seen from a fake one.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "tests/unit/src/call.hpp"
#include "tests/unit/src/environment.hpp"
#include "tests/unit/src/fake_backend.hpp"

namespace tessera::testing {
namespace {

class Backend : public ::testing::Test {
 protected:
  void SetUp() override { fake = {}; }
  void TearDown() override { fake = {}; }
  FakeBackend& fake = fake_backend();
};

TEST_F(Backend, IsHandedEverything) {
  Call call = Call::everything();
  call.options.dropout = 0.25;
  call.args.seed = 7;
  call.args.offset = 9;
  const std::uint64_t on_device[2] = {1, 2};
  call.args.seed_device = &on_device[0];
  call.args.offset_device = &on_device[1];
  int native = 0;
  forward(call.args, call.options, Stream::from_native(&native, 1));

  const kernel::ForwardArguments& a = fake.arguments;
  EXPECT_EQ(a.query.data, call.args.query.data);
  EXPECT_EQ(a.query.batch, 4 * 5 * 16);
  EXPECT_EQ(a.query.head, 5 * 16);
  EXPECT_EQ(a.query.seq, 16);
  EXPECT_EQ(a.key.data, call.args.key.data);
  EXPECT_EQ(a.key.head, 7 * 16);
  EXPECT_EQ(a.value.data, call.args.value.data);
  EXPECT_EQ(a.value.seq, 8);
  EXPECT_EQ(a.out.data, call.args.out.data);
  EXPECT_EQ(a.out.batch, 4 * 5 * 8);
  EXPECT_EQ(a.lse.data, call.args.lse.data);
  EXPECT_EQ(a.lse.head, 5);
  EXPECT_EQ(a.batch, 2);
  EXPECT_EQ(a.head_q, 4);
  EXPECT_EQ(a.head_k, 2);
  EXPECT_EQ(a.seq_q, 5);
  EXPECT_EQ(a.seq_k, 7);
  EXPECT_EQ(a.total_q, 5);
  EXPECT_EQ(a.total_k, 7);
  EXPECT_EQ(a.dim, 16);
  EXPECT_EQ(a.dim_v, 8);
  EXPECT_EQ(a.scale, 0.5f);
  EXPECT_EQ(a.softcap, 20.0f);
  EXPECT_EQ(a.left, 4);
  EXPECT_EQ(a.right, 2);
  EXPECT_TRUE(a.bottom_right);
  EXPECT_EQ(a.key_begin, call.args.key_begin.data);
  EXPECT_EQ(a.key_end, call.args.key_end.data);
  EXPECT_EQ(a.query_end, call.args.query_end.data);
  EXPECT_FALSE(a.packed());
  EXPECT_EQ(a.alibi_slopes, call.args.alibi_slopes.data);
  EXPECT_EQ(a.alibi_batch, 4);
  EXPECT_EQ(a.alibi_head, 1);
  EXPECT_EQ(a.bias.data, call.args.bias.data);
  EXPECT_EQ(a.bias.batch, 4 * 5 * 7);
  EXPECT_EQ(a.bias.head, 5 * 7);
  EXPECT_EQ(a.bias.row, 7);
  EXPECT_EQ(a.bias.column, 1);
  EXPECT_TRUE(a.bias_fp32);
  EXPECT_EQ(a.boolean_mask.data, call.args.boolean_mask.data);
  EXPECT_EQ(a.sinks, call.args.sinks.data);
  EXPECT_EQ(a.sinks_head, 1);
  EXPECT_EQ(a.dropout.threshold, 16384u);
  EXPECT_EQ(a.dropout.seed, 7u);
  EXPECT_EQ(a.dropout.offset, 9u);
  EXPECT_EQ(a.dropout.seed_device, &on_device[0]);
  EXPECT_EQ(a.dropout.offset_device, &on_device[1]);
  EXPECT_EQ(fake.stream, Stream::from_native(&native, 1));
  EXPECT_EQ(fake.launched_kernel, "forward.fake.small");
}

TEST_F(Backend, IsHandedGradients) {
  Call call = Call::gradients();
  call.args.dout.stride = {.batch = 0, .head = 3, .seq = 0, .dim = 1};
  call.args.dlse.stride = {.batch = 1, .head = 0, .seq = 2};
  call.args.dsink.extent.head = 4;
  call.run();
  const kernel::BackwardArguments& a = fake.backward;
  EXPECT_EQ(fake.launched_kernel, "backward.fake.small");
  EXPECT_EQ(fake.launched, 1);
  EXPECT_EQ(a.forward.query.data, call.args.query.data);
  EXPECT_EQ(a.forward.out.data, call.args.out.data);
  EXPECT_EQ(a.forward.lse.data, call.args.lse.data);
  EXPECT_EQ(a.forward.softcap, 20.0f);
  EXPECT_EQ(a.dout.data, call.args.dout.data);
  EXPECT_EQ(a.dout.batch, 0);
  EXPECT_EQ(a.dout.head, 3);
  EXPECT_EQ(a.dout.seq, 0);
  EXPECT_EQ(a.dlse.data, call.args.dlse.data);
  EXPECT_EQ(a.dlse.batch, 1);
  EXPECT_EQ(a.dlse.head, 0);
  EXPECT_EQ(a.dlse.seq, 2);
  EXPECT_EQ(a.dq.data, call.args.dq.data);
  EXPECT_EQ(a.dq.batch, 4 * 5 * 16);
  EXPECT_EQ(a.dk.data, call.args.dk.data);
  EXPECT_EQ(a.dk.head, 7 * 16);
  EXPECT_EQ(a.dv.data, call.args.dv.data);
  EXPECT_EQ(a.dv.seq, 8);
  EXPECT_EQ(a.dbias.data, call.args.dbias.data);
  EXPECT_EQ(a.dbias.batch, 4 * 5 * 7);
  EXPECT_EQ(a.dbias.head, 5 * 7);
  EXPECT_EQ(a.dbias.row, 7);
  EXPECT_EQ(a.dbias.column, 1);
  EXPECT_TRUE(a.dbias.each_batch && a.dbias.each_head && a.dbias.each_row && a.dbias.each_column);
  EXPECT_EQ(a.dsink, call.args.dsink.data);
  EXPECT_EQ(a.dsink_head, 1);
}

TEST_F(Backend, IsToldWhatDbiasSumsOver) {
  for (unsigned axes = 0; axes < 16; ++axes) {
    Call call = Call::gradients();
    Extents e{.batch = 2, .head = 4, .seq = 5, .dim = 7};
    if ((axes & 1u) != 0) e.batch = 1;
    if ((axes & 2u) != 0) e.head = 1;
    if ((axes & 4u) != 0) e.seq = 1;
    if ((axes & 8u) != 0) e.dim = 1;
    call.args.bias.extent = call.args.dbias.extent = e;
    call.args.dbias.stride = bhsd_strides(e);
    call.run();
    const kernel::ScoreGradient& dbias = fake.backward.dbias;
    EXPECT_EQ(dbias.each_batch, (axes & 1u) == 0) << axes;
    EXPECT_EQ(dbias.each_head, (axes & 2u) == 0) << axes;
    EXPECT_EQ(dbias.each_row, (axes & 4u) == 0) << axes;
    EXPECT_EQ(dbias.each_column, (axes & 8u) == 0) << axes;
    EXPECT_EQ(dbias.batch != 0, dbias.each_batch) << axes;
    EXPECT_EQ(dbias.head != 0, dbias.each_head) << axes;
    EXPECT_EQ(dbias.row != 0, dbias.each_row) << axes;
    EXPECT_EQ(dbias.column != 0, dbias.each_column) << axes;
  }
}

TEST_F(Backend, IsHandedNothingThatIsAbsent) {
  Call call = Call::gradients();
  call.args.out = {};
  call.args.lse = {};
  call.args.dlse = {};
  call.args.dbias = {};
  call.args.dsink = {};
  call.run();
  EXPECT_EQ(fake.backward.forward.out.data, nullptr);
  EXPECT_EQ(fake.backward.forward.lse.data, nullptr);
  EXPECT_EQ(fake.backward.dlse.data, nullptr);
  EXPECT_EQ(fake.backward.dbias.data, nullptr);
  EXPECT_EQ(fake.backward.dsink, nullptr);
}

TEST_F(Backend, IsAskedForGradientsOfKeysWithoutRows) {
  Call call = Call::gradients();
  for (ConstTensor* tensor : {&call.args.query, &call.args.dout, &call.args.dlse, &call.args.bias,
                              &call.args.boolean_mask}) {
    tensor->extent.seq = 0;
  }
  for (Tensor* tensor : {&call.args.out, &call.args.lse, &call.args.dq, &call.args.dbias})
    tensor->extent.seq = 0;
  call.run();
  EXPECT_EQ(fake.launched, 1);
  for (ConstTensor* tensor : {&call.args.key, &call.args.value}) tensor->extent.seq = 0;
  for (Tensor* tensor : {&call.args.dk, &call.args.dv}) tensor->extent.seq = 0;
  call.args.bias.extent.dim = call.args.boolean_mask.extent.dim = call.args.dbias.extent.dim = 0;
  call.run();
  EXPECT_EQ(fake.launched, 2);  // dsink is 0 and must be written
  call.args.dsink = {};
  const int planned = fake.planned;
  call.run();
  EXPECT_EQ(fake.launched, 2);
  EXPECT_EQ(fake.planned, planned);
}

TEST_F(Backend, IsHandedDefaults) {
  Call::dense().run();
  const kernel::ForwardArguments& a = fake.arguments;
  EXPECT_EQ(a.scale, 0.25f);
  EXPECT_EQ(a.softcap, 0.0f);
  EXPECT_EQ(a.left, kernel::kUnbounded);
  EXPECT_EQ(a.right, kernel::kUnbounded);
  EXPECT_TRUE(a.bottom_right);
  EXPECT_FALSE(a.general());
  EXPECT_EQ(a.key_begin, nullptr);
  EXPECT_EQ(fake.workspace_given, nullptr);
}

TEST_F(Backend, IsHandedEdgesWithinBounds) {
  Call call = Call::dense();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  call.options.mask = Mask::window(kMost, kMost, Alignment::TopLeft);
  call.run();
  EXPECT_EQ(fake.arguments.left, kernel::kUnbounded);
  EXPECT_EQ(fake.arguments.right, kernel::kUnbounded);
  EXPECT_FALSE(fake.arguments.bottom_right);
}

TEST_F(Backend, IsHandedStrideZeroForSingleElements) {
  Call call = Call::dense();
  for (ConstTensor* tensor : {&call.args.query, &call.args.key, &call.args.value}) {
    tensor->extent.batch = 1;
    tensor->stride.batch = 777;
  }
  call.args.out.extent.batch = call.args.lse.extent.batch = 1;
  call.args.bias = {call.inputs(64), DType::fp32, {1, 4, 1, 1}, {9, 1, 9, 9}};
  call.args.alibi_slopes = {call.inputs(64), DType::fp32, {1, 4, 1, 1}, {9, 1, 9, 9}};
  call.run();
  const kernel::ForwardArguments& a = fake.arguments;
  EXPECT_EQ(a.query.batch, 0);
  EXPECT_EQ(a.out.batch, 0);
  EXPECT_EQ(a.bias.batch, 0);
  EXPECT_EQ(a.bias.head, 1);
  EXPECT_EQ(a.bias.row, 0);
  EXPECT_EQ(a.bias.column, 0);
  EXPECT_EQ(a.alibi_batch, 0);
}

TEST_F(Backend, IsHandedPackedSizes) {
  Call call = Call::packed();
  call.run();
  EXPECT_TRUE(fake.arguments.packed());
  EXPECT_EQ(fake.arguments.batch, 3);
  EXPECT_EQ(fake.arguments.seq_q, 3);
  EXPECT_EQ(fake.arguments.seq_k, 3);
  EXPECT_EQ(fake.arguments.total_q, 5);
  EXPECT_EQ(fake.arguments.total_k, 6);
  EXPECT_TRUE(fake.arguments.cu_seqlens_q.wide);
  EXPECT_FALSE(fake.arguments.cu_seqlens_k.wide);
  call.options = {};
  call.run();
  EXPECT_EQ(fake.arguments.seq_q, 5);  // not told: as long as the whole
  EXPECT_EQ(fake.arguments.seq_k, 6);
}

TEST_F(Backend, IsNotAskedWithoutRows) {
  Call call = Call::packed();
  call.args.cu_seqlens_q = call.vector<std::int32_t>(DType::int32, {0});
  call.args.cu_seqlens_k = call.args.cu_seqlens_q;
  call.run();
  EXPECT_EQ(fake.planned, 0);
  EXPECT_EQ(fake.launched, 0);
}

TEST_F(Backend, IsLaunchedWithoutKeys) {
  Call call = Call::dense();
  call.args.key.extent.seq = call.args.value.extent.seq = 0;
  call.run();
  EXPECT_EQ(fake.launched, 1);
}

TEST_F(Backend, IsPassedOverWithItsReason) {
  Problem problem = Call::dense().problem();
  for (TensorSpec* spec : {&problem.query, &problem.key}) {
    spec->extent.dim = 512;
    spec->stride = bhsd_strides(spec->extent);
  }
  const Plan made = plan(problem);
  EXPECT_EQ(made.kernel(), "forward.generic");
  const std::string text = made.describe();
  EXPECT_NE(text.find("why        computes what the small one does not\n"), std::string::npos)
      << text;
  EXPECT_NE(
      text.find("not        forward.fake.small: query.extent.dim is 512: at most 256 works\n"),
      std::string::npos);
}

TEST_F(Backend, DeclinesWithEveryReason) {
  fake.rejects_everything = "it is Sunday: Monday works";
  const Problem problem = Call::dense().problem();
  EXPECT_EQ(thrown_by([&] { plan(problem); }).text,
            "forward.fake.small: it is Sunday: Monday works; forward.generic: it is Sunday: Monday "
            "works");
  for (const std::string parts : {"small", "fake.small", "forward.fake"}) {
    const Environment forced("TESSERA_KERNEL", parts.c_str());
    EXPECT_EQ(thrown_by([&] { plan(problem); }).text,
              "forward.fake.small: it is Sunday: Monday works (TESSERA_KERNEL=" + parts +
                  " leaves no other)");
  }
}

TEST_F(Backend, GetsTheCallersWorkspace) {
  fake.workspace = 256;
  Call call = Call::dense();
  const Plan made = plan(call.problem());
  EXPECT_EQ(made.workspace_size(), 256u);
  call.args.workspace = {.data = call.outputs(256), .size = 255};
  EXPECT_EQ(thrown_by([&] { execute(made, call.args); }).text,
            "workspace.size is 255; must be at least Plan::workspace_size() (256)");
  EXPECT_TRUE(call.outputs_are_untouched());
  call.args.workspace.size = 256;
  execute(made, call.args);
  EXPECT_EQ(fake.workspace_given, call.args.workspace.data);
}

TEST_F(Backend, IsNotReadFromUnlessAsked) {
  fake.host_reads_device_memory = false;
  Call call = Call::packed();
  call.args.cu_seqlens_q = call.vector<std::int64_t>(DType::int64, {0, 2, 1, 5});
  fake.copied = fake.synchronized = 0;
  call.run();
  EXPECT_EQ(fake.copied, 0);
  EXPECT_EQ(fake.synchronized, 0);
  EXPECT_EQ(fake.launched, 1);

  for (const char* off : {"0", ""}) {
    const Environment look("TESSERA_CHECK_VALUES", off);
    call.run();
    EXPECT_EQ(fake.copied, 0);
  }
  const Environment look("TESSERA_CHECK_VALUES", "1");
  const Thrown thrown = thrown_by([&] { call.run(); });
  EXPECT_EQ(thrown.text, "cu_seqlens_q[2] is 1; must be at least cu_seqlens_q[1] (2)");
  EXPECT_GT(fake.copied, 0);
  EXPECT_GT(fake.synchronized, 0);
}

TEST_F(Backend, IsNotAskedInOtherWords) {
  for (const char* name : {"TESSERA_CHECK_VALUES", "TESSERA_SYNC_LAUNCHES"}) {
    for (const char* value : {"x", "yes", "2", "01"}) {
      const Environment look(name, value);
      Call call = Call::dense();
      const Thrown thrown = thrown_by([&] { call.run(); });
      EXPECT_EQ(thrown.text,
                std::string(name) + " is " + value + "; must be 1, or 0 or absent to be off");
      EXPECT_TRUE(call.outputs_are_untouched());
    }
  }
}

TEST_F(Backend, IsReadThroughCopiesWhenAsked) {
  fake.host_reads_device_memory = false;
  const Environment look("TESSERA_CHECK_VALUES", "1");
  Call packed = Call::packed();
  EXPECT_NO_THROW(packed.run());
  Call ranged = Call::dense();
  ranged.args.key_end = ranged.vector<std::int32_t>(DType::int32, {7, -7});
  EXPECT_EQ(thrown_by([&] { ranged.run(); }).text, "key_end[1] is -7; must be at least 0");
  EXPECT_TRUE(ranged.outputs_are_untouched());
}

TEST_F(Backend, IsWaitedForWhenAsked) {
  Call call = Call::dense();
  fake.synchronized = 0;
  call.run();
  EXPECT_EQ(fake.synchronized, 0);
  const Environment wait("TESSERA_SYNC_LAUNCHES", "1");
  call.run();
  EXPECT_EQ(fake.synchronized, 1);
  fake.capturing = true;  // a stream that is captured cannot be waited for
  call.run();
  fake.capturing = false;
  EXPECT_EQ(fake.synchronized, 1);
  fake.fails_to_synchronize = "bus error";
  const Thrown thrown = thrown_by([&] { call.run(); });
  fake.fails_to_synchronize.clear();
  EXPECT_EQ(thrown.kind, Thrown::Kind::DeviceError);
  EXPECT_EQ(thrown.text,
            "after forward.fake.small for forward fp32, query [2, 4, 5, 16], key [2, 2, 7, 16], "
            "dim_v 8, lse: bus error");
}

// The core's own share of the budget: 20 µs a plan, 20 µs a tiny call.
#ifndef TESSERA_INSTRUMENTED  // which says nothing of speed
TEST_F(Backend, CoreTakesMicroseconds) {
  Call call = Call::packed();
  call.args.query.extent.seq = call.args.key.extent.seq = call.args.value.extent.seq = 1;
  call.args.out.extent.seq = call.args.lse.extent.seq = 1;
  call.args.cu_seqlens_q = call.args.cu_seqlens_k = call.vector<std::int32_t>(DType::int32, {0, 1});
  call.options = {};
  const Problem problem = call.problem();
  const auto fastest = [](auto work) {
    auto best = std::chrono::nanoseconds::max();
    for (int i = 0; i < 500; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      work();
      best = std::min<std::chrono::nanoseconds>(best, std::chrono::steady_clock::now() - begin);
    }
    return best;
  };
  const Plan made = plan(problem);
  const auto planning = fastest([&] { plan(problem); });
  const auto executing = fastest([&] { execute(made, call.args); });
  RecordProperty("planning_ns", static_cast<int>(planning.count()));
  RecordProperty("executing_ns", static_cast<int>(executing.count()));
  EXPECT_LT(planning, std::chrono::microseconds(20));
  EXPECT_LT(executing, std::chrono::microseconds(20));
}
#endif

}  // namespace
}  // namespace tessera::testing

// Several threads launch the fake at once in plan_test.cpp; it then must not write its history.
namespace {
class QuietThreads : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& info) override {
    const std::string_view suite = info.test_suite_name();
    tessera::testing::set_recording(suite == "Backend" || suite == "Translation");
  }
};
const bool kInstalled = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new QuietThreads);
  return true;
}();
}  // namespace
