// Numbers that break softmax: NaN and infinity where they may and may not show, and scores far from
// 0.

#include <string>
#include <vector>

#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

TEST(Values, PaddingReachesNobody) {
  for (const DType dtype : kTypes) {
    for (const double number : {kNan, kInfinity, -kInfinity}) {
      for (const std::int64_t end : {1, 63, 64, 65, 100, 127}) {
        const Case c{.label = "padding",
                     .dtype = dtype,
                     .batch = 2,
                     .head_q = 2,
                     .head_k = 1,
                     .seq_q = 65,
                     .seq_k = 130,
                     .dim = 40,
                     .dim_v = 40,
                     .key_begin = {1, static_cast<std::int32_t>(end - 1)},
                     .key_end = {static_cast<std::int32_t>(end), static_cast<std::int32_t>(end)}};
        expect_passes(c, [&](Operands& o) {
          for (const Slot* slot : {&o.key, &o.value}) {
            set_row(*slot, 0, 0, 0, number);
            set_rows(*slot, 1, 0, 0, end - 1, number);
            set_where(*slot, number, [&](auto, auto, auto key, auto) { return key >= end; });
          }
        });
      }
    }
  }
}

TEST(Values, BehindTheLastElementReachesNobody) {
  // The memory after the last key holds NaN in every case that does not end exactly there; here
  // infinity.
  for (const DType dtype : kTypes) {
    expect_passes(
        {.label = "behind", .dtype = dtype, .seq_q = 33, .seq_k = 67, .dim = 40, .dim_v = 40},
        [](Operands& o) {
          for (const Slot* slot : {&o.key, &o.value}) {
            Slot behind = *slot;
            behind.offset += 67 * 40;
            behind.extent = {.dim = 60};
            set_all(behind, kInfinity);
          }
        });
  }
}

TEST(Values, MaskedKeysReachNobody) {
  // The key is inside the length and hidden from some rows or all: by causality, window, boolean
  // mask or bias.
  for (const DType dtype : kTypes) {
    for (const double number : {kNan, kInfinity}) {
      // Nobody sees key 129 of 130 but the last row, which shows it.
      const Case causal{.label = "masked_key",
                        .dtype = dtype,
                        .seq_q = 130,
                        .seq_k = 130,
                        .mask = Mask::causal(Alignment::TopLeft),
                        .expects_nan = true};
      expect_passes(causal, [&](Operands& o) { set_row(o.key, 0, 0, 129, number); });
      const Case boolean{.label = "masked_key",
                         .dtype = dtype,
                         .head_q = 2,
                         .head_k = 2,
                         .seq_q = 65,
                         .seq_k = 130,
                         .boolean_mask = true,
                         .gradients = false};  // it may reach dq of rows of its tile
      expect_passes(boolean, [&](Operands& o) {
        for (const std::int64_t key : {0, 63, 64, 129}) {
          set_row(o.key, 0, 0, key, number);
          set_column(o.boolean_mask, 0, 0, key, 0);
        }
      });
      const Case bias{.label = "masked_key",
                      .dtype = dtype,
                      .seq_q = 65,
                      .seq_k = 130,
                      .bias = Bias::fp32,
                      .gradients = false};
      expect_passes(bias, [&](Operands& o) {
        for (const std::int64_t key : {3, 64}) {
          set_row(o.key, 0, 0, key, number);
          set_column(o.bias, 0, 0, key, -kInfinity);
        }
      });
    }
  }
}

TEST(Values, KeysThatNobodySeesHaveNoGradientWhateverTheirValues) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t rows : {1, 5, 13, 21, 50}) {
      for (const auto& [general, in_rows] :
           {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
        Operands o(Case{.label = "unseen_values",
                        .dtype = dtype,
                        .head_q = 2,
                        .seq_q = rows,
                        .seq_k = 70,
                        .dim = 16,
                        .dim_v = 16,
                        .mask = Mask::causal(Alignment::TopLeft),
                        .softcap = general ? 5.0f : 0.0f,
                        .operation = Operation::backward});
        for (std::int64_t key = rows; key < 70; ++key) set_row(o.value, 0, 0, key, kNan);
        if (in_rows) {
          set_row(o.query, 0, 0, 0, kNan);
          set_row(o.dout, 0, 1, rows - 1, kInfinity);
        }
        on_each_kernel(o, [&](const Kernel& kernel) {
          for (const Slot* slot : {&o.dk, &o.dv}) {
            slot->each([&](auto b, auto h, auto s, auto d) {
              if (s < rows) return;
              ASSERT_EQ(slot->get(b, h, s, d), 0)
                  << kernel.name << " rows " << rows << " key " << s;
            });
          }
        });
      }
    }
  }
}

