// Accumulate::fp16: Q·Kᵀ and each tile's P·V are rounded to fp16. For fp16 inputs, forward and
// decode; a case of forward runs on decode's kernels, too.

#include <array>
#include <cmath>
#include <string>

#include <tessera/error.hpp>
#include <tessera/plan.hpp>

#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

constexpr std::array kMasks{
    Mask{}, Mask::causal(Alignment::BottomRight), Mask::causal(Alignment::TopLeft),
    Mask::window(20, 3, Alignment::BottomRight), Mask::window(7, std::nullopt, Alignment::TopLeft)};

Case rounded(Case c) {
  c.dtype = DType::fp16;
  c.accumulate = Accumulate::fp16;
  c.gradients = false;
  return c;
}

void expect_rounded_passes(const Case& c) { expect_passes(rounded(c)); }

TEST(AccumulateFp16, EveryLegalHeadDimension) {
  for (std::int64_t dim = 8; dim <= 256; dim += 8) {
    expect_rounded_passes({.label = "every_head",
                           .head_q = 2,
                           .head_k = 1,
                           .seq_q = 70,
                           .seq_k = 131,
                           .dim = dim,
                           .dim_v = dim,
                           .mask = kMasks[static_cast<std::size_t>(dim / 8) % kMasks.size()]});
  }
  expect_rounded_passes(
      {.label = "value_head", .seq_q = 65, .seq_k = 65, .dim = 192, .dim_v = 128});
  expect_rounded_passes({.label = "widest", .seq_q = 17, .seq_k = 65, .dim = 512, .dim_v = 512});
}

TEST(AccumulateFp16, MasksLengthsAndGroups) {
  constexpr std::array kHeads{std::pair{2, 2}, std::pair{5, 1}, std::pair{8, 2}};
  std::size_t i = 0;
  for (const Mask& mask : kMasks) {
    for (const auto& [seq_q, seq_k] :
         {std::pair{1, 1}, {1, 129}, {3, 257}, {17, 33}, {65, 63}, {127, 130}, {200, 77}}) {
      const auto& [head_q, head_k] = kHeads[i++ % kHeads.size()];
      expect_rounded_passes({.label = "lengths",
                             .batch = 2,
                             .head_q = head_q,
                             .head_k = head_k,
                             .seq_q = seq_q,
                             .seq_k = seq_k,
                             .dim = 40,
                             .dim_v = 40,
                             .mask = mask});
    }
  }
}

TEST(AccumulateFp16, Modifiers) {
  for (const std::int64_t seq_q : {2, 65}) {
    const Case plain{.label = "modifiers",
                     .batch = 2,
                     .head_q = 4,
                     .head_k = 2,
                     .seq_q = seq_q,
                     .seq_k = 150,
                     .mask = Mask::causal(Alignment::BottomRight),
                     .seed = 7};
    constexpr auto kChanges = std::to_array<void (*)(Case&)>({
        [](Case& c) { c.softcap = 5; },
        [](Case& c) { c.alibi = Alibi::per_head; },
        [](Case& c) { c.bias = Bias::fp32; },
        [](Case& c) { c.bias = Bias::input, c.bias_broadcast = kOverHead | kOverRow; },
        [](Case& c) { c.boolean_mask = true; },
        [](Case& c) { c.sinks = true; },
        [](Case& c) { c.dropout = 0.3; },
        [](Case& c) { c.scale = -0.2f; },
        [](Case& c) { c.key_begin = {3, 70}, c.key_end = {140, 71}, c.query_end = {65, 1}; },
        [](Case& c) { c.distribution = Distribution::large; },
        [](Case& c) { c.distribution = Distribution::skewed; },
    });
    Case all = plain;
    for (const auto& change : kChanges) {
      Case one = plain;
      change(one);
      expect_rounded_passes(one);
      change(all);
    }
    all.scale = {};
    expect_rounded_passes(all);
  }
}

