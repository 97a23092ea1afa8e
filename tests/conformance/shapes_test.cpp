// Shapes that broke attention elsewhere, and the ones next to them.

#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

TEST(Shapes, MoreQueriesThanKeysCausalBottomRight) {
  for (const DType dtype : kTypes) {
    expect_passes({.label = "field_2048_1024",
                   .dtype = dtype,
                   .seq_q = 2048,
                   .seq_k = 1024,
                   .dim = 16,
                   .dim_v = 16,
                   .mask = Mask::causal(Alignment::BottomRight)});
    expect_passes({.dtype = dtype,
                   .head_q = 2,
                   .head_k = 1,
                   .seq_q = 130,
                   .seq_k = 1,
                   .mask = Mask::causal(Alignment::BottomRight)});
    expect_passes({.dtype = dtype,
                   .seq_q = 257,
                   .seq_k = 64,
                   .mask = Mask::window(17, 3, Alignment::BottomRight)});
  }
}

TEST(Shapes, RowsThatSeeNothingAreZeroWithLseMinusInfinity) {
  Operands operands({.label = "first_rows",
                     .dtype = DType::bf16,
                     .seq_q = 192,
                     .seq_k = 64,
                     .mask = Mask::causal(Alignment::BottomRight)});
  on_each_kernel(operands, [&](const Kernel& kernel) {
    for (std::int64_t row = 0; row < 128; ++row) {
      for (std::int64_t d = 0; d < 64; ++d) {
        ASSERT_EQ(operands.out.get(0, 0, row, d), 0.0) << kernel.name << " row " << row;
      }
      ASSERT_EQ(operands.lse.get(0, 0, row, 0), -kInfinity) << kernel.name << " row " << row;
    }
    ASSERT_GT(operands.lse.get(0, 0, 128, 0), -kInfinity) << kernel.name;
  });
}

TEST(Shapes, SmallHeadDimensionsWithLongSequences) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t dim : {8, 16, 24, 32}) {
      for (const std::int64_t seq : {256, 257, 512}) {
        expect_passes({.label = "small_head",
                       .dtype = dtype,
                       .head_q = 2,
                       .head_k = 2,
                       .seq_q = seq,
                       .seq_k = seq,
                       .dim = dim,
                       .dim_v = dim,
                       .mask = Mask::causal(Alignment::TopLeft)});
      }
    }
  }
}

TEST(Shapes, EveryLegalHeadDimension) {
  for (std::int64_t dim = 8; dim <= 256; dim += 8) {
    const auto dtype = kTypes[static_cast<std::size_t>(dim / 8 % 3)];
    expect_passes({.label = "every_head",
                   .dtype = dtype,
                   .head_q = 2,
                   .head_k = 1,
                   .seq_q = 70,
                   .seq_k = 131,
                   .dim = dim,
                   .dim_v = dim,
                   .mask = Mask::causal(Alignment::BottomRight)});
    expect_passes({.label = "every_value_head",
                   .dtype = dtype,
                   .seq_q = 33,
                   .seq_k = 70,
                   .dim = 264 - dim,
                   .dim_v = dim,
                   .softcap = 5});
  }
  for (const DType dtype : kTypes) {
    expect_passes({.label = "mla_prefill",
                   .dtype = dtype,
                   .head_q = 4,
                   .head_k = 4,
                   .seq_q = 65,
                   .seq_k = 65,
                   .dim = 192,
                   .dim_v = 128,
                   .mask = Mask::causal(Alignment::BottomRight)});
    expect_passes({.label = "widest",
                   .dtype = dtype,
                   .head_q = 2,
                   .head_k = 1,
                   .seq_q = 33,
                   .seq_k = 65,
                   .dim = 512,
                   .dim_v = 512});
  }
}

