// Gradients: what broke them elsewhere, what is exactly known of them, and what NaN may reach.

#include <algorithm>
#include <string>
#include <vector>

#include "reference/philox.hpp"
#include "tests/conformance/chooser.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

constexpr std::array kKeeps{Keep::both, Keep::lse, Keep::nothing};

Case gradients(Case c) {
  c.operation = Operation::backward;
  return c;
}

Case packed(const char* label, DType dtype, const std::vector<std::int64_t>& q,
            const std::vector<std::int64_t>& k, std::int64_t dim, const Mask& mask = {}) {
  return {.label = label,
          .dtype = dtype,
          .dim = dim,
          .dim_v = dim,
          .mask = mask,
          .layout = Layout::bshd,
          .packed = true,
          .lengths_q = q,
          .lengths_k = k,
          .operation = Operation::backward};
}

TEST(Backward, InputsTimesThree) {
  for (const std::int64_t seq : {129, 257, 1024}) {
    for (const DType dtype : {DType::fp16, DType::bf16}) {
      if (seq == 1024 && dtype != DType::fp16) continue;
      expect_passes({.label = "field_times_3",
                     .dtype = dtype,
                     .seq_q = seq,
                     .seq_k = seq,
                     .dim = 128,
                     .dim_v = 128,
                     .mask = Mask::causal(Alignment::TopLeft),
                     .distribution = Distribution::large,
                     .expensive = seq == 1024,
                     .operation = Operation::backward});
    }
  }
}

TEST(Backward, LengthsThatFillNoTile) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t seq_q : {1, 2, 15, 17, 31, 47, 48, 49, 63, 65, 95, 97, 127, 129}) {
      for (const std::int64_t seq_k : {1, 3, 7, 31, 33, 63, 65, 127, 129}) {
        if ((seq_q + seq_k + static_cast<std::int64_t>(dtype)) % 5 != 0) continue;
        expect_passes({.label = "no_tile",
                       .dtype = dtype,
                       .seq_q = seq_q,
                       .seq_k = seq_k,
                       .dim = 40,
                       .dim_v = 24,
                       .exact_end = true,
                       .operation = Operation::backward});
      }
    }
  }
}

TEST(Backward, EveryLayoutOfDoutAndGradients) {
  for (const DType dtype : kTypes) {
    for (int dout = 0; dout <= static_cast<int>(Layout::repeated_seq); ++dout) {
      for (int to = 0; to < static_cast<int>(Layout::repeated_head); ++to) {
        const bool other = (dout + to) % 2 == 0;
        expect_passes({.label = "field_strides",
                       .dtype = dtype,
                       .batch = 2,
                       .head_q = 4,
                       .head_k = 2,
                       .seq_q = 33,
                       .seq_k = 50,
                       .dim = 24,
                       .dim_v = 16,
                       .mask = Mask::causal(Alignment::BottomRight),
                       .layout = other ? Layout::transposed : Layout::bshd,
                       .operation = Operation::backward,
                       .keep = kKeeps[static_cast<std::size_t>(dout % 3)],
                       .dout_layout = static_cast<Layout>(dout),
                       .gradient_layout = static_cast<Layout>(to),
                       .dlse = other});
      }
    }
  }
}

TEST(Backward, HeadsThatFillNoVectorPackedInOneArray) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t dim : {8, 24, 40, 72, 104, 136}) {
      for (const Layout layout : {Layout::fused_qkv, Layout::bshd, Layout::bhsd}) {
        Case c = packed("field_72_104", dtype, {17, 0, 33, 1}, {20, 3, 33, 5}, dim,
                        Mask::causal(Alignment::BottomRight));
        c.head_q = 4;
        c.head_k = 2;
        c.layout = layout;
        c.exact_end = true;
        expect_passes(c);
      }
    }
  }
}