TEST(AccumulateFp16, Packed) {
  for (const Mask& mask : kMasks) {
    expect_rounded_passes({.label = "packed",
                           .head_q = 6,
                           .head_k = 2,
                           .dim = 72,
                           .dim_v = 72,
                           .mask = mask,
                           .layout = Layout::bshd,
                           .packed = true,
                           .lengths_q = {1, 97, 0, 33, 64},
                           .lengths_k = {65, 97, 5, 0, 129},
                           .alibi = Alibi::per_head});
  }
}

TEST(AccumulateFp16, Layouts) {
  for (const Layout layout : {Layout::fused_qkv, Layout::transposed, Layout::padded,
                              Layout::unaligned, Layout::repeated_head, Layout::repeated_seq}) {
    expect_rounded_passes({.label = "layouts",
                           .batch = 2,
                           .head_q = 4,
                           .head_k = 2,
                           .seq_q = 67,
                           .seq_k = 67,
                           .dim = 24,
                           .dim_v = 24,
                           .layout = layout});
  }
}

TEST(AccumulateFp16, LongRows) {
  for (const Mask& mask : {kMasks[0], kMasks[1], Mask::window(500, 0, Alignment::BottomRight)}) {
    for (const std::int64_t seq_q : {1, 130}) {
      expect_rounded_passes({.label = "long",
                             .head_q = 2,
                             .head_k = 1,
                             .seq_q = seq_q,
                             .seq_k = 1025,
                             .dim = 32,
                             .dim_v = 32,
                             .mask = mask});
    }
  }
  for (const std::int64_t seq_k : {2049, 5000}) {
    Case c = rounded({.label = "cache",
                      .batch = 2,
                      .head_q = 8,
                      .head_k = 2,
                      .seq_q = 1,
                      .seq_k = seq_k,
                      .mask = Mask::causal(Alignment::BottomRight),
                      .operation = Operation::decode});
    c.key_end = {static_cast<std::int32_t>(seq_k), 1030};
    expect_passes(c);
  }
}

// 1.5 · 1367 = 2050.5 and 1.5 · 1366 = 2049 lie halfway and are rounded to 2050 and 2048: the
// scores differ by 2, not by 1.5.
TEST(AccumulateFp16, RoundsScoresToEven) {
  for (const std::int64_t seq_q : {1, 40}) {
    Case c = rounded({.label = "halfway", .seq_q = seq_q, .seq_k = 2, .dim = 8, .dim_v = 8});
    c.scale = 1.0f;
    Operands operands(c);
    for (const Slot* slot : {&operands.query, &operands.key, &operands.value}) set_all(*slot, 0);
    for (std::int64_t row = 0; row < seq_q; ++row) operands.query.set(0, 0, row, 3, 1.5);
    operands.key.set(0, 0, 0, 3, 1367);
    operands.key.set(0, 0, 1, 3, 1366);
    set_row(operands.value, 0, 0, 1, 1);
    const double weight = 1 / (1 + std::exp(2.0));
    on_each_kernel(operands, [&](const Kernel& kernel) {
      operands.out.each([&](auto b, auto h, auto s, auto d) {
        ASSERT_NEAR(operands.out.get(b, h, s, d), weight, 0x1p-10 * weight) << kernel.name;
      });
      operands.lse.each([&](auto b, auto h, auto s, auto d) {
        ASSERT_NEAR(operands.lse.get(b, h, s, d), 2050 - std::log1p(-weight), 2e-3) << kernel.name;
      });
    });
  }
}

