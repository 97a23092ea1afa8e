// What looks odd and is right: empty problems, broadcasts, strides of single elements, outputs
// between inputs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/src/call.hpp"

namespace tessera::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> read(const void* data, std::size_t count) {
  std::vector<float> numbers(count);
  copy(numbers.data(), data, count * sizeof(float));
  Stream{}.synchronize();
  return numbers;
}

void set_extent(Call& c, std::int64_t Extents::* axis, std::int64_t to,
                std::initializer_list<ConstTensor*> inputs) {
  for (ConstTensor* tensor : inputs) {
    tensor->extent.*axis = to;
    tensor->stride = bhsd_strides(tensor->extent);
  }
  for (Tensor* tensor : {&c.args.out, &c.args.lse}) {
    tensor->extent.*axis = to;
    tensor->stride = bhsd_strides(tensor->extent);
  }
}

TEST(Legal, EmptyBatch) {
  Call call = Call::dense();
  set_extent(call, &Extents::batch, 0, {&call.args.query, &call.args.key, &call.args.value});
  EXPECT_NO_THROW(call.run());
  EXPECT_EQ(plan(call.problem()).kernel(), "forward.empty");
  EXPECT_TRUE(call.outputs_are_untouched());
}

TEST(Legal, EmptyBatchWithoutData) {
  Args args;
  args.query = ConstTensor::bhsd(nullptr, DType::bf16, {0, 4, 5, 16});
  args.key = ConstTensor::bhsd(nullptr, DType::bf16, {0, 2, 7, 16});
  args.value = ConstTensor::bhsd(nullptr, DType::bf16, {0, 2, 7, 8});
  args.out = Tensor::bhsd(nullptr, DType::bf16, {0, 4, 5, 8});
  EXPECT_NO_THROW(forward(args));
}

TEST(Legal, NoHeads) {
  Call call = Call::dense();
  set_extent(call, &Extents::head, 0, {&call.args.query, &call.args.key, &call.args.value});
  EXPECT_NO_THROW(call.run());
  EXPECT_TRUE(call.outputs_are_untouched());
}

TEST(Legal, NoQueries) {
  Call call = Call::dense();
  set_extent(call, &Extents::seq, 0, {&call.args.query});
  EXPECT_NO_THROW(call.run());
  EXPECT_TRUE(call.outputs_are_untouched());
}

void drop_keys(Call& call) {
  for (ConstTensor* tensor : {&call.args.key, &call.args.value}) {
    tensor->extent.seq = 0;
    tensor->data = nullptr;
  }
}

TEST(Legal, NoKeysGiveZeroAndMinusInfinity) {
  Call call = Call::dense();
  drop_keys(call);
  call.run();
  const std::vector<float> out = call.out();
  EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](float x) { return x == 0; }));
  for (const float lse : read(call.args.lse.data, 40)) EXPECT_EQ(lse, -kInfinity);
}

TEST(Legal, NoKeysButSinks) {
  Call call = Call::dense();
  drop_keys(call);
  const std::vector<float> sinks{1, -2, 0.5f, 3};
  call.args.sinks = ConstTensor::per_head(call.vector(DType::fp32, sinks).data, DType::fp32, 4);
  call.run();
  const std::vector<float> out = call.out();
  EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](float x) { return x == 0; }));
  const std::vector<float> lse = read(call.args.lse.data, 40);
  for (std::size_t i = 0; i < lse.size(); ++i) EXPECT_FLOAT_EQ(lse[i], sinks[i / 5 % 4]);
}

TEST(Legal, PackedWithoutRows) {
  Call call = Call::packed();
  for (ConstTensor* tensor : {&call.args.query, &call.args.key, &call.args.value})
    tensor->extent.seq = 0;
  call.args.out.extent.seq = call.args.lse.extent.seq = 0;
  call.args.cu_seqlens_q = call.vector<std::int32_t>(DType::int32, {0, 0, 0});
  call.args.cu_seqlens_k = call.args.cu_seqlens_q;
  call.options.max_seq_q = call.options.max_seq_k = 0;
  EXPECT_NO_THROW(call.run());
  EXPECT_TRUE(call.outputs_are_untouched());
}

TEST(Legal, PackedWithoutSegments) {
  Call call = Call::packed();
  call.args.cu_seqlens_q = call.vector<std::int32_t>(DType::int32, {0});
  call.args.cu_seqlens_k = call.args.cu_seqlens_q;
  EXPECT_NO_THROW(call.run());
  EXPECT_TRUE(call.outputs_are_untouched());
}

TEST(Legal, PackedRowsBeyondTheLastSegmentAreNotWritten) {
  Call call = Call::packed();
  call.args.cu_seqlens_q = call.vector<std::int32_t>(DType::int32, {0, 2, 2, 3});
  call.run();
  const std::vector<float> out = call.out();  // [5][4][8]
  const float pattern = Call::packed().out().front();
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i] == pattern, i >= 3 * 4 * 8) << i;
}

TEST(Legal, PackedLikeOneByOne) {
  Call whole = Call::packed();
  whole.run();
  // The last segment alone: rows 2 to 4, keys 4 and 5.
  Call part = Call::packed();
  const auto from = [](auto& tensor, std::int64_t row, std::int64_t rows) {
    using Byte = std::conditional_t<std::is_same_v<decltype(tensor.data), void*>, char, const char>;
    tensor.data = static_cast<Byte*>(tensor.data) + row * tensor.stride.seq * 4;
    tensor.extent.seq = rows;
  };
  from(part.args.query, 2, 3);
  from(part.args.key, 4, 2);
  from(part.args.value, 4, 2);
  from(part.args.out, 2, 3);
  from(part.args.lse, 2, 3);
  part.args.cu_seqlens_q = part.args.cu_seqlens_k = {};
  part.options = {};
  part.run();
  const std::vector<float> a = whole.out(), b = part.out();
  for (std::size_t i = 2 * 32; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6) << i;
}