TEST(Backward, EveryLegalHeadDimension) {
  for (std::int64_t dim = 8; dim <= std::min<std::int64_t>(256, largest_head_dim()); dim += 8) {
    for (const std::int64_t dim_v : {dim, 264 - dim}) {
      if (dim_v > largest_head_dim()) continue;
      expect_passes({.label = "every_head",
                     .dtype = kTypes[static_cast<std::size_t>(dim / 8 % 3)],
                     .head_q = 2,
                     .head_k = 1,
                     .seq_q = 35,
                     .seq_k = 70,
                     .dim = dim,
                     .dim_v = dim_v,
                     .mask = Mask::causal(Alignment::BottomRight),
                     .operation = Operation::backward,
                     .keep = kKeeps[static_cast<std::size_t>(dim / 8 % 3)]});
    }
  }
}

TEST(Backward, Seq1025WithMaskAndModifier) {
  for (const DType dtype : kTypes) {
    expect_passes({.label = "field_1025",
                   .dtype = dtype,
                   .seq_q = 1025,
                   .seq_k = 1025,
                   .dim = 8,
                   .dim_v = 8,
                   .mask = Mask::causal(Alignment::BottomRight),
                   .softcap = 20,
                   .alibi = Alibi::per_head,
                   .bias = Bias::fp32,
                   .bias_broadcast = kOverHead | kOverRow,
                   .expensive = true,
                   .operation = Operation::backward,
                   .dbias = true});
  }
}

TEST(Backward, GroupsAndKeptResults) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t group : {1, 4, 5, 7, 12}) {
      for (const Keep keep : kKeeps) {
        for (const bool general : {false, true}) {
          Case c{.label = "field_groups",
                 .dtype = dtype,
                 .batch = 2,
                 .head_q = 2 * group,
                 .head_k = 2,
                 .seq_q = 33,
                 .seq_k = 47,
                 .dim = 16,
                 .dim_v = 32,
                 .mask = Mask::window(30, 4, Alignment::BottomRight),
                 .operation = Operation::backward,
                 .keep = keep,
                 .dlse = group % 2 == 1};
          if (general) {
            c.softcap = 8;
            c.alibi = Alibi::per_head;
            c.bias = Bias::input;
            c.bias_broadcast = group % 2 == 1 ? kOverHead : kOverRow;
            c.boolean_mask = true;
            c.sinks = c.dbias = c.dsink = true;
            c.dropout = 0.3;
            c.seed = 17;
          }
          expect_passes(c);
        }
      }
    }
  }
}

TEST(Backward, SoftcapBeforeBiasAndAlibi) {
  for (const DType dtype : kTypes) {
    for (const float cap : {0.5f, 1.5f, 30.0f}) {
      Case c{.label = "softcap_order",
             .dtype = dtype,
             .head_q = 2,
             .head_k = 2,
             .seq_q = 65,
             .seq_k = 70,
             .dim = 32,
             .dim_v = 32,
             .softcap = cap,
             .bias = Bias::fp32,
             .operation = Operation::backward,
             .dbias = true};
      expect_passes(c, [](Operands& o) { multiply_all(o.bias, 3); });
      c.alibi = Alibi::per_head;
      c.mask = Mask::causal(Alignment::BottomRight);
      expect_passes(c);
    }
  }
}

TEST(Backward, BiasGradientOfEveryShape) {
  for (const Bias bias : {Bias::fp32, Bias::input}) {
    for (unsigned broadcast = 0; broadcast < 32; ++broadcast) {
      expect_passes({.label = "dbias",
                     .dtype = kTypes[broadcast % 3],
                     .batch = 2,
                     .head_q = 4,
                     .head_k = 2,
                     .seq_q = 21,
                     .seq_k = 35,
                     .dim = 16,
                     .dim_v = 16,
                     .mask = Mask::window(25, 3, Alignment::TopLeft),
                     .bias = bias,
                     .bias_broadcast = broadcast,
                     .operation = Operation::backward,
                     .keep = kKeeps[broadcast % 3],
                     .dlse = broadcast % 2 == 0,
                     .dbias = true});
      Case c = packed("dbias", kTypes[broadcast % 3], {21, 0, 9, 1}, {35, 4, 0, 40}, 16);
      c.head_q = 2;
      c.bias = bias;
      c.bias_broadcast = broadcast;
      c.dbias = true;
      expect_passes(c);
    }
  }
}