TEST(Values, RowsThatSeeNoKeyHaveNoGradientWhateverTheKeys) {
  // The first 30 rows; in a tile with others, which see everything and show NaN.
  for (const DType dtype : kTypes) {
    for (const auto& [general, in_key] :
         {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
      Operands o(Case{.label = "blind_rows",
                      .dtype = dtype,
                      .head_q = 2,
                      .seq_q = 50,
                      .seq_k = 20,
                      .dim = 16,
                      .dim_v = 16,
                      .mask = Mask::causal(Alignment::BottomRight),
                      .softcap = general ? 5.0f : 0.0f,
                      .operation = Operation::backward});
      for (std::int64_t key = 0; key < 20; ++key)
        set_row(in_key ? o.key : o.value, 0, 0, key, kNan);
      on_each_kernel(o, [&](const Kernel& kernel) {
        o.dq.each([&](auto b, auto h, auto s, auto d) {
          const double number = o.dq.get(b, h, s, d);
          if (s < 30) {
            ASSERT_EQ(number, 0) << kernel.name << " row " << s;
          } else {
            ASSERT_TRUE(std::isnan(number)) << kernel.name << " row " << s;
          }
        });
      });
    }
  }
}

TEST(Values, NaNInDoutOfARowLeavesDkOfKeysThatItDoesNotSee) {
  // Row 5 sees six keys; it shares a tile with rows that see more. NaN in its query does the same
  // to dv.
  for (const DType dtype : kTypes) {
    for (const bool general : {false, true}) {
      for (const bool in_query : {false, true}) {
        Operands o(Case{.label = "bad_row",
                        .dtype = dtype,
                        .head_q = 2,
                        .seq_q = 50,
                        .seq_k = 50,
                        .dim = 16,
                        .dim_v = 16,
                        .mask = Mask::causal(Alignment::TopLeft),
                        .softcap = general ? 5.0f : 0.0f,
                        .operation = Operation::backward});
        for (std::int64_t head = 0; head < 2; ++head)
          set_row(in_query ? o.query : o.dout, 0, head, 5, kNan);
        on_each_kernel(o, [&](const Kernel& kernel) {
          const Slot& slot = in_query ? o.dv : o.dk;
          slot.each([&](auto b, auto h, auto s, auto d) {
            ASSERT_EQ(std::isnan(slot.get(b, h, s, d)), s <= 5) << kernel.name << " key " << s;
          });
        });
      }
    }
  }
}

TEST(Values, WeightsAtEveryDistanceFromTheMaximum) {
  // Two keys, of scores 0 and -x: the second weighs e^-x, down to the least normal number.
  constexpr std::int64_t kRows = 3000;
  const auto distance = [](std::int64_t row) { return 0.03125f * static_cast<float>(row); };
  for (const std::int64_t dim : {8, 64}) {
    Operands o(Case{
        .label = "distance", .seq_q = kRows, .seq_k = 2, .dim = dim, .dim_v = dim, .scale = 1.0f});
    set_each(o.query, [&](auto, auto, auto s, auto d) { return d == 0 ? distance(s) : 0.0f; });
    set_each(o.key, [](auto, auto, auto s, auto) { return s == 0 ? 0 : -1; });
    set_each(o.value, [](auto, auto, auto s, auto) { return s == 0 ? 0 : 1; });
    on_each_kernel(o, [&](const Kernel& kernel) {
      o.out.each([&](auto b, auto h, auto s, auto d) {
        const double x = distance(s), weight = std::exp(-x) / (1 + std::exp(-x));
        // 2^y to 2.5e-7, y = x·log2(e) rounded twice, and three roundings of the result; a weight
        // that is no normal number may be 0.
        const double bound = weight * (2.5e-7 + (x + 3) * 0x1p-23) + 0x1p-126;
        ASSERT_NEAR(o.out.get(b, h, s, d), weight, bound) << kernel.name << " at distance " << x;
      });
    });
  }
}

// Spoils every other value, so that each tile of keys holds some.
void spoil_values(Operands& o, double number) {
  set_where(o.value, number, [](auto, auto, auto s, auto d) { return (s + d) % 2 == 0; });
}

void expect_zeros_of_row(const Operands& o, std::int64_t row, const std::string& what) {
  o.out.each([&](auto b, auto h, auto s, auto d) {
    if (s == row) {
      ASSERT_EQ(o.out.get(b, h, s, d), 0) << what << " row " << row << " dim " << d;
    }
  });
}

TEST(Values, RowsThatSeeNothingAreZeroWhateverTheValues) {
  const std::vector<std::int64_t> hidden{0, 5, 31, 32, 64};
  for (const DType dtype : kTypes) {
    for (const double number : {kNan, kInfinity, -kInfinity}) {
      for (const bool by_bias : {false, true}) {
        const Case c{.label = "hidden_row",
                     .dtype = dtype,
                     .head_q = 2,
                     .head_k = 1,
                     .seq_q = 65,
                     .seq_k = 130,
                     .dim = 40,
                     .dim_v = 40,
                     .bias = by_bias ? Bias::fp32 : Bias::none,
                     .boolean_mask = !by_bias};
        Operands o(c);
        spoil_values(o, number);
        const Slot& hides = by_bias ? o.bias : o.boolean_mask;
        for (const std::int64_t row : hidden) {
          set_where(hides, by_bias ? -kInfinity : 0,
                    [&](auto, auto, auto s, auto) { return s == row; });
        }
        on_each_kernel(o, [&](const Kernel& kernel) {
          const std::string what = name(c) + ": " + kernel.name;
          for (const std::int64_t row : hidden) {
            expect_zeros_of_row(o, row, what);
            for (const std::int64_t head : {0, 1})
              EXPECT_EQ(o.lse.get(0, head, row, 0), -kInfinity) << what << " row " << row;
          }
        });
      }
    }
  }
}

// The first kUnseeing rows see no key.
constexpr std::int64_t kUnseeing = 65 - 33;
Case before_the_first_key(DType dtype) {
  return {.label = "before_the_first_key",
          .dtype = dtype,
          .head_q = 2,
          .head_k = 1,
          .seq_q = 65,
          .seq_k = 33,
          .dim = 40,
          .dim_v = 40,
          .mask = Mask::causal(Alignment::BottomRight)};
}

TEST(Values, RowsBeforeTheFirstKeyAreZeroWhateverTheValues) {
  for (const DType dtype : kTypes) {
    for (const double number : {kNan, kInfinity}) {
      const Case c = before_the_first_key(dtype);
      Operands o(c);
      spoil_values(o, number);
      on_each_kernel(o, [&](const Kernel& kernel) {
        const std::string what = name(c) + ": " + kernel.name;
        for (std::int64_t row = 0; row < kUnseeing; ++row) expect_zeros_of_row(o, row, what);
      });
    }
  }
}

TEST(Values, AllDroppedIsZeroWhateverTheValues) {
  for (const DType dtype : kTypes) {
    for (const double number : {kNan, kInfinity}) {
      const Case c{.label = "all_dropped",
                   .dtype = dtype,
                   .seq_q = 65,
                   .seq_k = 130,
                   .dim = 40,
                   .dim_v = 40,
                   .dropout = 1};
      Operands o(c);
      spoil_values(o, number);
      on_each_kernel(o, [&](const Kernel& kernel) {
        const std::string what = name(c) + ": " + kernel.name;
        for (std::int64_t row = 0; row < c.seq_q; ++row) {
          expect_zeros_of_row(o, row, what);
          EXPECT_TRUE(std::isfinite(o.lse.get(0, 0, row, 0))) << what << " row " << row;
        }
      });
    }
  }
}

// Neither does a score or a sink that is no number: rows at dropout 1, rows without a key.
TEST(Values, ZeroByDefinitionWhateverScoresAndSinks) {
  for (const DType dtype : kTypes) {
    for (const double number : {kNan, kInfinity}) {
      for (const bool all_dropped : {false, true}) {
        Case c = before_the_first_key(dtype);
        c.sinks = true;
        c.dropout = all_dropped ? 1 : 0;
        Operands o(c);
        set_each(o.sinks, [&](auto...) { return number; });
        if (all_dropped) set_where(o.key, number, [](auto, auto, auto s, auto) { return s == 7; });
        on_each_kernel(o, [&](const Kernel& kernel) {
          const std::string what = name(c) + ": " + kernel.name;
          for (std::int64_t row = 0; row < (all_dropped ? c.seq_q : kUnseeing); ++row)
            expect_zeros_of_row(o, row, what);
        });
      }
    }
  }
}

TEST(Values, NaNThatIsSeenShows) {
  for (const DType dtype : kTypes) {
    const Case c{.label = "seen",
                 .dtype = dtype,
                 .batch = 2,
                 .head_q = 2,
                 .head_k = 1,
                 .seq_q = 70,
                 .seq_k = 130,
                 .expects_nan = true};
    expect_passes(c, [](Operands& o) { set_row(o.query, 0, 1, 13, kNan); });
    expect_passes(c, [](Operands& o) { o.query.set(1, 0, 69, 5, kNan); });
    expect_passes(c, [](Operands& o) { o.key.set(0, 0, 77, 5, kNan); });
    expect_passes(c, [](Operands& o) { o.value.set(0, 0, 129, 63, kNan); });
    expect_passes(c, [](Operands& o) { set_all(o.query, kNan); });
    Case general = c;
    general.softcap = 10;
    general.sinks = true;
    expect_passes(general, [](Operands& o) { o.query.set(1, 0, 69, 5, kNan); });
    general.bias = Bias::fp32;
    expect_passes(general, [](Operands& o) { o.bias.set(1, 1, 3, 100, kNan); });
  }
}

TEST(Values, ScoreOfPlusInfinity) {
  // inf − inf is NaN in the row that sees it, and in no other.
  for (const DType dtype : kTypes) {
    expect_passes({.label = "plus_infinity",
                   .dtype = dtype,
                   .seq_q = 33,
                   .seq_k = 100,
                   .bias = Bias::fp32,
                   .expects_nan = true},
                  [](Operands& o) { o.bias.set(0, 0, 7, 64, kInfinity); });
  }
}

TEST(Values, ScoreOfMinusInfinityFromData) {
  // A product of −inf hides the key as a mask would; with nothing else in the row it sees nothing.
  expect_passes({.label = "minus_infinity",
                 .dtype = DType::fp32,
                 .seq_q = 33,
                 .seq_k = 100,
                 .gradients = false},
                [](Operands& o) {
                  set_column(o.query, 0, 0, 0, 1);
                  o.key.set(0, 0, 64, 0, -kInfinity);
                });
}

TEST(Values, ScoresFarFromZero) {
  for (const DType dtype : kTypes) {
    for (const double level : {-1e6, -6e4, -1e4, 1e4, 6e4, 1e6}) {
      // All scores near `level`: a finite sentinel would hide them.
      expect_passes({.label = "far",
                     .dtype = dtype,
                     .seq_q = 65,
                     .seq_k = 130,
                     .mask = Mask::causal(Alignment::BottomRight),
                     .scale = 1.0f,
                     .gradients = false},
                    [&](Operands& o) {
                      multiply_all(o.key, 0.2);
                      set_column(o.query, 0, 0, 0, 64);
                      set_column(o.key, 0, 0, 0, level / 64);
                    });
    }
    expect_passes({.label = "far_bias",
                   .dtype = dtype,
                   .head_q = 2,
                   .head_k = 2,
                   .seq_q = 65,
                   .seq_k = 130,
                   .bias = Bias::fp32,
                   .gradients = false},  // fp32's lse says too little of such scores
                  [](Operands& o) {
                    set_each(o.bias, [&](auto b, auto h, auto s, auto d) {
                      return o.bias.get(b, h, s, d) + (h == 0 ? -3e5 : 3e5);
                    });
                  });
  }
}

TEST(Values, ScoresThatOverflowBase2) {
  // Scores near ±3e38: times log2(e) they leave fp32, and no key may be lost by that. Their lse is
  // tested with the masks.
  for (const double size : {-3e38, 3e38, -2.4e38, 2.4e38}) {
    expect_passes({.label = "base2",
                   .dtype = DType::fp32,
                   .seq_q = 33,
                   .seq_k = 130,
                   .bias = Bias::fp32,
                   .lse = false,
                   .gradients = false},
                  [&](Operands& o) { set_all(o.bias, size); });
  }
}

TEST(Values, LargeSpread) {
  for (const DType dtype : kTypes) {
    for (const float scale : {1.0f, 8.0f, 100.0f}) {
      if (dtype == DType::fp32 && scale > 1) continue;  // see Distribution
      expect_passes(
          {.label = "spread",
           .dtype = dtype,
           .head_q = 2,
           .head_k = 2,
           .seq_q = 65,
           .seq_k = 257,
           .mask = Mask::causal(Alignment::BottomRight),
           .scale = scale,
           .distribution = dtype == DType::fp32 ? Distribution::gaussian : Distribution::large});
    }
  }
}

TEST(Values, MaximaThatRiseBlockAfterBlock) {
  // From either end scores rise by up to 128 over the keys (fp32: by up to 8, see Distribution), at
  // another pace in each row: in one row a maximum moves with each block of keys, in the next with
  // every fifth, or never.
  for (const DType dtype : kTypes) {
    for (const std::int64_t dim : {64, 128}) {
      for (const bool first_is_largest : {false, true}) {
        const Case c{.label = "rising",
                     .dtype = dtype,
                     .seq_q = 65,
                     .seq_k = 700,
                     .dim = dim,
                     .dim_v = dim,
                     .mask = first_is_largest ? Mask{} : Mask::causal(Alignment::BottomRight),
                     .scale = dtype == DType::fp32 ? 0.0625f : 1.0f};
        expect_passes(c, [&](Operands& o) {
          const auto small = [](std::int64_t s, std::int64_t d) {
            return 0.0613 * static_cast<double>((7 * s + 3 * d) % 5 - 2);
          };
          set_each(o.query, [&](auto, auto, auto s, auto d) {
            return d == 0 ? 0.497 * static_cast<double>(s % 17) : small(s, d);
          });
          set_each(o.key, [&](auto, auto, auto s, auto d) {
            const std::int64_t at = first_is_largest ? 699 - s : s;
            return d == 0 ? 0.1231 * static_cast<double>(at / 5) - 1.0 : small(s + 1, d);
          });
        });
      }
    }
  }
}

TEST(Values, ScaleZeroAndNegative) {
  for (const DType dtype : kTypes) {
    for (const float scale : {0.0f, -0.125f, -1.0f, 1e-30f, -0.0f}) {
      const Case plain{.label = "scale",
                       .dtype = dtype,
                       .head_q = 2,
                       .head_k = 1,
                       .seq_q = 65,
                       .seq_k = 130,
                       .scale = scale};
      Case causal = plain;
      causal.mask = Mask::causal(Alignment::BottomRight);
      expect_passes(causal);
      Case general = plain;
      general.softcap = 2;
      general.sinks = true;
      expect_passes(general);
    }
  }
}

TEST(Values, SubnormalAndTinyNumbers) {
  expect_passes({.label = "tiny", .dtype = DType::fp32, .seq_q = 33, .seq_k = 65, .scale = 1.0f},
                [](Operands& o) {
                  multiply_all(o.query, 1e-20);
                  multiply_all(o.value, 1e-30);
                });
  expect_passes({.label = "tiny", .dtype = DType::fp16, .seq_q = 33, .seq_k = 65},
                [](Operands& o) { multiply_all(o.value, 0x1p-20); });
}

TEST(Values, LargestFiniteValues) {
  for (const DType dtype : kTypes) {
    // fp16 has room above it in the accumulator; sums of the others must stay below the largest
    // number.
    const double share = dtype == DType::fp16 ? 1.0 / 4 : 1.0 / (4 * 66);
    expect_passes(
        {.label = "largest", .dtype = dtype, .seq_q = 33, .seq_k = 65, .gradients = false},
        [&](Operands& o) { multiply_all(o.value, share * -lowest(dtype)); });
  }
}

}  // namespace
}  // namespace tessera::testing