TEST(Legal, BroadcastsByExtentAndByStride) {
  Call full = Call::dense(), by_extent = Call::dense(), by_stride = Call::dense();
  const std::vector<float> row{0.5f, -1, 2, 0, -0.25f, 1, 3};
  std::vector<float> all;
  for (int i = 0; i < 2 * 4 * 5; ++i) all.insert(all.end(), row.begin(), row.end());
  const Extents scores{2, 4, 5, 7};
  full.args.bias = ConstTensor::bhsd(full.vector(DType::fp32, all).data, DType::fp32, scores);
  by_extent.args.bias =
      ConstTensor::bhsd(by_extent.vector(DType::fp32, row).data, DType::fp32, {1, 1, 1, 7});
  by_stride.args.bias = {
      by_stride.vector(DType::fp32, row).data, DType::fp32, scores, {0, 0, 0, 1}};
  for (const Call* call : {&full, &by_extent, &by_stride}) call->run();
  EXPECT_EQ(full.out(), by_extent.out());
  EXPECT_EQ(full.out(), by_stride.out());
  EXPECT_FALSE(full.outputs_are_untouched());
}

TEST(Legal, KeysBroadcastOverTheBatch) {
  Call call = Call::dense();
  call.args.key.stride.batch = call.args.value.stride.batch = 0;
  EXPECT_NO_THROW(call.run());
}

TEST(Legal, StrideOfASingleElementMeansNothing) {
  Call call = Call::dense(), plain = Call::dense();
  const auto shrink = [](Call& c) {
    for (ConstTensor* tensor : {&c.args.query, &c.args.key, &c.args.value})
      tensor->extent.batch = 1;
    c.args.out.extent.batch = c.args.lse.extent.batch = 1;
  };
  shrink(call);
  shrink(plain);
  const Plan planned = plan(plain.problem());
  call.args.query.stride.batch = -5;
  call.args.key.stride.batch = std::numeric_limits<std::int64_t>::max();
  call.args.out.stride.batch = 0;
  call.args.lse.stride.dim = 12345;
  call.run();
  plain.run();
  EXPECT_EQ(call.out(), plain.out());
  EXPECT_NO_THROW(execute(planned, call.args));
}

// query, key, value and out are slices of one [batch][seq][4][head][dim] array.
TEST(Legal, OutBetweenTheInputs) {
  constexpr std::int64_t kBatches = 2, kRows = 9, kHeads = 3, kDim = 16;
  Call call;
  char* all = static_cast<char*>(call.inputs(4 * kBatches * kRows * 4 * kHeads * kDim));
  const Extents extent{kBatches, kHeads, kRows, kDim};
  const Strides stride{kRows * 4 * kHeads * kDim, kDim, 4 * kHeads * kDim, 1};
  const auto slice = [&](std::int64_t i) { return all + i * kHeads * kDim * 4; };
  call.args.query = {slice(0), DType::fp32, extent, stride};
  call.args.key = {slice(1), DType::fp32, extent, stride};
  call.args.value = {slice(2), DType::fp32, extent, stride};
  call.args.out = {slice(3), DType::fp32, extent, stride};
  EXPECT_NO_THROW(call.run());
  call.args.out.data = slice(3) - 4;
  EXPECT_TRUE(
      matches(thrown_by([&] { call.run(); }).text, "out is at 0x*; must not overlap value, *"));
}

TEST(Legal, ZeroAndNegativeScale) {
  for (const float scale : {0.0f, -1.5f, 2.358e38f, -2.358e38f, 1.1754944e-38f}) {
    Call call = Call::dense();
    call.args.scale = scale;
    call.run();
    EXPECT_FALSE(call.outputs_are_untouched());
  }
}

TEST(Legal, EndsBeyondTheSequenceAreClamped) {
  Call plain = Call::dense(), clamped = Call::dense();
  clamped.args.key_end = clamped.vector<std::int32_t>(DType::int32, {1000, 7});
  clamped.args.query_end =
      clamped.vector<std::int32_t>(DType::int32, {5, std::numeric_limits<std::int32_t>::max()});
  clamped.args.key_begin = clamped.vector<std::int32_t>(DType::int32, {0, 0});
  plain.run();
  clamped.run();
  EXPECT_EQ(plain.out(), clamped.out());
}

TEST(Legal, RangeThatEndsBeforeItBeginsSeesNothing) {
  Call call = Call::dense();
  call.args.key_begin = call.vector<std::int32_t>(DType::int32, {5, 100});
  call.args.key_end = call.vector<std::int32_t>(DType::int32, {3, 7});
  call.run();
  const std::vector<float> out = call.out();
  EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](float x) { return x == 0; }));
}

TEST(Legal, HeadDimensions) {
  for (const auto& [dim, dim_v] : {std::pair{8, 8}, {16, 64}, {64, 16}, {40, 24}}) {
    Problem problem = Call::dense().problem();
    for (TensorSpec* spec : {&problem.query, &problem.key}) spec->extent.dim = dim;
    for (TensorSpec* spec : {&problem.value, &*problem.out}) spec->extent.dim = dim_v;
    for (TensorSpec* spec : {&problem.query, &problem.key, &problem.value, &*problem.out}) {
      spec->stride = bhsd_strides(spec->extent);
    }
    EXPECT_TRUE(supports(problem)) << supports(problem).reason;
  }
}

TEST(Legal, Everything) {
  Call call = Call::everything();
  call.run();
  for (const float x : call.out()) EXPECT_TRUE(std::isfinite(x));
}

}  // namespace
}  // namespace tessera::testing
