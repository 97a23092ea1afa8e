// Wrong shapes, types, strides and options: every argument that a Problem describes, every kind of
// wrong value.

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/src/wrong.hpp"

namespace tessera::testing {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 61;
constexpr auto kNoDType = static_cast<DType>(17);
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Wrong kWrongDense[] = {
    {"query_dtype", [](Call& c) { c.args.query.dtype = DType::int32; },
     "query.dtype is int32; must be fp32, fp16 or bf16"},
    {"key_dtype", [](Call& c) { c.args.key.dtype = DType::fp16; },
     "key.dtype is fp16; must equal query.dtype (fp32)"},
    {"value_dtype", [](Call& c) { c.args.value.dtype = DType::bf16; },
     "value.dtype is bf16; must equal query.dtype (fp32)"},
    {"out_dtype", [](Call& c) { c.args.out.dtype = DType::bf16; },
     "out.dtype is bf16; must equal query.dtype (fp32)"},
    {"lse_dtype", [](Call& c) { c.args.lse.dtype = DType::bf16; },
     "lse.dtype is bf16; must be fp32"},
    {"bias_dtype", [](Call& c) { c.args.bias.dtype = DType::bf16; },
     "bias.dtype is bf16; must be fp32 or query.dtype (fp32)"},
    {"boolean_mask_dtype", [](Call& c) { c.args.boolean_mask.dtype = DType::fp32; },
     "boolean_mask.dtype is fp32; must be uint8"},
    {"alibi_slopes_dtype", [](Call& c) { c.args.alibi_slopes.dtype = DType::fp16; },
     "alibi_slopes.dtype is fp16; must be fp32"},
    {"sinks_dtype", [](Call& c) { c.args.sinks.dtype = DType::bf16; },
     "sinks.dtype is bf16; must be fp32"},

    {"query_batch_negative", [](Call& c) { c.args.query.extent.batch = -1; },
     "query.extent.batch is -1; must be at least 0"},
    {"query_head_negative", [](Call& c) { c.args.query.extent.head = -4; },
     "query.extent.head is -4; must be at least 0"},
    {"query_seq_negative",
     [](Call& c) { c.args.query.extent.seq = std::numeric_limits<std::int64_t>::min(); },
     "query.extent.seq is -9223372036854775808; must be at least 0"},
    {"key_seq_negative", [](Call& c) { c.args.key.extent.seq = -7; },
     "key.extent.seq is -7; must be at least 0"},
    {"value_dim_negative", [](Call& c) { c.args.value.extent.dim = -8; },
     "value.extent.dim is -8; must be at least 0"},
    {"out_head_negative", [](Call& c) { c.args.out.extent.head = -1; },
     "out.extent.head is -1; must be at least 0"},
    {"lse_seq_negative", [](Call& c) { c.args.lse.extent.seq = -1; },
     "lse.extent.seq is -1; must be at least 0"},
    {"bias_dim_negative", [](Call& c) { c.args.bias.extent.dim = -1; },
     "bias.extent.dim is -1; must be at least 0"},
    {"boolean_mask_batch_negative", [](Call& c) { c.args.boolean_mask.extent.batch = -2; },
     "boolean_mask.extent.batch is -2; must be at least 0"},
    {"alibi_slopes_head_negative", [](Call& c) { c.args.alibi_slopes.extent.head = -4; },
     "alibi_slopes.extent.head is -4; must be at least 0"},
    {"sinks_head_negative", [](Call& c) { c.args.sinks.extent.head = -4; },
     "sinks.extent.head is -4; must be at least 0"},

    {"key_batch", [](Call& c) { c.args.key.extent.batch = 1; },
     "key.extent.batch is 1; must equal query.extent.batch (2)"},
    {"key_dim", [](Call& c) { c.args.key.extent.dim = 8; },
     "key.extent.dim is 8; must equal query.extent.dim (16)"},
    {"value_batch", [](Call& c) { c.args.value.extent.batch = 1; },
     "value.extent.batch is 1; must equal key.extent.batch (2)"},
    {"value_head", [](Call& c) { c.args.value.extent.head = 1; },
     "value.extent.head is 1; must equal key.extent.head (2)"},
    {"value_seq", [](Call& c) { c.args.value.extent.seq = 6; },
     "value.extent.seq is 6; must equal key.extent.seq (7)"},
    {"out_batch", [](Call& c) { c.args.out.extent.batch = 1; },
     "out.extent.batch is 1; must equal query.extent.batch (2)"},
    {"out_head", [](Call& c) { c.args.out.extent.head = 2; },
     "out.extent.head is 2; must equal query.extent.head (4)"},
    {"out_seq", [](Call& c) { c.args.out.extent.seq = 4; },
     "out.extent.seq is 4; must equal query.extent.seq (5)"},
    {"out_dim", [](Call& c) { c.args.out.extent.dim = 4; },
     "out.extent.dim is 4; must equal value.extent.dim (8)"},
    {"group",
     [](Call& c) {
       c.args.key.extent.head = 3;
       c.args.value.extent.head = 3;
     },
     "query.extent.head is 4; must be a multiple of key.extent.head (3)"},
    {"no_key_heads",
     [](Call& c) {
       c.args.key.extent.head = 0;
       c.args.value.extent.head = 0;
     },
     "key.extent.head is 0; must be at least 1 for query.extent.head (4) to be a multiple of it"},
    // Dense strides of the right extents, so that the longer axis folds onto the next.
    {"out_seq_longer", [](Call& c) { c.args.out.extent.seq = 9; },
     "out.extent.seq is 9; must equal query.extent.seq (5)"},
    {"out_dim_longer", [](Call& c) { c.args.out.extent.dim = 16; },
     "out.extent.dim is 16; must equal value.extent.dim (8)"},
    {"out_head_longer", [](Call& c) { c.args.out.extent.head = 6; },
     "out.extent.head is 6; must equal query.extent.head (4)"},
    {"lse_head_longer", [](Call& c) { c.args.lse.extent.head = 5; },
     "lse.extent.head is 5; must equal query.extent.head (4)"},
    {"lse_dim_longer", [](Call& c) { c.args.lse.extent.dim = 16; },
     "lse.extent.dim is 16; must be 1: one number a row"},
    {"lse_batch", [](Call& c) { c.args.lse.extent.batch = 1; },
     "lse.extent.batch is 1; must equal query.extent.batch (2)"},
    {"lse_head", [](Call& c) { c.args.lse.extent.head = 2; },
     "lse.extent.head is 2; must equal query.extent.head (4)"},
    {"lse_seq", [](Call& c) { c.args.lse.extent.seq = 3; },
     "lse.extent.seq is 3; must equal query.extent.seq (5)"},
    {"lse_dim",
     [](Call& c) {
       c.args.lse.extent = {.batch = 2, .head = 4, .seq = 5, .dim = 2};
       c.args.lse.stride = bhsd_strides(c.args.lse.extent);
     },
     "lse.extent.dim is 2; must be 1: one number a row"},
    {"bias_batch", [](Call& c) { c.args.bias.extent.batch = 3; },
     "bias.extent.batch is 3; must be query.extent.batch (2) or 1"},
    {"bias_head", [](Call& c) { c.args.bias.extent.head = 2; },
     "bias.extent.head is 2; must be query.extent.head (4) or 1"},
    {"bias_seq", [](Call& c) { c.args.bias.extent.seq = 4; },
     "bias.extent.seq is 4; must be query.extent.seq (5) or 1"},
    {"bias_dim", [](Call& c) { c.args.bias.extent.dim = 6; },
     "bias.extent.dim is 6; must be key.extent.seq (7) or 1"},
    {"boolean_mask_head", [](Call& c) { c.args.boolean_mask.extent.head = 0; },
     "boolean_mask.extent.head is 0; must be query.extent.head (4) or 1"},
    {"boolean_mask_dim", [](Call& c) { c.args.boolean_mask.extent.dim = 8; },
     "boolean_mask.extent.dim is 8; must be key.extent.seq (7) or 1"},
    {"alibi_slopes_batch", [](Call& c) { c.args.alibi_slopes.extent.batch = 3; },
     "alibi_slopes.extent.batch is 3; must be query.extent.batch (2) or 1"},
    {"alibi_slopes_head", [](Call& c) { c.args.alibi_slopes.extent.head = 2; },
     "alibi_slopes.extent.head is 2; must equal query.extent.head (4)"},
    {"alibi_slopes_seq", [](Call& c) { c.args.alibi_slopes.extent.seq = 5; },
     "alibi_slopes.extent.seq is 5; must be 1: one number a head"},
    {"sinks_batch", [](Call& c) { c.args.sinks.extent.batch = 2; },
     "sinks.extent.batch is 2; must be 1: the batch shares its sinks"},
    {"sinks_head", [](Call& c) { c.args.sinks.extent.head = 1; },
     "sinks.extent.head is 1; must equal query.extent.head (4)"},
    {"sinks_dim", [](Call& c) { c.args.sinks.extent.dim = 2; },
     "sinks.extent.dim is 2; must be 1: one number a head"},

    {"query_stride_negative", [](Call& c) { c.args.query.stride.seq = -16; },
     "query.stride.seq is -16; must be at least 0: reversed axes are not supported"},
    {"bias_stride_negative", [](Call& c) { c.args.bias.stride.batch = -1; },
     "bias.stride.batch is -1; must be at least 0: reversed axes are not supported"},
    {"query_last_stride", [](Call& c) { c.args.query.stride.dim = 2; },
     "query.stride.dim is 2; must be 1: elements of a row are neighbours"},
    {"key_last_stride", [](Call& c) { c.args.key.stride.dim = 0; },
     "key.stride.dim is 0; must be 1: elements of a row are neighbours"},
    {"value_last_stride", [](Call& c) { c.args.value.stride.dim = 7; },
     "value.stride.dim is 7; must be 1: elements of a row are neighbours"},
    {"out_last_stride", [](Call& c) { c.args.out.stride.dim = 5; },
     "out.stride.dim is 5; must be 1: elements of a row are neighbours"},
    {"bias_last_stride", [](Call& c) { c.args.bias.stride.dim = 2; },
     "bias.stride.dim is 2; must be 1, or 0 to broadcast"},
    {"boolean_mask_last_stride", [](Call& c) { c.args.boolean_mask.stride.dim = 3; },
     "boolean_mask.stride.dim is 3; must be 1, or 0 to broadcast"},

    {"query_count_overflows",
     [](Call& c) {
       c.args.query.extent = {kHuge, kHuge, kHuge, kHuge};
       c.args.query.stride = {0, 0, 0, 1};
     },
     "query.extent is [2305843009213693952, *]; must hold fewer than 2^63 elements"},
    {"key_span_overflows",
     [](Call& c) { c.args.key.stride.batch = std::numeric_limits<std::int64_t>::max(); },
     "key.stride is [9223372036854775807, *]; must keep the last element of [2, 2, 7, 16] within "
     "2^63 bytes of the first"},
    {"value_span_overflows_all_axes",
     [](Call& c) {
       const std::int64_t most = std::numeric_limits<std::int64_t>::max();
       c.args.value.stride = {most, most, most, 1};
     },
     "value.stride is [*]; must keep the last element of [2, 2, 7, 8] within 2^63 bytes of the "
     "first"},
    {"bias_span_overflows", [](Call& c) { c.args.bias.stride.seq = kHuge; },
     "bias.stride is [*]; must keep the last element of [2, 4, 5, 7] within 2^63 bytes of the "
     "first"},

    {"out_broadcast", [](Call& c) { c.args.out.stride.batch = 0; },
     "out.stride is [0, 40, 8, 1]; must give every element of [2, 4, 5, 8] its own place: *"},
    {"out_rows_interleaved", [](Call& c) { c.args.out.stride.seq = 4; },
     "out.stride is [160, 40, 4, 1]; must give every element of [2, 4, 5, 8] its own place: *"},
    {"lse_broadcast", [](Call& c) { c.args.lse.stride.head = 0; },
     "lse.stride is [20, 0, 1, 1]; must give every element of [2, 4, 5, 1] its own place: *"},

    {"window_left_negative",
     [](Call& c) { c.options.mask = Mask::window(-1, 0, Alignment::TopLeft); },
     "options.mask.left is -1; must be at least 0; std::nullopt is unbounded"},
    {"window_right_negative",
     [](Call& c) { c.options.mask = Mask::window(std::nullopt, -2, Alignment::BottomRight); },
     "options.mask.right is -2; must be at least 0; std::nullopt is unbounded"},
    {"alignment_unknown", [](Call& c) { c.options.mask = Mask::causal(static_cast<Alignment>(9)); },
     "options.mask.alignment is 9; must be Alignment::TopLeft or Alignment::BottomRight"},
    {"accumulate_unknown", [](Call& c) { c.options.accumulate = static_cast<Accumulate>(5); },
     "options.accumulate is 5; must be Accumulate::fp32 or Accumulate::fp16"},
    {"accumulate_fp16_for_fp32", [](Call& c) { c.options.accumulate = Accumulate::fp16; },
     "options.accumulate is Accumulate::fp16; must be Accumulate::fp32 unless query.dtype (fp32) "
     "is fp16"},
    {"dropout_negative", [](Call& c) { c.options.dropout = -0.25; },
     "options.dropout is -0.25; must be a probability in [0, 1]"},
    {"dropout_above_one", [](Call& c) { c.options.dropout = 1.5; },
     "options.dropout is 1.5; must be a probability in [0, 1]"},
    {"dropout_nan", [](Call& c) { c.options.dropout = kNaN; },
     "options.dropout is nan; must be a probability in [0, 1]"},
    {"dropout_infinite", [](Call& c) { c.options.dropout = kInfinity; },
     "options.dropout is inf; must be a probability in [0, 1]"},
    {"max_seq_q_without_packing", [](Call& c) { c.options.max_seq_q = 5; },
     "options.max_seq_q is 5; must be 0 unless the input is packed by cu_seqlens"},
    {"max_seq_k_without_packing", [](Call& c) { c.options.max_seq_k = 1; },
     "options.max_seq_k is 1; must be 0 unless the input is packed by cu_seqlens"},
};

const Wrong kWrongPacked[] = {
    {"batch",
     [](Call& c) {
       c.args.query.extent.batch = c.args.key.extent.batch = c.args.value.extent.batch = 2;
       c.args.out.extent.batch = c.args.lse.extent.batch = 2;
     },
     "query.extent.batch is 2; must be 1 for packed input: segments follow one another along seq"},
    {"max_seq_q_negative", [](Call& c) { c.options.max_seq_q = -1; },
     "options.max_seq_q is -1; must be at least 0"},
    {"max_seq_k_negative", [](Call& c) { c.options.max_seq_k = -3; },
     "options.max_seq_k is -3; must be at least 0"},
    {"max_seq_q_beyond_total", [](Call& c) { c.options.max_seq_q = 6; },
     "options.max_seq_q is 6; must be at most query.extent.seq (5)"},
    {"max_seq_k_beyond_total", [](Call& c) { c.options.max_seq_k = kHuge; },
     "options.max_seq_k is 2305843009213693952; must be at most key.extent.seq (6)"},
    {"bias_segments",
     [](Call& c) {
       const Extents e{.batch = 2, .head = 4, .seq = 3, .dim = 3};
       c.args.bias = ConstTensor::bhsd(c.inputs(2 * 4 * 3 * 3 * 4), DType::fp32, e);
     },
     "bias.extent.batch is 2; must be the number of segments (3) or 1"},
    {"bias_rows",
     [](Call& c) {
       const Extents e{.batch = 3, .head = 4, .seq = 5, .dim = 3};
       c.args.bias = ConstTensor::bhsd(c.inputs(3 * 4 * 5 * 3 * 4), DType::fp32, e);
     },
     "bias.extent.seq is 5; must be the longest query segment, options.max_seq_q (3) or 1"},
    {"boolean_mask_columns",
     [](Call& c) {
       const Extents e{.batch = 3, .head = 1, .seq = 3, .dim = 6};
       c.args.boolean_mask = ConstTensor::bhsd(c.inputs(3 * 3 * 6), DType::uint8, e);
     },
     "boolean_mask.extent.dim is 6; must be the longest key segment, options.max_seq_k (3) or 1"},
    {"alibi_segments",
     [](Call& c) {
       const Extents e{.batch = 2, .head = 4};
       c.args.alibi_slopes = ConstTensor::bhsd(c.inputs(32), DType::fp32, e);
     },
     "alibi_slopes.extent.batch is 2; must be the number of segments (3) or 1"},
};

class WrongProblem : public ::testing::TestWithParam<Wrong> {};
TEST_P(WrongProblem, IsRefused) { expect_refused(Call::everything, GetParam(), Within::Problem); }
INSTANTIATE_TEST_SUITE_P(Dense, WrongProblem, ::testing::ValuesIn(kWrongDense), name_of);

class WrongPackedProblem : public ::testing::TestWithParam<Wrong> {};
TEST_P(WrongPackedProblem, IsRefused) { expect_refused(Call::packed, GetParam(), Within::Problem); }
INSTANTIATE_TEST_SUITE_P(Packed, WrongPackedProblem, ::testing::ValuesIn(kWrongPacked), name_of);

// A Problem written by hand can be wrong in ways that no arguments pose.
struct WrongField {
  const char* name;
  void (*spoil)(Problem&);
  const char* text;
};
const WrongField kWrongFields[] = {
    {"operation", [](Problem& p) { p.operation = static_cast<Operation>(3); },
     "operation is 3; must be an enumerator of Operation"},
    {"query_dtype_unknown", [](Problem& p) { p.query.dtype = kNoDType; },
     "query.dtype is unknown; must be fp32, fp16 or bf16"},
    {"bias_dtype_unknown", [](Problem& p) { p.bias = {.dtype = kNoDType}; },
     "bias.dtype is unknown; must be fp32 or query.dtype (fp32)"},
    {"alignment_zero", [](Problem& p) { p.query.alignment = 0; },
     "query.alignment is 0; must be a power of two from 4, the size of fp32, to 128"},
    {"alignment_not_a_power", [](Problem& p) { p.key.alignment = 24; },
     "key.alignment is 24; must be a power of two from 4, the size of fp32, to 128"},
    {"alignment_below_element", [](Problem& p) { p.out->alignment = 2; },
     "out.alignment is 2; must be a power of two from 4, the size of fp32, to 128"},
    {"alignment_too_large", [](Problem& p) { p.value.alignment = 256; },
     "value.alignment is 256; must be a power of two from 4, the size of fp32, to 128"},
    {"alignment_negative", [](Problem& p) { p.lse->alignment = -16; },
     "lse.alignment is -16; must be a power of two from 4, the size of fp32, to 128"},
    {"segments_negative",
     [](Problem& p) {
       p.packed = PackedSpec{.segments = -1};
       p.query.extent.batch = p.key.extent.batch = p.value.extent.batch = p.out->extent.batch = 1;
       p.lse->extent.batch = 1;
     },
     "packed.segments is -1; must be from 0 to 1152921504606846974: cu_seqlens_q holds "
     "segments + 1 numbers"},
    {"segments_beyond_memory",
     [](Problem& p) {
       p.packed = PackedSpec{.segments = INT64_MAX};
       p.query.extent.batch = p.key.extent.batch = p.value.extent.batch = p.out->extent.batch = 1;
       p.lse->extent.batch = 1;
     },
     "packed.segments is 9223372036854775807; must be from 0 to 1152921504606846974: cu_seqlens_q "
     "holds segments + 1 numbers"},
    {"cu_seqlens_q_dtype", [](Problem& p) { p.packed = PackedSpec{.dtype_q = DType::fp32}; },
     "cu_seqlens_q.dtype is fp32; must be int32 or int64"},
    {"cu_seqlens_k_dtype", [](Problem& p) { p.packed = PackedSpec{.dtype_k = DType::uint8}; },
     "cu_seqlens_k.dtype is uint8; must be int32 or int64"},
};

TEST(WrongProblem, WrittenByHand) {
  for (const WrongField& wrong : kWrongFields) {
    Problem problem = Call::dense().problem();
    ASSERT_TRUE(supports(problem)) << supports(problem).reason;
    wrong.spoil(problem);
    const Support support = supports(problem);
    EXPECT_EQ(support.status, Support::Status::InvalidArgument) << wrong.name;
    EXPECT_EQ(support.reason, wrong.text) << wrong.name;
    const Thrown thrown = thrown_by([&] { plan(problem); });
    EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument) << wrong.name;
    EXPECT_EQ(thrown.text, wrong.text);
  }
}