TEST(Backward, SinkGradientSumsInFp32) {
  for (const DType dtype : kTypes) {
    for (const double sink : {-3.0, 0.0, 4.0}) {
      expect_passes({.label = "field_dsink",
                     .dtype = dtype,
                     .batch = 12,
                     .head_q = 3,
                     .head_k = 1,
                     .seq_q = 65,
                     .seq_k = 33,
                     .dim = 8,
                     .dim_v = 8,
                     .mask = Mask::causal(Alignment::BottomRight),
                     .sinks = true,
                     .distribution = Distribution::skewed,
                     .operation = Operation::backward,
                     .dlse = true,
                     .dsink = true},
                    [&](Operands& o) { set_all(o.sinks, sink); });
    }
  }
}

TEST(Backward, SinksAtTheirEdges) {
  for (const double sink : {-kInfinity, -1e30, 80.0, 1e30}) {
    expect_passes({.label = "sink",
                   .head_q = 2,
                   .head_k = 2,
                   .seq_q = 65,
                   .seq_k = 33,
                   .mask = Mask::causal(Alignment::BottomRight),
                   .sinks = true,
                   .operation = Operation::backward,
                   .dlse = true,
                   .dsink = true},
                  [&](Operands& o) { set_all(o.sinks, sink); });
  }
}

TEST(Backward, Dropout) {
  for (const DType dtype : kTypes) {
    for (const double p : {1e-9, 0.1, 0.5, 0.9, 1.0}) {
      for (const Keep keep : kKeeps) {
        expect_passes({.label = "dropout",
                       .dtype = dtype,
                       .batch = 2,
                       .head_q = 4,
                       .head_k = 2,
                       .seq_q = 33,
                       .seq_k = 66,
                       .dim = 16,
                       .dim_v = 16,
                       .dropout = p,
                       .seed = 0x123456789abcdef0u,
                       .offset = 0xfedcba9876543210u,
                       .seed_on_device = keep == Keep::lse,
                       .operation = Operation::backward,
                       .keep = keep});
      }
    }
  }
}

TEST(Backward, Empty) {
  for (const DType dtype : kTypes) {
    for (const Keep keep : kKeeps) {
      Case c{.label = "empty", .dtype = dtype, .operation = Operation::backward, .keep = keep};
      c.batch = 0;
      expect_passes(c);
      c.batch = 2;
      c.seq_q = 0;  // keys have gradients of 0
      expect_passes(c);
      c.seq_k = 0;
      expect_passes(c);
      c.seq_q = 65;
      c.dlse = true;
      expect_passes(c);
      c.sinks = c.dsink = true;
      expect_passes(c);
      c.bias = Bias::fp32;
      c.bias_broadcast = kOverColumn;
      c.dbias = true;
      expect_passes(c);
      c = packed("empty", dtype, {}, {}, 16);
      c.keep = keep;
      expect_passes(c);
      c.lengths_q = c.lengths_k = {0, 0, 0};
      expect_passes(c);
      c.lengths_q = {5, 65, 1};
      expect_passes(c);
      c.lengths_q = {0, 0, 0};
      c.lengths_k = {5, 65, 1};
      expect_passes(c);
    }
  }
}

TEST(Backward, PackedLengthsFromTheField) {
  for (const DType dtype : kTypes) {
    for (const Mask mask : {Mask::none(), Mask::causal(Alignment::BottomRight)}) {
      Case c = packed("field_0_1208_840", dtype, {0, 151, 105}, {317, 217, 105}, 32, mask);
      c.head_q = 4;
      expect_passes(c);
      expect_passes(packed("field_0_0_1023", dtype, {0, 0, 127}, {0, 1, 255}, 128, mask));
      expect_passes(packed("field_7", dtype, {7}, {7}, 64, mask));
      expect_passes(packed("field_698", dtype, {698}, {698}, 8, mask));
    }
  }
}

