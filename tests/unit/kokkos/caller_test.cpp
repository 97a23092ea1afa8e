// A program that uses Kokkos itself: its Kokkos is respected, its views become tensors, its
// instances streams.

#include <cstring>
#include <memory>

#include <gtest/gtest.h>
#include <tessera/attention.hpp>
#include <tessera/buffer.hpp>
#include <tessera/info.hpp>
#include <tessera/kokkos.hpp>

#include "tests/unit/kokkos/call.hpp"

namespace tessera::testing {
namespace {

using Kokkos::LayoutRight;
using Kokkos::LayoutStride;

std::vector<float> compute(Stream stream = {}) {
  const SmallCall call;
  std::vector<float> out;
  forward(call.args(out), {}, stream);
  return out;
}

class OwnKokkos : public ::testing::Environment {
  void SetUp() override {
    Kokkos::initialize(
        Kokkos::InitializationSettings().set_num_threads(1).set_disable_warnings(true));
    buffer_ = std::make_unique<Buffer>(100);
  }
  void TearDown() override {
    ASSERT_TRUE(Kokkos::is_initialized()) << "Tessera finalised what it had not initialised";
    Kokkos::finalize();
    EXPECT_THROW(compute(), DeviceError);
    EXPECT_THROW(Stream().synchronize(), DeviceError);
    buffer_.reset();
  }
  std::unique_ptr<Buffer> buffer_;
};
const auto* const kOwnKokkos = ::testing::AddGlobalTestEnvironment(new OwnKokkos);

TEST(Caller, ItsSettingsHold) {
  ASSERT_NE(kOwnKokkos, nullptr);
  EXPECT_EQ(device_info().threads, 1);
  EXPECT_EQ(compute().size(), SmallCall::kCount);
}

TEST(Caller, ItsInstanceIsAStream) {
  const Kokkos::DefaultExecutionSpace space;
  const Stream stream = as_stream(space);
  EXPECT_EQ(stream.native(), &space);
  EXPECT_EQ(compute(stream), compute());
  stream.synchronize();
}

template <class T>
concept HasStream = requires(T&& space) { as_stream(std::forward<T>(space)); };
static_assert(HasStream<Kokkos::DefaultExecutionSpace&>);
static_assert(!HasStream<Kokkos::DefaultExecutionSpace>,
              "a temporary would not outlive the stream");

TEST(Views, ComputeWhatTheirMemoryDoes) {
  using View = Kokkos::View<float****, LayoutRight>;
  const SmallCall call;
  const Extents& e = SmallCall::kExtents;
  const auto view = [&](const char* name, const std::vector<float>& values) {
    View v(name, static_cast<std::size_t>(e.batch), static_cast<std::size_t>(e.head),
           static_cast<std::size_t>(e.seq), static_cast<std::size_t>(e.dim));
    std::memcpy(v.data(), values.data(), values.size() * sizeof(float));
    return v;
  };
  const View q = view("q", call.query), k = view("k", call.key), v = view("v", call.value),
             out = view("out", call.query);
  forward(
      {.query = as_tensor(q), .key = as_tensor(k), .value = as_tensor(v), .out = as_tensor(out)});
  const std::vector<float> expected = compute();
  EXPECT_EQ(std::memcmp(out.data(), expected.data(), expected.size() * sizeof(float)), 0);
}

TEST(Views, KeepShapeAndStrides) {
  const Kokkos::View<float****> right("right", 2, 3, 5, 8);
  const Tensor tensor = as_tensor(right);
  EXPECT_EQ(tensor.data, right.data());
  EXPECT_EQ(tensor.dtype, DType::fp32);
  EXPECT_EQ(tensor.extent, (Extents{2, 3, 5, 8}));
  EXPECT_EQ(tensor.stride, bhsd_strides(tensor.extent));

  const auto part = Kokkos::subview(right, 1, Kokkos::ALL, Kokkos::ALL,
                                    std::pair{0, 4});  // rank 3: a log-sum-exp
  EXPECT_EQ(as_tensor(part).extent, (Extents{3, 5, 4, 1}));
  EXPECT_EQ(as_tensor(part).stride, (Strides{40, 8, 1, 1}));

  // [batch][seq][head][dim] in memory
  const Kokkos::View<float****, LayoutStride> bshd(right.data(),
                                                   LayoutStride(2, 120, 3, 8, 5, 24, 8, 1));
  EXPECT_EQ(as_tensor(bshd).stride, bshd_strides({2, 3, 5, 8}));

  const Kokkos::View<const std::uint8_t****> mask =
      Kokkos::View<std::uint8_t****>("mask", 1, 1, 5, 5);
  static_assert(std::is_same_v<decltype(as_tensor(mask)), ConstTensor>);
  EXPECT_EQ(as_tensor(mask).dtype, DType::uint8);
}

TEST(Views, HalfTypes) {
  const Kokkos::View<std::uint16_t****> bits("bits", 1, 1, 2, 8);
  EXPECT_EQ(as_tensor(bits, DType::fp16).dtype, DType::fp16);
  EXPECT_EQ(as_tensor(bits, DType::bf16).dtype, DType::bf16);
  EXPECT_THROW(as_tensor(bits, DType::fp32), InvalidArgument);
  using Half = Kokkos::Experimental::half_t;
  using BHalf = Kokkos::Experimental::bhalf_t;
  EXPECT_EQ(as_tensor(Kokkos::View<Half****>("h", 1, 1, 2, 8)).dtype,
            sizeof(Half) == 2 ? DType::fp16 : DType::fp32);
  EXPECT_EQ(as_tensor(Kokkos::View<BHalf****>("b", 1, 1, 2, 8)).dtype,
            sizeof(BHalf) == 2 ? DType::bf16 : DType::fp32);
}

TEST(Views, RefuseAStridedLastAxis) {
  const Kokkos::View<float****> right("right", 2, 3, 8, 8);
  const Kokkos::View<float****, LayoutStride> transposed(right.data(),
                                                         LayoutStride(2, 192, 3, 64, 8, 1, 8, 8));
  try {
    as_tensor(transposed);
    FAIL() << "accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.argument(), "view.stride(3)");
    EXPECT_NE(std::string(error.what()).find("is 8; must be 1"), std::string::npos) << error.what();
  }
  // With one element there is nothing to stride over.
  const Kokkos::View<float****, LayoutStride> thin(right.data(),
                                                   LayoutStride(2, 192, 3, 64, 8, 8, 1, 8));
  EXPECT_EQ(as_tensor(thin).stride.dim, 1);
}

TEST(Views, Vectors) {
  const Kokkos::View<const std::int32_t*> ends = Kokkos::View<std::int32_t*>("ends", 3);
  const ConstVector vector = as_vector(ends);
  EXPECT_EQ(vector.data, ends.data());
  EXPECT_EQ(vector.dtype, DType::int32);
  EXPECT_EQ(vector.size, 3);
  const Kokkos::View<std::int64_t**> table("table", 4, 2);
  EXPECT_EQ(as_vector(Kokkos::subview(table, 1, Kokkos::ALL)).dtype, DType::int64);
  EXPECT_THROW(as_vector(Kokkos::subview(table, Kokkos::ALL, 1)), InvalidArgument);
}

}  // namespace
}  // namespace tessera::testing
