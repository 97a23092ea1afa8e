// What the generic backward and decode promise beyond the tolerance rule, which tests/conformance
// holds them to. Run with TESSERA_KERNEL=generic.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>
#include <tessera/attention.hpp>
#include <tessera/plan.hpp>

namespace tessera::testing {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// One call with its memory: Gaussian inputs, gradients full of NaN.
struct Call {
  static constexpr Extents kQuery{.batch = 2, .head = 4, .seq = 70, .dim = 40};
  static constexpr Extents kKey{.batch = 2, .head = 2, .seq = 50, .dim = 40};
  static constexpr Extents kValue{.batch = 2, .head = 2, .seq = 50, .dim = 24};
  static constexpr Extents kOut{.batch = 2, .head = 4, .seq = 70, .dim = 24};

  static std::size_t count(const Extents& e) {
    return static_cast<std::size_t>(e.batch * e.head * e.seq * e.dim);
  }

  explicit Call(Options o = {}) : options(o) {
    std::mt19937 generator(5);
    std::normal_distribution<float> normal;
    for (auto* input : {&query, &key, &value, &dout}) {
      for (float& x : *input) x = normal(generator);
    }
    args.query = ConstTensor::bhsd(query.data(), DType::fp32, kQuery);
    args.key = ConstTensor::bhsd(key.data(), DType::fp32, kKey);
    args.value = ConstTensor::bhsd(value.data(), DType::fp32, kValue);
    args.out = Tensor::bhsd(out.data(), DType::fp32, kOut);
    args.lse = Tensor::lse(lse.data(), 2, 4, 70);
    args.dout = ConstTensor::bhsd(dout.data(), DType::fp32, kOut);
    args.dq = Tensor::bhsd(dq.data(), DType::fp32, kQuery);
    args.dk = Tensor::bhsd(dk.data(), DType::fp32, kKey);
    args.dv = Tensor::bhsd(dv.data(), DType::fp32, kValue);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void run() {
    forward(args, options);
    const Plan made = plan(describe(args, options, Operation::backward));
    ASSERT_EQ(made.kernel(), "backward.generic") << "set TESSERA_KERNEL=generic";
    execute(made, args);
  }
  // Row `s` of head `h` of batch entry `b`.
  static const float* row(const std::vector<float>& data, const Extents& e, std::int64_t b,
                          std::int64_t h, std::int64_t s) {
    return data.data() + ((b * e.head + h) * e.seq + s) * e.dim;
  }
  static bool zero(const float* row, std::int64_t dim) {
    return std::all_of(row, row + dim, [](float x) { return x == 0; });
  }

  std::vector<float> query = std::vector<float>(count(kQuery)),
                     key = std::vector<float>(count(kKey)),
                     value = std::vector<float>(count(kValue)),
                     dout = std::vector<float>(count(kOut)), out = std::vector<float>(count(kOut)),
                     lse = std::vector<float>(560), dq = std::vector<float>(count(kQuery), kNaN),
                     dk = std::vector<float>(count(kKey), kNaN),
                     dv = std::vector<float>(count(kValue), kNaN);
  Args args;
  Options options;
};

// Its score cannot change its weight.
TEST(GenericGradients, RowsThatSeeOneKeyGiveExactlyZero) {
  Call call({.mask = Mask::window(0, 0, Alignment::TopLeft)});
  call.run();
  for (const float x : call.dq) ASSERT_EQ(x, 0);
  for (const float x : call.dk) ASSERT_EQ(x, 0);
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t s = 0; s < 50; ++s) {
        const float* const dv = Call::row(call.dv, Call::kValue, b, h, s);
        for (std::int64_t d = 0; d < 24; ++d) {
          const float one = Call::row(call.dout, Call::kOut, b, h * 2, s)[d];
          const float other = Call::row(call.dout, Call::kOut, b, h * 2 + 1, s)[d];
          ASSERT_NEAR(dv[d], one + other, 1e-5);
        }
      }
    }
  }
}