void expect_zero_rows(const Slot& slot, std::int64_t begin, std::int64_t end,
                      const std::string& what) {
  slot.each([&](auto b, auto h, auto s, auto d) {
    if (s < begin || s >= end) return;
    ASSERT_EQ(slot.get(b, h, s, d), 0) << what << " row " << s << " dim " << d;
  });
}

void expect_finite(const Slot& slot, const std::string& what) {
  slot.each([&](auto b, auto h, auto s, auto d) {
    ASSERT_TRUE(std::isfinite(slot.get(b, h, s, d))) << what << " row " << s << " dim " << d;
  });
}

TEST(Backward, KeysOfSegmentsWithoutQueriesHaveNoGradient) {
  // The field's own lengths, too long for the reference: it crashed and hung elsewhere.
  struct Field {
    std::vector<std::int64_t> q, k;
    std::int64_t dim, unseen;
  };
  for (const Field& field : {Field{{0, 1208, 840}, {2538, 1742, 840}, 32, 2538},
                             Field{{0, 0, 1023}, {0, 1, 2045}, 128, 1}}) {
    Case c = packed("field_unseen", DType::bf16, field.q, field.k, field.dim,
                    Mask::causal(Alignment::BottomRight));
    c.head_q = 4;
    Operands o(c);
    on_each_kernel(o, [&](const Kernel& kernel) {
      for (const Slot* slot : {&o.dk, &o.dv}) {
        expect_zero_rows(*slot, 0, field.unseen, kernel.name);
        expect_finite(*slot, kernel.name);
      }
      expect_finite(o.dq, kernel.name);
    });
  }
}

TEST(Backward, ThousandsOfShortSegments) {
  std::vector<std::int64_t> q, k;
  for (std::int64_t i = 0; i < 3000; ++i) {
    q.push_back(i % 4);
    k.push_back((i * 7) % 5);
  }
  for (const DType dtype : kTypes) {
    Case c = packed("thousands", dtype, q, k, 8, Mask::causal(Alignment::BottomRight));
    c.head_q = 2;
    c.wide_prefix_sums = dtype == DType::bf16;
    expect_passes(c);
  }
}

TEST(Backward, NobodySeesThemAndTheySeeNobody) {
  // Causal, bottom-right, more rows than keys: the first rows see nothing. Top-left, more keys than
  // rows: nobody sees the last keys.
  for (const DType dtype : kTypes) {
    for (const Keep keep : kKeeps) {
      const Case rows = gradients({.label = "blind_rows",
                                   .dtype = dtype,
                                   .head_q = 2,
                                   .seq_q = 150,
                                   .seq_k = 50,
                                   .dim = 16,
                                   .dim_v = 16,
                                   .mask = Mask::causal(Alignment::BottomRight),
                                   .keep = keep,
                                   .dlse = true});
      expect_passes(rows);
      Operands o(rows);
      on_each_kernel(o, [&](const Kernel& kernel) {
        expect_zero_rows(o.dq, 0, 100, name(rows) + ": " + kernel.name);
      });
      Case keys = rows;
      keys.label = "unseen_keys";
      keys.seq_q = 50;
      keys.seq_k = 150;
      keys.mask = Mask::causal(Alignment::TopLeft);
      expect_passes(keys);
      Operands p(keys);
      on_each_kernel(p, [&](const Kernel& kernel) {
        expect_zero_rows(p.dk, 50, 150, name(keys) + ": " + kernel.name);
        expect_zero_rows(p.dv, 50, 150, name(keys) + ": " + kernel.name);
      });
    }
  }
}

