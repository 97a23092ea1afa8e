// Gradients against the reference: shapes, options and lengths, among them those that broke
// gradients elsewhere.

#include <algorithm>
#include <vector>

#include "tests/conformance/backward_case.hpp"

namespace tessera::testing {
namespace {

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
        Case c = gradients(packed("field_72_104", dtype, {17, 0, 33, 1}, {20, 3, 33, 5}, dim,
                                  Mask::causal(Alignment::BottomRight)));
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
      Case c = gradients(packed("dbias", kTypes[broadcast % 3], {21, 0, 9, 1}, {35, 4, 0, 40}, 16));
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
      c = gradients(packed("empty", dtype, {}, {}, 16));
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
      Case c =
          gradients(packed("field_0_1208_840", dtype, {0, 151, 105}, {317, 217, 105}, 32, mask));
      c.head_q = 4;
      expect_passes(c);
      expect_passes(
          gradients(packed("field_0_0_1023", dtype, {0, 0, 127}, {0, 1, 255}, 128, mask)));
      expect_passes(gradients(packed("field_7", dtype, {7}, {7}, 64, mask)));
      expect_passes(gradients(packed("field_698", dtype, {698}, {698}, 8, mask)));
    }
  }
}

TEST(Backward, ThousandsOfShortSegments) {
  std::vector<std::int64_t> q, k;
  for (std::int64_t i = 0; i < 3000; ++i) {
    q.push_back(i % 4);
    k.push_back((i * 7) % 5);
  }
  for (const DType dtype : kTypes) {
    Case c = gradients(packed("thousands", dtype, q, k, 8, Mask::causal(Alignment::BottomRight)));
    c.head_q = 2;
    c.wide_prefix_sums = dtype == DType::bf16;
    expect_passes(c);
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
