// Masks, ranges and score modifiers at their edges.

#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

TEST(Masks, BooleanRowsWithNothingVisible) {
  for (const DType dtype : kTypes) {
    const Case c{.label = "hidden_rows",
                 .dtype = dtype,
                 .batch = 2,
                 .head_q = 2,
                 .head_k = 1,
                 .seq_q = 70,
                 .seq_k = 130,
                 .boolean_mask = true};
    expect_passes(c, [](Operands& o) {
      for (const std::int64_t row : {0, 1, 15, 16, 63, 64, 69}) {
        set_row(o.boolean_mask, 0, 0, row, 0);
        set_row(o.boolean_mask, 1, 1, row, 0);
      }
    });
    expect_passes(c, [](Operands& o) { set_all(o.boolean_mask, 0); });
  }
}

TEST(Masks, BooleanTilesWithNothingVisible) {
  // Keys [0, 128) hidden for all, then a single visible key at each place of a tile.
  for (const std::int64_t key : {128, 191, 192, 255, 256, 299}) {
    expect_passes({.label = "hidden_tiles",
                   .dtype = DType::bf16,
                   .seq_q = 33,
                   .seq_k = 300,
                   .boolean_mask = true},
                  [&](Operands& o) {
                    set_all(o.boolean_mask, 0);
                    set_column(o.boolean_mask, 0, 0, key, 255);
                  });
  }
}

TEST(Masks, MostNegativeFiniteBias) {
  for (const DType dtype : kTypes) {
    for (const Bias bias : {Bias::fp32, Bias::input}) {
      const double low = lowest(bias == Bias::fp32 ? DType::fp32 : dtype);
      Case c{.label = "field_lowest",
             .dtype = dtype,
             .head_q = 2,
             .head_k = 2,
             .seq_q = 65,
             .seq_k = 441,
             .bias = bias};
      expect_passes(c, [&](Operands& o) {  // over the first 128 keys of all rows
        set_where(o.bias, low, [](auto, auto, auto, auto key) { return key < 128; });
      });
      c.lse = low > -1e5;                  // saturated otherwise: see LseOfScoresThatOverflowBase2
      expect_passes(c, [&](Operands& o) {  // whole rows: uniform but for fp16, where it is ordinary
        for (const std::int64_t row : {0, 7, 63, 64}) set_row(o.bias, 0, 0, row, low);
      });
    }
  }
}

TEST(Masks, RowOfMostNegativeFiniteBiasIsUniform) {
  Operands operands({.dtype = DType::bf16,
                     .seq_q = 17,
                     .seq_k = 64,
                     .bias = Bias::input,
                     .distribution = Distribution::integers});
  set_all(operands.bias, lowest(DType::bf16));
  on_each_kernel(operands, [&](const Kernel& kernel) {
    for (std::int64_t d = 0; d < 64; ++d) {
      double sum = 0;
      for (std::int64_t k = 0; k < 64; ++k) sum += operands.value.get(0, 0, k, d);
      for (std::int64_t row = 0; row < 17; ++row) {
        ASSERT_NEAR(operands.out.get(0, 0, row, d), sum / 64, std::fabs(sum) * 0x1p-14)
            << kernel.name << " row " << row;
      }
    }
  });
}

TEST(Masks, LseOfScoresThatOverflowBase2) {
  // Kernels count in base 2: a score whose product with log2(e) leaves fp32 saturates there, and
  // lse is the largest finite number times ln(2), the same on every backend.
  const double limit = -lowest(DType::fp32) * std::log(2.0);
  for (const double size : {-3.4e38, -2.4e38, 2.4e38, 3.4e38}) {
    Operands operands({.seq_q = 17, .seq_k = 65, .bias = Bias::fp32});
    set_all(operands.bias, size);
    on_each_kernel(operands, [&](const Kernel& kernel) {
      operands.lse.each([&](auto b, auto h, auto s, auto d) {
        ASSERT_NEAR(operands.lse.get(b, h, s, d) / std::copysign(limit, size), 1, 1e-6)
            << kernel.name;
      });
    });
  }
}

TEST(Masks, BiasOfMinusInfinityHides) {
  for (const DType dtype : kTypes) {
    for (const Bias bias : {Bias::fp32, Bias::input}) {
      expect_passes({.label = "minus_infinity",
                     .dtype = dtype,
                     .head_q = 2,
                     .head_k = 1,
                     .seq_q = 70,
                     .seq_k = 200,
                     .bias = bias},
                    [](Operands& o) {
                      set_where(o.bias, -kInfinity, [](auto, auto, auto row, auto key) {
                        return row % 5 == 0 || key < 70 || key % 3 == row % 3;
                      });
                    });
    }
  }
}