TEST(Shapes, GroupsWithoutAPowerOfTwo) {
  for (const std::int64_t group : {3, 5, 6, 7, 12, 13}) {
    for (const std::int64_t seq_q : {1, 65}) {
      expect_passes({.label = "odd_group",
                     .dtype = DType::bf16,
                     .batch = 2,
                     .head_q = 2 * group,
                     .head_k = 2,
                     .seq_q = seq_q,
                     .seq_k = 127,
                     .mask = Mask::causal(Alignment::BottomRight)});
    }
  }
}

TEST(Shapes, FewQueryRowsWithWideHeadsInGroupsOfEight) {
  for (const std::int64_t seq_q : {5, 6, 7, 8}) {
    expect_passes({.label = "field_d512",
                   .dtype = DType::bf16,
                   .head_q = 8,
                   .head_k = 1,
                   .seq_q = seq_q,
                   .seq_k = 100,
                   .dim = 512,
                   .dim_v = 512,
                   .mask = Mask::causal(Alignment::BottomRight)});
  }
}

TEST(Shapes, DecodeLike) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t seq_k : {1, 2, 3, 63, 64, 65, 66, 67, 127, 128, 129, 704, 1025, 4099}) {
      expect_passes({.label = "one_row",
                     .dtype = dtype,
                     .batch = 2,
                     .head_q = 4,
                     .head_k = 1,
                     .seq_q = 1,
                     .seq_k = seq_k,
                     .mask = Mask::causal(Alignment::BottomRight)});
    }
  }
  expect_passes({.label = "field_131072",
                 .dtype = DType::bf16,
                 .head_q = 6,
                 .head_k = 1,
                 .seq_q = 1,
                 .seq_k = 131072,
                 .dim = 32,
                 .dim_v = 32,
                 .expensive = true});
}

TEST(Shapes, TransposedOperandsWithWideHeads) {
  for (const DType dtype : kTypes) {
    for (const Layout layout :
         {Layout::transposed, Layout::bshd, Layout::unaligned, Layout::padded}) {
      expect_passes({.label = "field_transposed",
                     .dtype = dtype,
                     .batch = 2,
                     .head_q = 3,
                     .head_k = 3,
                     .seq_q = 129,
                     .seq_k = 129,
                     .dim = 256,
                     .dim_v = 256,
                     .mask = Mask::causal(Alignment::TopLeft),
                     .layout = layout});
    }
  }
}

TEST(Shapes, KeysRepeatedWithStrideZero) {
  for (const Layout layout :
       {Layout::repeated_head, Layout::repeated_batch, Layout::repeated_seq}) {
    for (const DType dtype : kTypes) {
      expect_passes({.label = "stride0",
                     .dtype = dtype,
                     .batch = 3,
                     .head_q = 4,
                     .head_k = 2,
                     .seq_q = 65,
                     .seq_k = 127,
                     .mask = Mask::causal(Alignment::BottomRight),
                     .layout = layout});
    }
  }
}

TEST(Shapes, GradientOfASum) {
  for (const Layout layout : {Layout::one_a_row, Layout::one_number}) {
    for (const DType dtype : kTypes) {
      for (const Keep keep : {Keep::both, Keep::nothing}) {
        expect_passes({.label = "sum",
                       .dtype = dtype,
                       .batch = 2,
                       .head_q = 4,
                       .head_k = 2,
                       .seq_q = 65,
                       .seq_k = 70,
                       .dim = 24,
                       .dim_v = 40,
                       .mask = Mask::causal(Alignment::BottomRight),
                       .softcap = keep == Keep::both ? 0.0f : 3.0f,
                       .operation = Operation::backward,
                       .keep = keep,
                       .dout_layout = layout});
      }
    }
  }
}