TEST(Backward, RowsHiddenByMaskOrBias) {
  for (const DType dtype : kTypes) {
    for (const bool by_bias : {false, true}) {
      const Case c = gradients({.label = "hidden_rows",
                                .dtype = dtype,
                                .head_q = 2,
                                .seq_q = 70,
                                .seq_k = 66,
                                .dim = 16,
                                .dim_v = 16,
                                .bias = by_bias ? Bias::fp32 : Bias::none,
                                .boolean_mask = !by_bias,
                                .dlse = true,
                                .dbias = true});
      expect_passes(c, [&](Operands& o) {
        for (const std::int64_t row : {0, 1, 15, 47, 48, 69}) {
          for (const std::int64_t head : {0, 1}) {
            set_row(by_bias ? o.bias : o.boolean_mask, 0, head, row, by_bias ? -kInfinity : 0);
          }
        }
        set_column(by_bias ? o.bias : o.boolean_mask, 0, 0, 33, by_bias ? -kInfinity : 0);
      });
    }
  }
}

// Weights of exactly 1 and whole numbers: dv is dout of the row that chose the key, dq and dk are
// 0. (In fp32 a weight may be off by the rounding of a score of some thousands.)
TEST(Backward, ChosenKeysTakeTheirRowsGradient) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t seq : {1, 2, 31, 48, 49, 63, 64, 65, 128, 129, 257}) {
      for (const Keep keep : kKeeps) {
        const Case c = gradients({.label = "choice",
                                  .dtype = dtype,
                                  .head_q = 2,
                                  .seq_q = seq,
                                  .seq_k = seq,
                                  .dim = 16,
                                  .dim_v = 16,
                                  .scale = 1.0f,
                                  .keep = keep});
        Operands o(c);
        const Chooser chooser(c.dim, c.seq_k);
        ASSERT_TRUE(chooser.possible());
        chooser.write_keys(o.key);
        const auto number = [](std::int64_t h, std::int64_t s, std::int64_t d) {
          return static_cast<double>((h * 5 + s * 7 + d * 3) % 17 - 8);
        };
        set_each(o.value, [&](auto, auto h, auto s, auto d) { return number(h + 1, s, d); });
        set_each(o.dout, [&](auto, auto h, auto s, auto d) { return number(h, s, d); });
        for (std::int64_t row = 0; row < seq; ++row) {
          chooser.choose(o.query, 0, 0, row, seq - 1 - row);
          chooser.choose(o.query, 0, 1, row, row);
        }
        on_each_kernel(o, [&](const Kernel& kernel) {
          const std::string what = name(c) + ": " + kernel.name;
          o.dv.each([&](auto b, auto h, auto s, auto d) {
            const double wanted = number(0, seq - 1 - s, d) + number(1, s, d);
            const double allowed = dtype == DType::fp32 ? 2e-6 * chooser.magnitude() * 16 : 0;
            ASSERT_NEAR(o.dv.get(b, h, s, d), wanted, allowed) << what << " key " << s;
          });
          expect_zero_rows(o.dq, 0, seq, what + " dq");
          expect_zero_rows(o.dk, 0, seq, what + " dk");
        });
      }
    }
  }
}

// Which rows see a key? Queries of 0 weigh all visible keys alike, and rows of dout with one column
// each show in dv who saw the key.
template <class Visible>
void expect_seen(const Case& c, Visible visible) {
  Operands o(c);
  set_all(o.query, 0);
  for (std::int64_t first = 0; first < c.seq_q; first += c.dim_v) {
    for (std::int64_t head = 0; head < c.head_q; ++head) {
      set_each(o.dout, [&](auto, auto h, auto s, auto d) {
        return h == head && s - first == d ? 1.0 : 0.0;
      });
      on_each_kernel(o, [&](const Kernel& kernel) {
        o.dv.each([&](auto b, auto h, auto s, auto d) {
          if (first + d >= c.seq_q || h != head / c.group()) return;
          const bool seen = o.dv.get(b, h, s, d) != 0;
          ASSERT_EQ(seen, visible(b, head, first + d, s))
              << name(c) << ": " << kernel.name << " batch " << b << " head " << head << " row "
              << first + d << " key " << s;
        });
      });
    }
  }
}