// The first 20 rows see nothing; nothing of them, of padding rows or of padding keys reaches a
// gradient, and theirs are 0.
TEST(GenericGradients, WhatNobodySeesIsZeroAndNotRead) {
  Call clean({.mask = Mask::causal(Alignment::BottomRight)});
  Call dirty({.mask = Mask::causal(Alignment::BottomRight)});
  const std::int32_t key_begin[] = {3, 0}, key_end[] = {45, 50}, query_end[] = {65, 70};
  for (Call* call : {&clean, &dirty}) {
    call->args.key_begin = {key_begin, DType::int32, 2};
    call->args.key_end = {key_end, DType::int32, 2};
    call->args.query_end = {query_end, DType::int32, 2};
  }
  for (std::int64_t h = 0; h < 4; ++h) {
    for (std::int64_t s = 0; s < 70; ++s) {
      for (std::int64_t b = 0; b < 2; ++b) {
        if (s >= 20 && s < query_end[b]) continue;
        std::fill_n(const_cast<float*>(Call::row(dirty.query, Call::kQuery, b, h, s)), 40, kNaN);
        std::fill_n(const_cast<float*>(Call::row(dirty.dout, Call::kOut, b, h, s)), 24, kNaN);
      }
    }
  }
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t s = 0; s < 50; ++s) {
      if (key_begin[0] <= s && s < key_end[0]) continue;
      std::fill_n(const_cast<float*>(Call::row(dirty.key, Call::kKey, 0, h, s)), 40, kNaN);
      std::fill_n(const_cast<float*>(Call::row(dirty.value, Call::kValue, 0, h, s)), 24, kNaN);
    }
  }
  clean.run();
  dirty.run();
  EXPECT_EQ(clean.dq, dirty.dq);
  EXPECT_EQ(clean.dk, dirty.dk);
  EXPECT_EQ(clean.dv, dirty.dv);
  for (std::int64_t h = 0; h < 4; ++h) {
    for (std::int64_t s = 0; s < 70; ++s) {
      EXPECT_EQ(Call::zero(Call::row(dirty.dq, Call::kQuery, 0, h, s), 40), s <= 23 || s >= 65);
      EXPECT_EQ(Call::zero(Call::row(dirty.dq, Call::kQuery, 1, h, s), 40), s <= 20);
    }
  }
  for (std::int64_t s = 0; s < 50; ++s) {
    EXPECT_EQ(Call::zero(Call::row(dirty.dv, Call::kValue, 0, 0, s), 24), s < 3 || s >= 45);
    EXPECT_EQ(Call::zero(Call::row(dirty.dk, Call::kKey, 0, 0, s), 40), s < 3 || s >= 45);
  }
}

// What forward.generic gave is what backward.generic computes again.
TEST(GenericGradients, KeepingChangesNoBit) {
  const Options options{.mask = Mask::causal(Alignment::TopLeft), .dropout = 0.2};
  Call kept(options), some(options), none(options);
  kept.run();
  for (Call* call : {&some, &none}) {
    forward(call->args, options);
    call->args.out = {};
  }
  none.args.lse = {};
  for (Call* call : {&some, &none}) {
    backward(call->args, options);
    EXPECT_EQ(call->dq, kept.dq);
    EXPECT_EQ(call->dk, kept.dk);
    EXPECT_EQ(call->dv, kept.dv);
  }
}