struct Operand {
  const char* name;
  TensorSpec& (*in)(Problem&);
};
const Operand kOperands[] = {
    {"query", [](Problem& p) -> TensorSpec& { return p.query; }},
    {"key", [](Problem& p) -> TensorSpec& { return p.key; }},
    {"value", [](Problem& p) -> TensorSpec& { return p.value; }},
    {"out", [](Problem& p) -> TensorSpec& { return *p.out; }},
    {"lse", [](Problem& p) -> TensorSpec& { return *p.lse; }},
    {"alibi_slopes", [](Problem& p) -> TensorSpec& { return *p.alibi_slopes; }},
    {"bias", [](Problem& p) -> TensorSpec& { return *p.bias; }},
    {"boolean_mask", [](Problem& p) -> TensorSpec& { return *p.boolean_mask; }},
    {"sinks", [](Problem& p) -> TensorSpec& { return *p.sinks; }},
};

// Strides follow from extents: where both are wrong, the extents are what to look at.
TEST(WrongProblem, ExtentsAreSaidBeforeStrides) {
  for (const Operand& operand : kOperands) {
    for (std::int64_t Extents::* axis :
         {&Extents::batch, &Extents::head, &Extents::seq, &Extents::dim}) {
      Problem problem = Call::everything().problem();
      TensorSpec& spec = operand.in(problem);
      spec.extent.*axis += 8;
      spec.stride = {-1, -1, -1, -1};
      const Support support = supports(problem);
      EXPECT_EQ(support.status, Support::Status::InvalidArgument) << operand.name;
      EXPECT_TRUE(matches(support.reason, "*.extent.* is *; must *"))
          << operand.name << ": " << support.reason;
    }
  }
}