TEST(Backward, RowsThatAWindowShows) {
  using Edge = std::optional<std::int64_t>;
  for (const Alignment alignment : kAlignments) {
    for (const auto& [left, right] : std::initializer_list<std::pair<Edge, Edge>>{
             {std::nullopt, 0}, {0, 0}, {15, 0}, {16, 17}, {64, std::nullopt}}) {
      for (const auto& [seq_q, seq_k] :
           std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
               {130, 130}, {65, 200}, {200, 65}}) {
        const Case c = gradients({.label = "seen",
                                  .dtype = DType::bf16,
                                  .seq_q = seq_q,
                                  .seq_k = seq_k,
                                  .dim = 8,
                                  .dim_v = std::min<std::int64_t>(256, largest_head_dim()),
                                  .mask = Mask::window(left, right, alignment)});
        const std::int64_t diagonal = alignment == Alignment::TopLeft ? 0 : seq_k - seq_q;
        expect_seen(
            c, [&, left = left, right = right](auto, auto, std::int64_t row, std::int64_t column) {
              return (!left || column >= row + diagonal - *left) &&
                     (!right || column <= row + diagonal + *right);
            });
      }
    }
  }
}

TEST(Backward, RowsThatRangesShow) {
  for (const Alignment alignment : kAlignments) {
    const Case c = gradients({.label = "seen_ranges",
                              .batch = 5,
                              .seq_q = 70,
                              .seq_k = 128,
                              .dim = 8,
                              .dim_v = std::min<std::int64_t>(128, largest_head_dim()),
                              .mask = Mask::window(20, 10, alignment),
                              .key_begin = {0, 5, 64, 30, 0},
                              .key_end = {128, 100, 65, 500, 1},
                              .query_end = {70, 69, 1, 64, 35}});
    expect_seen(c, [&](std::int64_t b, std::int64_t, std::int64_t row, std::int64_t column) {
      const auto i = static_cast<std::size_t>(b);
      const std::int64_t end = std::min(c.key_end[i], 128);
      const std::int64_t diagonal = alignment == Alignment::TopLeft ? 0 : end - c.query_end[i];
      return row < c.query_end[i] && column >= c.key_begin[i] && column < end &&
             column >= row + diagonal - 20 && column <= row + diagonal + 10;
    });
  }
}

TEST(Backward, WeightsThatForwardsDropoutKept) {
  for (const DType dtype : kTypes) {
    for (const double p : {0.1, 0.9}) {
      const Case c = gradients({.label = "kept",
                                .dtype = dtype,
                                .batch = 2,
                                .head_q = 4,
                                .head_k = 2,
                                .seq_q = 66,
                                .seq_k = 200,
                                .dim = 8,
                                .dim_v = std::min<std::int64_t>(128, largest_head_dim()),
                                .dropout = p,
                                .seed = 0x0123456789abcdefu,
                                .offset = 0xdeadbeef12345678u});
      const auto dropout = reference::Dropout::make(p, c.seed, c.offset);
      expect_seen(c, [&](std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) {
        const auto numbers = dropout.draw(b * c.head_q + h, row, column);
        return numbers[static_cast<std::size_t>(column % 8)] >= dropout.threshold;
      });
    }
  }
}