TEST(Masks, KeyPaddingAsBroadcastBias) {
  for (const unsigned by_stride : {0u, kByStride}) {
    expect_passes({.label = "padding_bias",
                   .dtype = DType::bf16,
                   .batch = 3,
                   .head_q = 2,
                   .head_k = 2,
                   .seq_q = 65,
                   .seq_k = 127,
                   .bias = Bias::input,
                   .bias_broadcast = kOverHead | kOverRow | by_stride},
                  [](Operands& o) {
                    set_each(o.bias, [](auto b, auto, auto, auto key) {
                      return key >= 40 * (b + 1) ? lowest(DType::bf16) : 0.0;
                    });
                  });
  }
}

TEST(Masks, Windows) {
  for (const Alignment alignment : kAlignments) {
    for (const auto& [left, right] :
         std::initializer_list<std::pair<std::int64_t, std::int64_t>>{{0, 0},
                                                                      {1, 0},
                                                                      {0, 1},
                                                                      {63, 0},
                                                                      {64, 0},
                                                                      {65, 64},
                                                                      {256, 0},
                                                                      {kHuge, 0},
                                                                      {0, kHuge},
                                                                      {kHuge, kHuge},
                                                                      {kHuge - 1, 5}}) {
      for (const std::int64_t seq_k : {130, 257, 300}) {
        expect_passes({.label = "window",
                       .dtype = DType::bf16,
                       .head_q = 2,
                       .head_k = 1,
                       .seq_q = 257,
                       .seq_k = seq_k,
                       .dim = 16,
                       .dim_v = 16,
                       .mask = Mask::window(left, right, alignment)});
      }
    }
    expect_passes({.label = "open_window",
                   .dtype = DType::fp32,
                   .seq_q = 130,
                   .seq_k = 100,
                   .mask = Mask::window(std::nullopt, std::nullopt, alignment),
                   .alibi = Alibi::per_head});
  }
}

