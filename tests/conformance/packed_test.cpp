// Packed segments of all lengths, and what one of them may not do to the next.

#include <vector>

#include "reference/number.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

using Lengths = std::vector<std::int64_t>;

TEST(Packed, LengthsFromTheField) {
  for (const DType dtype : kTypes) {
    for (const Mask mask :
         {Mask::none(), Mask::causal(Alignment::BottomRight), Mask::causal(Alignment::TopLeft)}) {
      Case c = packed("field_0_1208_840", dtype, {0, 1208, 840}, {2538, 1742, 840}, 8, mask);
      expect_passes(c);
      c = packed("field_0_1208_840_wide", dtype, {0, 151, 105}, {317, 217, 105}, 256, mask);
      c.head_q = 4;
      expect_passes(c);
      expect_passes(packed("field_0_0_1023", dtype, {0, 0, 1023}, {0, 1, 2045}, 8, mask));
      expect_passes(packed("field_0_0_127", dtype, {0, 0, 127}, {0, 1, 255}, 128, mask));
      expect_passes(packed("field_7", dtype, {7}, {7}, 64, mask));
      expect_passes(packed("field_698", dtype, {698}, {698}, 16, mask));
    }
  }
}

TEST(Packed, Empty) {
  for (const DType dtype : kTypes) {
    expect_passes(packed("no_segments", dtype, {}, {}, 64));
    expect_passes(packed("total_0", dtype, {0, 0, 0}, {0, 0, 0}, 64));
    expect_passes(packed("no_keys", dtype, {5, 65, 1}, {0, 0, 0}, 64));
    expect_passes(packed("no_queries", dtype, {0, 0, 0}, {5, 65, 1}, 64));
    expect_passes(packed("empty_between", dtype, {0, 5, 0, 0, 65, 0}, {3, 0, 0, 7, 70, 0}, 64,
                         Mask::causal(Alignment::BottomRight)));
  }
}

TEST(Packed, ThousandsOfShortSegments) {
  Lengths q, k;
  for (std::int64_t i = 0; i < 5000; ++i) {
    q.push_back(i % 4);
    k.push_back((i * 7) % 5);
  }
  for (const DType dtype : kTypes) {
    Case c = packed("thousands", dtype, q, k, 16, Mask::causal(Alignment::BottomRight));
    c.head_q = 2;
    c.wide_prefix_sums = dtype == DType::bf16;
    c.expensive = true;
    expect_passes(c);
  }
}

TEST(Packed, OneLongAmongShort) {
  expect_passes(packed("one_long", DType::bf16, {1, 1, 700, 2, 1}, {1, 3, 700, 64, 1}, 32,
                       Mask::causal(Alignment::BottomRight)));
}

TEST(Packed, NeighboursStayApart) {
  // The middle segment is NaN and infinity; the others must not know.
  for (const DType dtype : kTypes) {
    for (const std::int64_t length : {1, 15, 16, 17, 63, 64, 65}) {
      Case c = packed("neighbours", dtype, {33, 5, 33}, {length, 70, 33}, 40);
      c.expects_nan = true;  // in the middle segment
      expect_passes(c, [&](Operands& o) {
        set_rows(o.key, 0, 0, length, length + 70, kNan);
        set_rows(o.value, 0, 0, length, length + 70, kInfinity);
      });
      c.expects_nan = false;  // nobody asks
      c.lengths_q = {33, 0, 33};
      expect_passes(c, [&](Operands& o) {
        set_rows(o.key, 0, 0, length, length + 70, kInfinity);
        set_rows(o.value, 0, 0, length, length + 70, kNan);
      });
    }
  }
}

TEST(Packed, SlackBehindTheLastSegmentIsNeverRead) {
  for (const DType dtype : kTypes) {
    Case c = packed("slack", dtype, {33, 20}, {65, 3}, 40);
    c.slack_k = 77;
    expect_passes(c);
  }
}

TEST(Packed, ModifiersCountInsideTheSegment) {
  for (const DType dtype : kTypes) {
    for (const unsigned broadcast :
         {kNoBroadcast, kOverBatch, kOverHead | kByStride, kOverRow, kOverBatch | kOverHead}) {
      Case c = packed("modifiers", dtype, {33, 0, 70, 5}, {40, 3, 66, 130}, 40,
                      Mask::causal(Alignment::BottomRight));
      c.head_q = 4;
      c.head_k = 2;
      c.alibi = Alibi::per_batch;
      c.bias = Bias::input;
      c.bias_broadcast = broadcast;
      c.boolean_mask = true;
      c.boolean_broadcast = broadcast;
      c.sinks = true;
      c.dropout = 0.3;
      c.seed = 11;
      c.offset = 12;
      expect_passes(c);
    }
  }
}

// The rows of one segment, as arguments of a call of their own.
ConstTensor segment(const ConstTensor& tensor, std::int64_t begin, std::int64_t rows) {
  ConstTensor part = tensor;
  part.data = static_cast<const std::byte*>(tensor.data) +
              begin * tensor.stride.seq * size_of(tensor.dtype);
  part.extent.seq = rows;
  return part;
}

Tensor segment(const Tensor& tensor, std::int64_t begin, std::int64_t rows) {
  Tensor part = tensor;
  part.data =
      static_cast<std::byte*>(tensor.data) + begin * tensor.stride.seq * size_of(tensor.dtype);
  part.extent.seq = rows;
  return part;
}

TEST(Packed, EqualsACallForEachSegment) {
  const Lengths q{65, 1, 0, 130, 17};
  const Lengths k{70, 33, 5, 130, 0};
  for (const DType dtype : kTypes) {
    Case c = packed("segments", dtype, q, k, 64, Mask::causal(Alignment::BottomRight));
    c.head_q = 4;
    c.head_k = 2;
    Operands operands(c);
    on_each_kernel(operands, [&](const Kernel& kernel) {
      const Args whole = operands.args(Side::host);
      std::int64_t row = 0;
      std::int64_t key = 0;
      for (std::size_t i = 0; i < q.size(); row += q[i], key += k[i], ++i) {
        Args args;
        args.query = segment(whole.query, row, q[i]);
        args.key = segment(whole.key, key, k[i]);
        args.value = segment(whole.value, key, k[i]);
        args.out = segment(whole.out, row, q[i]);
        args.lse = segment(whole.lse, row, q[i]);
        const Options options{.mask = c.mask};
        const auto verdict = reference::judge(args, options, reference::forward(args, options),
                                              reference::forward_low(args, options));
        EXPECT_TRUE(verdict.pass) << kernel.name << " segment " << i << ": " << verdict.text;
      }
    });
  }
}

}  // namespace
}  // namespace tessera::testing