TEST(Backward, NaNShowsWhereItIsSeenAndNowhereElse) {
  for (const DType dtype : kTypes) {
    const Case c = gradients({.label = "nan",
                              .dtype = dtype,
                              .batch = 2,
                              .head_q = 4,
                              .head_k = 2,
                              .seq_q = 70,
                              .seq_k = 65,
                              .dim = 16,
                              .dim_v = 16});
    const auto nan_at = [](const Slot& slot, std::int64_t b, std::int64_t h, std::int64_t s) {
      for (std::int64_t d = 0; d < slot.extent.dim; ++d) {
        if (!std::isnan(slot.get(b, h, s, d))) return false;
      }
      return true;
    };
    for (const bool in_query : {true, false}) {
      Operands o(c);
      set_row(in_query ? o.query : o.dout, 1, 2, 33, kNan);
      on_each_kernel(o, [&](const Kernel& kernel) {
        const std::string what = name(c) + ": " + kernel.name;
        o.dq.each([&](auto b, auto h, auto s, auto d) {
          const bool here = b == 1 && h == 2 && s == 33;
          ASSERT_EQ(std::isnan(o.dq.get(b, h, s, d)), here) << what << " row " << s;
        });
        for (const Slot* slot : {&o.dk, &o.dv}) {
          for (std::int64_t key = 0; key < c.seq_k; ++key) {
            ASSERT_TRUE(nan_at(*slot, 1, 1, key)) << what << " key " << key;
            ASSERT_FALSE(nan_at(*slot, 1, 0, key)) << what << " key " << key;
            ASSERT_FALSE(nan_at(*slot, 0, 1, key)) << what << " key " << key;
          }
        }
      });
    }
  }
}

TEST(Backward, NeighboursStayApart) {
  // The middle segment is NaN; the others must not know.
  for (const DType dtype : kTypes) {
    for (const std::int64_t length : {1, 15, 16, 17, 63, 64, 65}) {
      Case c = packed("neighbours", dtype, {33, 0, 33}, {length, 70, 33}, 40);
      expect_passes(c, [&](Operands& o) {  // nobody asks
        set_rows(o.key, 0, 0, length, length + 70, kInfinity);
        set_rows(o.value, 0, 0, length, length + 70, kNan);
      });
      c.lengths_q = {33, 7, 33};
      Operands o(c);
      set_rows(o.key, 0, 0, length, length + 70, kNan);
      set_rows(o.dout, 0, 0, 33, 40, kNan);
      on_each_kernel(o, [&](const Kernel& kernel) {
        const std::string what = name(c) + ": " + kernel.name;
        o.dq.each([&](auto b, auto h, auto s, auto d) {
          ASSERT_EQ(std::isnan(o.dq.get(b, h, s, d)), s >= 33 && s < 40) << what << " row " << s;
        });
        for (const Slot* slot : {&o.dk, &o.dv}) {
          slot->each([&](auto b, auto h, auto s, auto d) {
            ASSERT_EQ(std::isnan(slot->get(b, h, s, d)), s >= length && s < length + 70)
                << what << " key " << s;
          });
        }
      });
    }
  }
}

TEST(Backward, SlackBehindTheLastSegmentIsNeitherReadNorWritten) {
  for (const DType dtype : kTypes) {
    Case c = packed("slack", dtype, {33, 20}, {65, 3}, 40);
    c.slack_k = 77;
    expect_passes(c);
    Operands o(c);
    on_each_kernel(o, [&](const Kernel& kernel) {
      for (const Slot* slot : {&o.dk, &o.dv}) {
        slot->each([&](auto b, auto h, auto s, auto d) {
          ASSERT_EQ(std::isnan(slot->get(b, h, s, d)), s >= 68) << kernel.name << " key " << s;
        });
      }
    });
  }
}

TEST(Backward, ScaleZeroAndNegative) {
  for (const DType dtype : kTypes) {
    for (const float scale : {0.0f, -0.125f, -1.0f, 1e-30f}) {
      expect_passes({.label = "scale",
                     .dtype = dtype,
                     .head_q = 2,
                     .head_k = 1,
                     .seq_q = 33,
                     .seq_k = 65,
                     .dim = 16,
                     .dim_v = 16,
                     .mask = Mask::causal(Alignment::BottomRight),
                     .scale = scale,
                     .operation = Operation::backward});
    }
  }
}

}  // namespace
}  // namespace tessera::testing
