#include "bench/adapter.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/naive.hpp"
#include "bench/workload.hpp"

namespace tessera::bench {
namespace {

TEST(Adapter, RefusesWhatIsNone) {
  EXPECT_THROW(Adapter("/nowhere/at/all.so"), std::runtime_error);
  EXPECT_THROW(Adapter(TESSERA_LIBRARY), std::runtime_error);  // a library, but no adapter
}

TEST(Adapter, OptionsSurviveTheWay) {
  const tessera_options causal = to_c(Options{.mask = Mask::causal(Alignment::TopLeft)});
  EXPECT_EQ(causal.mask, tessera_mask_causal);
  EXPECT_EQ(causal.alignment, tessera_top_left);
  const tessera_options window =
      to_c(Options{.mask = Mask::window(std::nullopt, 3, Alignment::BottomRight), .dropout = 0.5});
  EXPECT_EQ(window.mask, tessera_mask_window);
  EXPECT_EQ(window.alignment, tessera_bottom_right);
  EXPECT_EQ(window.window_left, tessera_unbounded);
  EXPECT_EQ(window.window_right, 3);
  EXPECT_EQ(window.dropout, 0.5);
  EXPECT_EQ(to_c(Options{}).mask, tessera_mask_none);
}

// Through the C interface the same bits come out, with the arguments that to_c makes.
TEST(Adapter, ArgumentsSurviveTheWay) {
  for (const Extra extra :
       {Extra::None, Extra::Gqa4, Extra::Softcap, Extra::Alibi, Extra::Bias, Extra::Dropout}) {
    const Workload workload(
        {.dtype = DType::bf16, .visible = Visible::Causal, .seq = 70, .extra = extra});
    const std::size_t bytes = 8 * 70 * 64 * 2;
    std::vector<char> ours(bytes), through(bytes);
    forward(workload.args(), workload.options());
    copy(ours.data(), workload.args().out.data, bytes);
    const tessera_args args = to_c(workload.args());
    const tessera_options options = to_c(workload.options());
    copy(args.out.data, std::vector<char>(bytes).data(), bytes);
    ASSERT_EQ(tessera_forward(&args, &options, nullptr), tessera_ok) << tessera_last_error();
    copy(through.data(), workload.args().out.data, bytes);
    Stream{}.synchronize();
    EXPECT_EQ(ours, through) << name_of(workload.what());
  }
}

#ifdef TESSERA_BLAS_ADAPTER
std::vector<float> floats(const Tensor& t) {
  const Extents& e = t.extent;
  std::vector<float> host(static_cast<std::size_t>(e.batch * e.head * e.seq * e.dim));
  copy(host.data(), t.data, host.size() * sizeof(float));
  Stream{}.synchronize();
  return host;
}

TEST(BlasAdapter, ComputesWhatTheLoopsCompute) {
  const Adapter blas(TESSERA_BLAS_ADAPTER);
  EXPECT_EQ(blas.name(), "blas");
  EXPECT_TRUE(blas.has(Operation::forward) && blas.has(Operation::decode));
  EXPECT_FALSE(blas.has(Operation::backward));
  for (const Visible visible : {Visible::Full, Visible::Causal, Visible::Window}) {
    for (const Layout layout : {Layout::Bhsd, Layout::Bshd}) {
      for (const std::int64_t seq : {1, 37, 700}) {
        const Case c{.visible = visible, .seq = seq, .key_heads = 2, .layout = layout};
        const Workload workload(c);
        Args args = workload.args();
        Buffer lse(static_cast<std::size_t>(8 * seq) * sizeof(float));
        args.lse = Tensor::lse(static_cast<float*>(lse.data()), 1, 8, seq);
        naive_forward(args, workload.options(), 2);
        const std::vector<float> out = floats(args.out), sums = floats(args.lse);
        blas.call(Operation::forward, args, workload.options());
        const std::vector<float> found = floats(args.out), found_sums = floats(args.lse);
        for (std::size_t i = 0; i < out.size(); ++i)
          ASSERT_NEAR(found[i], out[i], 1e-5) << name_of(c) << " at " << i;
        for (std::size_t i = 0; i < sums.size(); ++i)
          ASSERT_NEAR(found_sums[i], sums[i], 1e-5) << name_of(c) << " at " << i;
      }
    }
  }
}

TEST(BlasAdapter, RowsThatSeeNothing) {
  const Adapter blas(TESSERA_BLAS_ADAPTER);
  const Workload queries({.seq = 300}), keys({.seq = 20});
  Args args = queries.args();
  args.key = keys.args().key;
  args.value = keys.args().value;
  Buffer lse(8 * 300 * sizeof(float));
  args.lse = Tensor::lse(static_cast<float*>(lse.data()), 1, 8, 300);
  blas.call(Operation::forward, args, {.mask = Mask::causal(Alignment::BottomRight)});
  const std::vector<float> out = floats(args.out), sums = floats(args.lse);
  for (std::size_t row = 0; row < 280; ++row) {
    ASSERT_EQ(out[row * 64 + 3], 0) << row;
    ASSERT_EQ(sums[row], -std::numeric_limits<float>::infinity()) << row;
  }
  EXPECT_TRUE(std::isfinite(sums[280]));
}

TEST(BlasAdapter, DeclinesTheRest) {
  const Adapter blas(TESSERA_BLAS_ADAPTER);
  const Workload half({.dtype = DType::bf16}), capped({.extra = Extra::Softcap});
  for (const Workload* workload : {&half, &capped}) {
    const Support support =
        blas.supports(Operation::forward, workload->args(), workload->options());
    EXPECT_FALSE(support);
    EXPECT_EQ(support.reason.substr(0, 6), "blas: ");
    EXPECT_THROW(blas.call(Operation::forward, workload->args(), workload->options()), Unsupported);
  }
  EXPECT_FALSE(blas.supports(Operation::backward, half.args(), half.options()));
  EXPECT_THROW(blas.call(Operation::backward, half.args(), half.options()), Unsupported);
}
#endif

}  // namespace
}  // namespace tessera::bench