TEST(Shapes, Empty) {
  for (const DType dtype : kTypes) {
    expect_passes({.label = "batch_0", .dtype = dtype, .batch = 0});
    expect_passes({.label = "no_heads", .dtype = dtype, .head_q = 0, .head_k = 0});
    expect_passes({.label = "no_heads_bias",
                   .dtype = dtype,
                   .head_q = 0,
                   .head_k = 0,
                   .bias = Bias::fp32,
                   .bias_broadcast = kOverBatch | kOverHead,
                   .operation = Operation::backward,
                   .dbias = true});
    expect_passes({.label = "batch_0_bias",
                   .dtype = dtype,
                   .batch = 0,
                   .bias = Bias::fp32,
                   .bias_broadcast = kOverBatch,
                   .operation = Operation::backward,
                   .dbias = true});
    expect_passes({.label = "no_queries_bias",
                   .dtype = dtype,
                   .seq_q = 0,
                   .bias = Bias::fp32,
                   .bias_broadcast = kOverRow,
                   .operation = Operation::backward,
                   .dbias = true});
    expect_passes({.label = "no_keys_bias",
                   .dtype = dtype,
                   .seq_k = 0,
                   .bias = Bias::fp32,
                   .bias_broadcast = kOverColumn,
                   .operation = Operation::backward,
                   .dbias = true});
    expect_passes({.label = "no_segments", .dtype = dtype, .packed = true});
    expect_passes({.label = "no_queries", .dtype = dtype, .seq_q = 0});
    expect_passes({.label = "no_keys", .dtype = dtype, .batch = 2, .seq_q = 65, .seq_k = 0});
    expect_passes({.label = "nothing",
                   .dtype = dtype,
                   .seq_q = 0,
                   .seq_k = 0,
                   .mask = Mask::causal(Alignment::BottomRight)});
    expect_passes({.label = "no_keys_sinks",
                   .dtype = dtype,
                   .head_q = 3,
                   .head_k = 3,
                   .seq_q = 65,
                   .seq_k = 0,
                   .sinks = true});
    expect_passes({.label = "no_keys_everything",
                   .dtype = dtype,
                   .head_q = 3,
                   .head_k = 1,
                   .seq_q = 5,
                   .seq_k = 0,
                   .mask = Mask::causal(Alignment::TopLeft),
                   .softcap = 3,
                   .alibi = Alibi::per_head,
                   .bias = Bias::fp32,
                   .boolean_mask = true,
                   .sinks = true,
                   .dropout = 0.5});
  }
}

TEST(Shapes, ManyBatchesAndHeads) {
  expect_passes({.label = "batch_70000",
                 .dtype = DType::bf16,
                 .batch = 70000,
                 .seq_q = 1,
                 .seq_k = 2,
                 .dim = 8,
                 .dim_v = 8,
                 .expensive = true});
  expect_passes({.label = "heads_70000",
                 .dtype = DType::fp16,
                 .head_q = 70000,
                 .head_k = 35000,
                 .seq_q = 1,
                 .seq_k = 3,
                 .dim = 8,
                 .dim_v = 8,
                 .layout = Layout::bshd,
                 .expensive = true});
}

TEST(Shapes, LongerThanAnIndexOf16Bits) {
  for (const std::int64_t seq : {32767, 32769, 65536, 65537}) {
    expect_passes({.label = "many_keys",
                   .dtype = DType::bf16,
                   .seq_q = 2,
                   .seq_k = seq,
                   .dim = 16,
                   .dim_v = 16,
                   .mask = Mask::causal(Alignment::BottomRight),
                   .expensive = true});
    expect_passes({.label = "many_keys_window",
                   .dtype = DType::fp16,
                   .seq_q = 3,
                   .seq_k = seq,
                   .dim = 16,
                   .dim_v = 16,
                   .mask = Mask::window(300, 0, Alignment::BottomRight)});
    expect_passes({.label = "many_queries",
                   .dtype = DType::fp32,
                   .seq_q = seq,
                   .seq_k = 9,
                   .dim = 8,
                   .dim_v = 8,
                   .mask = Mask::causal(Alignment::BottomRight),
                   .expensive = true});
  }
}

}  // namespace
}  // namespace tessera::testing