// Segments without rows, without keys, without both; the caller's workspace or none.
TEST(GenericGradients, PackedIsEachSegmentAlone) {
  constexpr Extents kRows{.batch = 1, .head = 4, .seq = 140, .dim = 40};
  constexpr Extents kKeys{.batch = 1, .head = 2, .seq = 100, .dim = 40};
  constexpr Extents kDims{.batch = 1, .head = 2, .seq = 100, .dim = 24};
  constexpr Extents kOut{.batch = 1, .head = 4, .seq = 140, .dim = 24};
  const std::int32_t starts_q[] = {0, 0, 33, 70, 70, 138}, starts_k[] = {0, 6, 40, 40, 40, 98};
  Call packed;  // of its memory, half the batch in length
  packed.args.query = ConstTensor::bhsd(packed.query.data(), DType::fp32, kRows);
  packed.args.key = ConstTensor::bhsd(packed.key.data(), DType::fp32, kKeys);
  packed.args.value = ConstTensor::bhsd(packed.value.data(), DType::fp32, kDims);
  packed.args.out = Tensor::bhsd(packed.out.data(), DType::fp32, kOut);
  packed.args.lse = Tensor::lse(packed.lse.data(), 1, 4, 140);
  packed.args.dout = ConstTensor::bhsd(packed.dout.data(), DType::fp32, kOut);
  packed.args.dq = Tensor::bhsd(packed.dq.data(), DType::fp32, kRows);
  packed.args.dk = Tensor::bhsd(packed.dk.data(), DType::fp32, kKeys);
  packed.args.dv = Tensor::bhsd(packed.dv.data(), DType::fp32, kDims);
  packed.args.cu_seqlens_q = {starts_q, DType::int32, 6};
  packed.args.cu_seqlens_k = {starts_k, DType::int32, 6};
  packed.run();
  const std::vector<float> dq = packed.dq, dk = packed.dk, dv = packed.dv;

  packed.args.out = {};
  packed.args.lse = {};
  const Plan made = plan(describe(packed.args, {}, Operation::backward));
  std::vector<float> workspace(made.workspace_size() / sizeof(float) + 64, kNaN);
  void* aligned = workspace.data();
  std::size_t space = workspace.size() * sizeof(float);
  ASSERT_NE(std::align(64, made.workspace_size(), aligned, space), nullptr);
  packed.args.workspace = {aligned, space};
  std::fill(packed.dq.begin(), packed.dq.end(), kNaN);
  execute(made, packed.args);
  const auto bits = [](const std::vector<float>& x) {
    return std::vector<std::uint32_t>(reinterpret_cast<const std::uint32_t*>(x.data()),
                                      reinterpret_cast<const std::uint32_t*>(x.data()) + x.size());
  };
  EXPECT_EQ(bits(packed.dq), bits(dq));
  EXPECT_EQ(bits(packed.dk), bits(dk));
  EXPECT_EQ(bits(packed.dv), bits(dv));

  for (std::int64_t h = 0; h < 4; ++h) {
    for (std::int64_t s = 138; s < 140; ++s)
      EXPECT_TRUE(std::isnan(*Call::row(dq, kRows, 0, h, s))) << "row of no segment";
    for (std::int64_t s = 33; s < 70; ++s)
      EXPECT_TRUE(Call::zero(Call::row(dq, kRows, 0, h, s), 40)) << "segment without keys";
  }
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t s = 0; s < 6; ++s)
      EXPECT_TRUE(Call::zero(Call::row(dk, kKeys, 0, h, s), 40)) << "segment without rows";
    for (std::int64_t s = 98; s < 100; ++s)
      EXPECT_TRUE(std::isnan(*Call::row(dv, kDims, 0, h, s))) << "key of no segment";
  }

  // The last segment, [70, 138) x [40, 98).
  Call alone;
  const auto part = [](auto tensor, std::int64_t first, std::int64_t rows) {
    using Pointer = decltype(tensor.data);
    const auto* data = static_cast<const float*>(tensor.data) + first * tensor.extent.dim;
    tensor.data = const_cast<float*>(data);
    static_assert(std::is_convertible_v<float*, Pointer>);
    tensor.extent.seq = rows;
    return tensor;
  };
  alone.args.query = part(packed.args.query, 70, 68);
  alone.args.key = part(packed.args.key, 40, 58);
  alone.args.value = part(packed.args.value, 40, 58);
  alone.args.out = {};
  alone.args.lse = {};
  alone.args.dout = part(packed.args.dout, 70, 68);
  alone.args.dq = Tensor::bhsd(alone.dq.data(), DType::fp32, {1, 4, 68, 40});
  alone.args.dk = Tensor::bhsd(alone.dk.data(), DType::fp32, {1, 2, 58, 40});
  alone.args.dv = Tensor::bhsd(alone.dv.data(), DType::fp32, {1, 2, 58, 24});
  backward(alone.args);
  for (std::int64_t h = 0; h < 4; ++h) {
    EXPECT_TRUE(std::equal(alone.dq.data() + h * 68 * 40, alone.dq.data() + (h + 1) * 68 * 40,
                           Call::row(dq, kRows, 0, h, 70)));
  }
  for (std::int64_t h = 0; h < 2; ++h) {
    EXPECT_TRUE(std::equal(alone.dk.data() + h * 58 * 40, alone.dk.data() + (h + 1) * 58 * 40,
                           Call::row(dk, kKeys, 0, h, 40)));
    EXPECT_TRUE(std::equal(alone.dv.data() + h * 58 * 24, alone.dv.data() + (h + 1) * 58 * 24,
                           Call::row(dv, kDims, 0, h, 40)));
  }
}

TEST(GenericDecode, IsForward) {
  Call call({.mask = Mask::causal(Alignment::BottomRight)});
  forward(call.args, call.options);
  const std::vector<float> out = call.out;
  std::fill(call.out.begin(), call.out.end(), kNaN);
  const Args args{.query = call.args.query,
                  .key = call.args.key,
                  .value = call.args.value,
                  .out = call.args.out};
  const Plan made = plan(describe(args, call.options, Operation::decode));
  EXPECT_EQ(made.kernel(), "decode.generic");
  execute(made, args);
  EXPECT_EQ(call.out, out);
}

}  // namespace
}  // namespace tessera::testing