TEST(Masks, RangesAtTheirEdges) {
  for (const Alignment alignment : kAlignments) {
    for (const Mask mask : {Mask::none(), Mask::causal(alignment), Mask::window(9, 3, alignment)}) {
      for (const DType dtype : kTypes) {
        // Beyond the extents, empty, reversed, a single slot, everything.
        expect_passes({.label = "range_edges",
                       .dtype = dtype,
                       .batch = 8,
                       .head_q = 2,
                       .head_k = 1,
                       .seq_q = 65,
                       .seq_k = 130,
                       .dim = 16,
                       .dim_v = 16,
                       .mask = mask,
                       .key_begin = {0, 0, 64, 100, 129, 130, 64, 500},
                       .key_end = {130, 1000, 64, 50, 130, 130, 65, 2'000'000'000},
                       .query_end = {65, 70, 0, 65, 1, 64, 2'000'000'000, 33}});
      }
    }
  }
}

TEST(Masks, EachRangeAlone) {
  for (const Mask mask : {Mask::none(), Mask::causal(Alignment::BottomRight)}) {
    for (Case c : {Case{.label = "left_padding", .key_begin = {0, 1, 64, 70}},
                   Case{.label = "right_padding", .key_end = {70, 69, 1, 0}},
                   Case{.label = "query_end", .query_end = {70, 69, 1, 0}}}) {
      c.dtype = DType::bf16;
      c.batch = 4;
      c.seq_q = c.seq_k = 70;
      c.mask = mask;
      expect_passes(c);
    }
  }
}

TEST(Masks, SlidingWindowOver257) {
  for (const DType dtype : kTypes) {
    expect_passes({.label = "field_257",
                   .dtype = dtype,
                   .head_q = 2,
                   .head_k = 2,
                   .seq_q = 257,
                   .seq_k = 257,
                   .mask = Mask::window(64, 0, Alignment::BottomRight)});
  }
}

TEST(Modifiers, SoftcapComesBeforeBiasAndAlibi) {
  const auto raise = [](Operands& o) { multiply_all(o.bias, 4); };
  for (const DType dtype : kTypes) {
    Case c{.label = "field_softcap_order",
           .dtype = dtype,
           .head_q = 2,
           .head_k = 2,
           .seq_q = 65,
           .seq_k = 127,
           .softcap = 1.5f,
           .bias = Bias::fp32,
           .distribution = Distribution::large};
    expect_passes(c, raise);
    c.mask = Mask::causal(Alignment::BottomRight);
    c.alibi = Alibi::per_head;
    expect_passes(c, raise);
  }
}

TEST(Modifiers, SoftcapExtremes) {
  for (const float cap : {1e-6f, 0.01f, 1e4f, 1e30f}) {
    expect_passes({.label = "softcap",
                   .dtype = DType::fp32,
                   .seq_q = 65,
                   .seq_k = 127,
                   .softcap = cap,
                   .distribution = Distribution::large,
                   .gradients = false});
  }
}

TEST(Modifiers, AlibiTakesTheMasksDiagonal) {
  const auto steep = [](Operands& o) { multiply_all(o.alibi_slopes, 32); };
  for (const std::int64_t seq_q : {33, 130, 200}) {
    for (const Mask mask :
         {Mask::none(), Mask::causal(Alignment::TopLeft), Mask::causal(Alignment::BottomRight),
          Mask::window(20, 20, Alignment::TopLeft)}) {
      for (const bool negative : {false, true}) {
        Case c{.label = "alibi",
               .dtype = DType::fp32,
               .batch = 2,
               .head_q = 3,
               .head_k = 3,
               .seq_q = seq_q,
               .seq_k = 130,
               .mask = mask,
               .alibi = Alibi::per_batch,
               .negative_slopes = negative};
        expect_passes(c, steep);
        c.label = "alibi_ranges";
        c.dtype = DType::bf16;
        c.key_begin = {3, 0};
        c.key_end = {100, 130};
        c.query_end = {33, 20};
        c.alibi = Alibi::per_head;
        expect_passes(c);
      }
    }
  }
}

TEST(Modifiers, Sinks) {
  for (const std::int64_t heads : {1, 2, 3, 5, 7, 9, 13}) {
    expect_passes({.label = "field_odd_sinks",
                   .dtype = DType::bf16,
                   .head_q = heads,
                   .head_k = 1,
                   .seq_q = 33,
                   .seq_k = 65,
                   .sinks = true,
                   .exact_end = true});
  }
  // 80 leaves weights of 1e-35; smaller ones may be flushed to 0 where processors do that.
  for (const double sink : {-kInfinity, -1e30, -200.0, 0.0, 80.0, 1e30, 2.3e38}) {
    for (const DType dtype : kTypes) {
      // A sink that takes all leaves outputs of 0 or next to it.
      expect_passes({.label = "sink",
                     .dtype = dtype,
                     .head_q = 2,
                     .head_k = 2,
                     .seq_q = 65,
                     .seq_k = 64,
                     .mask = Mask::causal(Alignment::BottomRight),
                     .sinks = true},
                    [&](Operands& o) { set_all(o.sinks, sink); });
    }
  }
}

TEST(Modifiers, DropoutProbabilities) {
  for (const double p : {0.0, 1e-9, 7.6e-6, 1.6e-5, 0.25, 0.5, 0.99999, 1.0}) {
    expect_passes({.label = "dropout",
                   .dtype = DType::fp32,
                   .batch = 2,
                   .head_q = 2,
                   .head_k = 2,
                   .seq_q = 65,
                   .seq_k = 130,
                   .dropout = p,
                   .seed = 0x123456789abcdef0u,
                   .offset = 0xfedcba9876543210u});
  }
}

TEST(Modifiers, DropoutOnRowsThatSeeNothing) {
  expect_passes({.label = "dropout_nothing",
                 .dtype = DType::bf16,
                 .batch = 1,
                 .seq_q = 130,
                 .seq_k = 65,
                 .mask = Mask::causal(Alignment::BottomRight),
                 .sinks = true,
                 .dropout = 0.5,
                 .seed = 5,
                 .seed_on_device = true});
}

TEST(Modifiers, Seq1025WithMaskAndModifier) {
  for (const DType dtype : kTypes) {
    expect_passes({.label = "field_1025",
                   .dtype = dtype,
                   .seq_q = 1025,
                   .seq_k = 1025,
                   .dim = 16,
                   .dim_v = 16,
                   .mask = Mask::causal(Alignment::BottomRight),
                   .softcap = 20,
                   .alibi = Alibi::per_head,
                   .bias = Bias::fp32,
                   .bias_broadcast = kOverHead | kOverRow,
                   .expensive = true});
  }
}

}  // namespace
}  // namespace tessera::testing