// A score of ±70000 in row 1 and nowhere else. +∞ makes its row NaN; −∞ is a weight of 0, and the
// row's other key gets all of it.
TEST(AccumulateFp16, ScoreBeyondTheRangeShows) {
  for (const std::int64_t seq_q : {2, 40}) {
    for (const double sign : {1.0, -1.0}) {
      Operands operands(
          rounded({.label = "score", .seq_q = seq_q, .seq_k = 2, .dim = 16, .dim_v = 16}));
      for (const Slot* slot : {&operands.query, &operands.key}) set_all(*slot, 0);
      operands.query.set(0, 0, 1, 5, sign * 700);
      operands.key.set(0, 0, 0, 5, 100);
      set_row(operands.value, 0, 0, 0, 4);
      set_row(operands.value, 0, 0, 1, 8);
      on_each_kernel(operands, [&](const Kernel& kernel) {
        for (std::int64_t s = 0; s < seq_q; ++s) {
          const double wanted = s != 1 ? 6 : sign < 0 ? 8 : kNan;
          const double lse = s != 1 ? std::log(2) : sign < 0 ? 0 : kNan;
          for (std::int64_t d = 0; d < 16; ++d) {
            const double out = operands.out.get(0, 0, s, d);
            if (std::isnan(wanted)) {
              ASSERT_FALSE(std::isfinite(out)) << kernel.name;
            } else {
              ASSERT_EQ(out, wanted) << kernel.name << " row " << s;
            }
          }
          const double found = operands.lse.get(0, 0, s, 0);
          if (std::isnan(lse)) {
            ASSERT_FALSE(std::isfinite(found)) << kernel.name;
          } else {
            ASSERT_NEAR(found, lse, 2e-6) << kernel.name << " row " << s;
          }
        }
      });
    }
  }
}

// Two equal weights: P·V is the sum of two values before it is divided by two.
TEST(AccumulateFp16, OutputBeyondTheRangeShows) {
  for (const std::int64_t seq_q : {1, 40}) {
    Operands operands(
        rounded({.label = "value", .seq_q = seq_q, .seq_k = 2, .dim = 16, .dim_v = 16}));
    set_all(operands.query, 0);
    set_each(operands.value, [](auto, auto, auto, auto d) {
      return d == 3 ? 40000.0 : d == 4 ? -40000.0 : 30000.0;
    });
    on_each_kernel(operands, [&](const Kernel& kernel) {
      operands.out.each([&](auto b, auto h, auto s, auto d) {
        const double wanted = d == 3 ? kInfinity : d == 4 ? -kInfinity : 30000.0;
        ASSERT_EQ(operands.out.get(b, h, s, d), wanted) << kernel.name << " dim " << d;
      });
    });
  }
}

// Of other inputs it is a wrong argument; of gradients, something that is not there.
TEST(AccumulateFp16, IsRefusedElsewhere) {
  for (const Operation operation : {Operation::forward, Operation::decode, Operation::backward}) {
    for (const DType dtype : kTypes) {
      if (dtype == DType::fp16 && operation != Operation::backward) continue;
      const Case c{.label = "refused", .dtype = dtype, .operation = operation};
      Operands operands(c);
      prepare(operands);
      operands.options.accumulate = Accumulate::fp16;
      operands.poison_outputs();
      const Problem problem = describe(operands.args(Side::device), operands.options, operation);
      const auto wanted =
          dtype == DType::fp16 ? Support::Status::Unsupported : Support::Status::InvalidArgument;
      EXPECT_EQ(supports(problem).status, wanted) << name(c) << ": " << supports(problem).reason;
      EXPECT_NE(supports(problem).reason.find("Accumulate::fp16"), std::string::npos) << name(c);
      for (const Kernel& kernel : kernels(operation)) {
        if (!kernel.computes(dtype)) continue;
        const Execution done = execute_on(kernel, operands);
        EXPECT_NE(done.status, Execution::Status::done) << kernel.name;
        operands.download_outputs();
        for (const std::uint8_t byte : operands.result_bits()) ASSERT_EQ(byte, kPoison);
      }
      if (dtype == DType::fp16) ++tally().unsupported["gradients with fp16 accumulation"];
    }
  }
}

}  // namespace
}  // namespace tessera::testing
