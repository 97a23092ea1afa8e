#include "bench/workload.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace tessera::bench {
namespace {

/// Pairs of a row and a key that it sees, one by one.
double visible_pairs(Visible visible, std::int64_t seq) {
  double pairs = 0;
  for (std::int64_t row = 0; row < seq; ++row) {
    for (std::int64_t key = 0; key < seq; ++key) {
      const bool seen = visible == Visible::Full ||
                        (key <= row && (visible == Visible::Causal || row - key < kWindow));
      pairs += seen ? 1 : 0;
    }
  }
  return pairs;
}

TEST(Workload, FlopsCountVisiblePairs) {
  for (const Visible visible : {Visible::Full, Visible::Causal, Visible::Window}) {
    for (const std::int64_t seq : {1, 16, 255, 256, 257, 700}) {
      const Case c{.head_dim = 64, .visible = visible, .seq = seq};
      // Two products, QK and PV, of 64 multiply-adds a pair.
      EXPECT_DOUBLE_EQ(flops_of(c), 2 * 2 * 64 * 8 * visible_pairs(visible, seq)) << name_of(c);
    }
  }
}

TEST(Workload, BytesCountEachOperandOnce) {
  EXPECT_EQ(bytes_of({.dtype = DType::fp32, .head_dim = 64, .visible = Visible::Full, .seq = 16}),
            4 * (8 * 16 * 64) * 4);
  EXPECT_EQ(bytes_of({.dtype = DType::bf16,
                      .head_dim = 64,
                      .visible = Visible::Full,
                      .seq = 16,
                      .extra = Extra::Gqa4}),
            2 * (8 + 2) * 16 * 64 * 2);
  EXPECT_EQ(bytes_of({.dtype = DType::bf16,
                      .head_dim = 64,
                      .visible = Visible::Full,
                      .seq = 16,
                      .extra = Extra::Bias}),
            4 * (8 * 16 * 64) * 2 + 8 * 16 * 16 * 4);
}

TEST(Workload, NamesAreTheAxes) {
  EXPECT_EQ(
      name_of({.dtype = DType::bf16, .head_dim = 128, .visible = Visible::Causal, .seq = 4096}),
      "bf16/d128/causal/s4096");
  EXPECT_EQ(name_of({.dtype = DType::fp16,
                     .head_dim = 64,
                     .visible = Visible::Window,
                     .seq = 16,
                     .extra = Extra::Gqa4}),
            "fp16/d64/window/s16/gqa4");
}

TEST(Workload, PosesTheProblemThatItsNameSays) {
  const Workload workload({.dtype = DType::bf16,
                           .head_dim = 128,
                           .visible = Visible::Causal,
                           .seq = 24,
                           .extra = Extra::Gqa4});
  const Problem problem = workload.problem();
  EXPECT_EQ(problem.query.dtype, DType::bf16);
  EXPECT_EQ(problem.query.extent, (Extents{.batch = 1, .head = 8, .seq = 24, .dim = 128}));
  EXPECT_EQ(problem.key.extent, (Extents{.batch = 1, .head = 2, .seq = 24, .dim = 128}));
  EXPECT_EQ(problem.options.mask, Mask::causal(Alignment::BottomRight));
  EXPECT_TRUE(supports(problem)) << supports(problem).reason;
}

TEST(Workload, BackwardAndDecodeCountTheirOwn) {
  const Case backward{.visible = Visible::Causal, .seq = 300, .operation = Operation::backward};
  EXPECT_DOUBLE_EQ(flops_of(backward), 2.5 * 2 * 2 * 64 * 8 * visible_pairs(Visible::Causal, 300));
  // q, k, v, out, dout read and dq, dk, dv written are as many as four pairs; lse is a float a row.
  EXPECT_EQ(bytes_of(backward), 8 * 8 * 300 * 64 * 4 + 8 * 300 * 4);
  const Case decode{.dtype = DType::bf16,
                    .head_dim = 128,
                    .visible = Visible::Causal,
                    .seq = 1000,
                    .extra = Extra::Gqa4,
                    .operation = Operation::decode,
                    .batch = 3};
  EXPECT_EQ(bytes_of(decode), 3 * 2 * 1000 * (128 + 128) * 2);
  EXPECT_DOUBLE_EQ(flops_of(decode), 2.0 * 3 * 8 * 1000 * (128 + 128));
  EXPECT_EQ(full_name_of(decode), "decode/bf16/d128/causal/s1000/gqa4");
}

TEST(Workload, APresetSaysItsBatchGroupsAndLayout) {
  const Case c{.dtype = DType::bf16,
               .head_dim = 192,
               .visible = Visible::Window,
               .seq = 40,
               .preset = "model",
               .batch = 2,
               .heads = 12,
               .key_heads = 3,
               .head_dim_v = 128,
               .window = 16,
               .layout = Layout::Bshd};
  EXPECT_EQ(full_name_of(c), "forward/bf16/d192/window/s40/model/b2/k3/bshd");
  const Problem problem = Workload(c).problem();
  EXPECT_EQ(problem.query.extent, (Extents{.batch = 2, .head = 12, .seq = 40, .dim = 192}));
  EXPECT_EQ(problem.value.extent, (Extents{.batch = 2, .head = 3, .seq = 40, .dim = 128}));
  EXPECT_EQ(problem.query.stride, bshd_strides(problem.query.extent));
  EXPECT_EQ(problem.options.mask, Mask::window(15, 0, Alignment::BottomRight));
  EXPECT_TRUE(supports(problem)) << supports(problem).reason;
}

TEST(Workload, DocumentsFillTheSequence) {
  for (const std::int64_t documents : {1, 2, 7, 64}) {
    const Case c{.visible = Visible::Causal, .seq = 500, .documents = documents};
    const std::vector<std::int64_t> lengths = document_lengths(c);
    EXPECT_EQ(std::ssize(lengths), documents);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), 500);
    EXPECT_GE(*std::min_element(lengths.begin(), lengths.end()), 1);
    double flops = 0;
    for (const std::int64_t length : lengths)
      flops += 2 * 2 * 64 * 8 * visible_pairs(Visible::Causal, length);
    EXPECT_NEAR(flops_of(c), flops, 1e-9 * flops);
    const Workload workload(c);
    EXPECT_EQ(workload.args().cu_seqlens_q.size, documents + 1);
    EXPECT_TRUE(supports(workload.problem())) << supports(workload.problem()).reason;
    Runner(workload).run();  // which looks at the prefix sums
  }
}

TEST(Workload, GradientsAreRunnable) {
  const Workload workload({.seq = 24, .extra = Extra::Gqa4, .operation = Operation::backward});
  const Runner runner(workload);
  runner.run();
  EXPECT_EQ(runner.kernel().substr(0, 9), "backward.");
}

TEST(Workload, DataAreNearlyStandardNormal) {
  constexpr std::int64_t kCount = 8 * 256 * 64;
  const Workload workload(
      {.dtype = DType::fp32, .head_dim = 64, .visible = Visible::Full, .seq = 256});
  std::vector<float> query(kCount), key(kCount);
  copy(query.data(), workload.args().query.data, kCount * sizeof(float));
  copy(key.data(), workload.args().key.data, kCount * sizeof(float));
  Stream{}.synchronize();
  EXPECT_NE(query, key);
  double sum = 0, squares = 0;
  for (const float x : query) {
    ASSERT_LE(std::abs(x), 4.9F);  // as reference/fill.hpp says
    sum += x;
    squares += double{x} * double{x};
  }
  EXPECT_NEAR(sum / kCount, 0, 0.02);  // 7 standard deviations of the mean
  EXPECT_NEAR(squares / kCount, 1, 0.02);
}

}  // namespace
}  // namespace tessera::bench