// A problem described before an operand was set: one number beside tensors.
TEST(WrongProblem, NamesTheOperandThatWasForgotten) {
  const std::pair<TensorSpec Problem::*, const char*> cases[] = {
      {&Problem::query,
       "query.extent is [1, 1, 1, 1], as if query were missing; must fit key.extent ([2, 2, 7, "
       "16])"},
      {&Problem::key,
       "key.extent is [1, 1, 1, 1], as if key were missing; must fit query.extent ([2, 4, 5, 16])"},
      {&Problem::value,
       "value.extent is [1, 1, 1, 1], as if value were missing; must fit key.extent ([2, 2, 7, "
       "16])"},
  };
  for (const auto& [operand, text] : cases) {
    Problem problem = Call::dense().problem();
    problem.*operand = {};
    const Support support = supports(problem);
    EXPECT_EQ(support.status, Support::Status::InvalidArgument);
    EXPECT_EQ(support.reason, text);
  }
  Problem problem = Call::dense().problem();
  problem.out = {};
  EXPECT_EQ(supports(problem).reason, "out is missing; must be a tensor [batch, head, seq, dim]");
}

TEST(WrongProblem, DefaultConstructedIsAnswered) {
  EXPECT_EQ(supports(Problem{}).status, Support::Status::InvalidArgument);
  EXPECT_EQ(supports(Problem{}).reason, "out is missing; must be a tensor [batch, head, seq, dim]");
}

}  // namespace
}  // namespace tessera::testing
