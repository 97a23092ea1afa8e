// Wrong calls of backward and decode: what the operands of the one are refused for, and that the
// other is refused what forward is.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/unit/src/wrong.hpp"

namespace tessera::testing {
namespace {

const void* moved(const void* data, std::ptrdiff_t bytes) {
  return static_cast<const char*>(data) + bytes;
}
void* moved(void* data, std::ptrdiff_t bytes) { return static_cast<char*>(data) + bytes; }

const Wrong kWrongProblem[] = {
    {"dout_dtype", [](Call& c) { c.args.dout.dtype = DType::bf16; },
     "dout.dtype is bf16; must equal query.dtype (fp32)"},
    {"dlse_dtype", [](Call& c) { c.args.dlse.dtype = DType::bf16; },
     "dlse.dtype is bf16; must be fp32"},
    {"dq_dtype", [](Call& c) { c.args.dq.dtype = DType::bf16; }, "dq.dtype is bf16; must be fp32"},
    {"dk_dtype", [](Call& c) { c.args.dk.dtype = DType::fp16; }, "dk.dtype is fp16; must be fp32"},
    {"dv_dtype", [](Call& c) { c.args.dv.dtype = DType::uint8; },
     "dv.dtype is uint8; must be fp32"},
    {"dbias_dtype", [](Call& c) { c.args.dbias.dtype = DType::bf16; },
     "dbias.dtype is bf16; must be fp32"},
    {"dsink_dtype", [](Call& c) { c.args.dsink.dtype = DType::fp16; },
     "dsink.dtype is fp16; must be fp32"},
    {"out_dtype", [](Call& c) { c.args.out.dtype = DType::bf16; },
     "out.dtype is bf16; must equal query.dtype (fp32)"},
    {"lse_dtype", [](Call& c) { c.args.lse.dtype = DType::fp16; },
     "lse.dtype is fp16; must be fp32"},

    {"dout_batch_negative", [](Call& c) { c.args.dout.extent.batch = -1; },
     "dout.extent.batch is -1; must be at least 0"},
    {"dlse_head_negative", [](Call& c) { c.args.dlse.extent.head = -4; },
     "dlse.extent.head is -4; must be at least 0"},
    {"dq_seq_negative", [](Call& c) { c.args.dq.extent.seq = -5; },
     "dq.extent.seq is -5; must be at least 0"},
    {"dk_dim_negative", [](Call& c) { c.args.dk.extent.dim = -16; },
     "dk.extent.dim is -16; must be at least 0"},
    {"dv_head_negative", [](Call& c) { c.args.dv.extent.head = -2; },
     "dv.extent.head is -2; must be at least 0"},
    {"dbias_seq_negative", [](Call& c) { c.args.dbias.extent.seq = -5; },
     "dbias.extent.seq is -5; must be at least 0"},
    {"dsink_head_negative", [](Call& c) { c.args.dsink.extent.head = -4; },
     "dsink.extent.head is -4; must be at least 0"},

    {"dout_batch", [](Call& c) { c.args.dout.extent.batch = 1; },
     "dout.extent.batch is 1; must equal query.extent.batch (2)"},
    {"dout_head", [](Call& c) { c.args.dout.extent.head = 2; },
     "dout.extent.head is 2; must equal query.extent.head (4)"},
    {"dout_seq", [](Call& c) { c.args.dout.extent.seq = 4; },
     "dout.extent.seq is 4; must equal query.extent.seq (5)"},
    {"dout_dim", [](Call& c) { c.args.dout.extent.dim = 16; },
     "dout.extent.dim is 16; must equal value.extent.dim (8)"},
    {"dlse_batch", [](Call& c) { c.args.dlse.extent.batch = 1; },
     "dlse.extent.batch is 1; must equal query.extent.batch (2)"},
    {"dlse_head", [](Call& c) { c.args.dlse.extent.head = 1; },
     "dlse.extent.head is 1; must equal query.extent.head (4)"},
    {"dlse_seq", [](Call& c) { c.args.dlse.extent.seq = 1; },
     "dlse.extent.seq is 1; must equal query.extent.seq (5)"},
    {"dlse_dim", [](Call& c) { c.args.dlse.extent.dim = 2; },
     "dlse.extent.dim is 2; must be 1: one number a row"},
    {"dq_batch", [](Call& c) { c.args.dq.extent.batch = 1; },
     "dq.extent.batch is 1; must equal query.extent.batch (2)"},
    {"dq_dim", [](Call& c) { c.args.dq.extent.dim = 8; },
     "dq.extent.dim is 8; must equal query.extent.dim (16)"},
    {"dk_head", [](Call& c) { c.args.dk.extent.head = 4; },
     "dk.extent.head is 4; must equal key.extent.head (2)"},
    {"dk_seq", [](Call& c) { c.args.dk.extent.seq = 5; },
     "dk.extent.seq is 5; must equal key.extent.seq (7)"},
    {"dv_head", [](Call& c) { c.args.dv.extent.head = 1; },
     "dv.extent.head is 1; must equal value.extent.head (2)"},
    {"dv_dim", [](Call& c) { c.args.dv.extent.dim = 16; },
     "dv.extent.dim is 16; must equal value.extent.dim (8)"},
    {"dbias_batch", [](Call& c) { c.args.dbias.extent.batch = 1; },
     "dbias.extent.batch is 1; must equal bias.extent.batch (2)"},
    {"dbias_head", [](Call& c) { c.args.dbias.extent.head = 1; },
     "dbias.extent.head is 1; must equal bias.extent.head (4)"},
    {"dbias_dim", [](Call& c) { c.args.dbias.extent.dim = 1; },
     "dbias.extent.dim is 1; must equal bias.extent.dim (7)"},
    {"dsink_batch", [](Call& c) { c.args.dsink.extent.batch = 2; },
     "dsink.extent.batch is 2; must equal sinks.extent.batch (1)"},
    {"dsink_head", [](Call& c) { c.args.dsink.extent.head = 2; },
     "dsink.extent.head is 2; must equal sinks.extent.head (4)"},
    {"out_dim", [](Call& c) { c.args.out.extent.dim = 16; },
     "out.extent.dim is 16; must equal value.extent.dim (8)"},
    {"lse_seq", [](Call& c) { c.args.lse.extent.seq = 4; },
     "lse.extent.seq is 4; must equal query.extent.seq (5)"},

    {"dout_stride_negative", [](Call& c) { c.args.dout.stride.seq = -8; },
     "dout.stride.seq is -8; must be at least 0: reversed axes are not supported"},
    {"dk_stride_negative", [](Call& c) { c.args.dk.stride.head = -112; },
     "dk.stride.head is -112; must be at least 0: reversed axes are not supported"},
    {"dout_last_stride", [](Call& c) { c.args.dout.stride.dim = 2; },
     "dout.stride.dim is 2; must be 1, or 0 to broadcast"},
    {"dv_last_stride", [](Call& c) { c.args.dv.stride.dim = 2; },
     "dv.stride.dim is 2; must be 1: elements of a row are neighbours"},
    {"dbias_last_stride", [](Call& c) { c.args.dbias.stride.dim = 0; },
     "dbias.stride.dim is 0; must be 1: elements of a row are neighbours"},
    {"dlse_span_overflows",
     [](Call& c) { c.args.dlse.stride.batch = std::numeric_limits<std::int64_t>::max(); },
     "dlse.stride is [*]; must keep the last element of [2, 4, 5, 1] within 2^63 bytes of the "
     "first"},
    {"dq_broadcast", [](Call& c) { c.args.dq.stride.batch = 0; },
     "dq.stride is [0, 80, 16, 1]; must give every element of [2, 4, 5, 16] its own place: *"},
    {"dk_broadcast", [](Call& c) { c.args.dk.stride.head = 0; },
     "dk.stride is [224, 0, 16, 1]; must give every element of [2, 2, 7, 16] its own place: *"},
    {"dv_rows_interleaved", [](Call& c) { c.args.dv.stride.seq = 4; },
     "dv.stride is [112, 56, 4, 1]; must give every element of [2, 2, 7, 8] its own place: *"},
    {"dbias_broadcast", [](Call& c) { c.args.dbias.stride.head = 0; },
     "dbias.stride is [140, 0, 7, 1]; must give every element of [2, 4, 5, 7] its own place: *"},
    {"dsink_broadcast", [](Call& c) { c.args.dsink.stride.head = 0; },
     "dsink.stride is [4, 0, 1, 1]; must give every element of [1, 4, 1, 1] its own place: *"},

    {"out_without_lse", [](Call& c) { c.args.lse = {}; },
     "lse is missing; must be given together with out; without both, backward computes them again"},
    {"dbias_without_bias", [](Call& c) { c.args.bias = {}; },
     "dbias is given; must be absent without bias"},
    {"dsink_without_sinks", [](Call& c) { c.args.sinks = {}; },
     "dsink is given; must be absent without sinks"},
};

const Wrong kWrongArgs[] = {
    {"dout_missing", [](Call& c) { c.args.dout = {}; },
     "dout is missing; must be a tensor [batch, head, seq, dim]"},
    {"dq_missing", [](Call& c) { c.args.dq = {}; },
     "dq is missing; must be a tensor [batch, head, seq, dim]"},
    {"dk_missing", [](Call& c) { c.args.dk = {}; },
     "dk is missing; must be a tensor [batch, head, seq, dim]"},
    {"dv_missing", [](Call& c) { c.args.dv = {}; },
     "dv is missing; must be a tensor [batch, head, seq, dim]"},
    {"query_missing", [](Call& c) { c.args.query = {}; },
     "query is missing; must be a tensor [batch, head, seq, dim]"},
    {"dout_null", [](Call& c) { c.args.dout.data = nullptr; },
     "dout.data is null; must point to the elements of [2, 4, 5, 8]"},
    {"dq_null", [](Call& c) { c.args.dq.data = nullptr; },
     "dq.data is null; must point to the elements of [2, 4, 5, 16]"},
    {"out_null", [](Call& c) { c.args.out.data = nullptr; },
     "out.data is null; must point to the elements of [2, 4, 5, 8]; to go without out, leave it "
     "default-constructed"},
    {"lse_null", [](Call& c) { c.args.lse.data = nullptr; },
     "lse.data is null; must point to the elements of [2, 4, 5, 1]; to go without lse, leave it "
     "default-constructed"},
    {"dlse_null", [](Call& c) { c.args.dlse.data = nullptr; },
     "dlse.data is null; must point to the elements of [2, 4, 5, 1]; to go without dlse, leave it "
     "default-constructed"},
    {"dbias_null", [](Call& c) { c.args.dbias.data = nullptr; },
     "dbias.data is null; must point to the elements of [2, 4, 5, 7]; to go without dbias, leave "
     "it default-constructed"},
    {"dsink_null", [](Call& c) { c.args.dsink.data = nullptr; },
     "dsink.data is null; must point to the elements of [1, 4, 1, 1]; to go without dsink, leave "
     "it default-constructed"},
    {"dout_dtype_unknown", [](Call& c) { c.args.dout.dtype = static_cast<DType>(99); },
     "dout.dtype is 99; must be an enumerator of DType"},

    {"dout_misaligned", [](Call& c) { c.args.dout.data = moved(c.args.dout.data, 2); },
     "dout.data is 0x*; must be a multiple of 4, the size of fp32"},
    {"dlse_misaligned", [](Call& c) { c.args.dlse.data = moved(c.args.dlse.data, 1); },
     "dlse.data is 0x*; must be a multiple of 4, the size of fp32"},
    {"dk_misaligned", [](Call& c) { c.args.dk.data = moved(c.args.dk.data, 3); },
     "dk.data is 0x*; must be a multiple of 4, the size of fp32"},
    {"dsink_misaligned", [](Call& c) { c.args.dsink.data = moved(c.args.dsink.data, 2); },
     "dsink.data is 0x*; must be a multiple of 4, the size of fp32"},

    {"dq_is_query",
     [](Call& c) {
       c.args.dq.data = c.outputs(8192);
       c.args.query.data = c.args.dq.data;
     },
     "dq is at 0x*; must not overlap query, which begins at 0x*"},
    {"dk_overlaps_key",
     [](Call& c) {
       c.args.dk.data = c.outputs(8192);
       c.args.key.data = moved(c.args.dk.data, 64);
     },
     "dk is at 0x*; must not overlap key, which begins at 0x*"},
    {"dv_overlaps_dout",
     [](Call& c) {
       c.args.dv.data = c.outputs(8192);
       c.args.dout.data = c.args.dv.data;
     },
     "dv is at 0x*; must not overlap dout, which begins at 0x*"},
    {"dq_overlaps_out",
     [](Call& c) {
       c.args.dq.data = c.outputs(8192);
       c.args.out.data = moved(c.args.dq.data, 128);
     },
     "dq is at 0x*; must not overlap out, which begins at 0x*"},
    {"dq_overlaps_lse",
     [](Call& c) {
       c.args.dq.data = c.outputs(8192);
       c.args.lse.data = c.args.dq.data;
     },
     "dq is at 0x*; must not overlap lse, which begins at 0x*"},
    {"dk_overlaps_dlse",
     [](Call& c) {
       c.args.dk.data = c.outputs(8192);
       c.args.dlse.data = c.args.dk.data;
     },
     "dk is at 0x*; must not overlap dlse, which begins at 0x*"},
    {"dbias_is_bias",
     [](Call& c) {
       c.args.dbias.data = c.outputs(8192);
       c.args.bias.data = c.args.dbias.data;
     },
     "dbias is at 0x*; must not overlap bias, which begins at 0x*"},
    {"dsink_is_sinks",
     [](Call& c) {
       c.args.dsink.data = c.outputs(64);
       c.args.sinks.data = c.args.dsink.data;
     },
     "dsink is at 0x*; must not overlap sinks, which begins at 0x*"},
    {"dk_overlaps_dq",
     [](Call& c) {
       c.args.dq.data = c.outputs(8192);
       c.args.dk.data = moved(c.args.dq.data, 2 * 4 * 5 * 16 * 4 - 4);
     },
     "dk is at 0x*; must not overlap dq, which begins at 0x*"},
    {"dv_is_dk",
     [](Call& c) {
       c.args.dk.data = c.outputs(8192);
       c.args.dv.data = c.args.dk.data;
     },
     "dv is at 0x*; must not overlap dk, which begins at 0x*"},
    {"dsink_overlaps_dbias",
     [](Call& c) {
       c.args.dbias.data = c.outputs(8192);
       c.args.dsink.data = moved(c.args.dbias.data, 16);
     },
     "dsink is at 0x*; must not overlap dbias, which begins at 0x*"},
    {"dq_overlaps_key_end",
     [](Call& c) {
       c.args.dq.data = c.outputs(8192);
       c.args.key_end.data = c.args.dq.data;
     },
     "dq is at 0x*; must not overlap key_end, which begins at 0x*"},

    {"key_end_size", [](Call& c) { c.args.key_end.size = 3; },
     "key_end.size is 3; must equal query.extent.batch (2)"},
    {"scale_nan", [](Call& c) { c.args.scale = std::numeric_limits<float>::quiet_NaN(); },
     "scale is nan; must be finite"},
    {"softcap_negative", [](Call& c) { c.args.softcap = -1; },
     "softcap is -1; must be finite and at least 0; 0 is off"},
    {"workspace_null", [](Call& c) { c.args.workspace = {.data = nullptr, .size = 4096}; },
     "workspace.data is null; must point to workspace.size (4096) bytes"},
};

class WrongGradientProblem : public ::testing::TestWithParam<Wrong> {};
TEST_P(WrongGradientProblem, IsRefused) {
  expect_refused(Call::gradients, GetParam(), Within::Problem);
}
INSTANTIATE_TEST_SUITE_P(Backward, WrongGradientProblem, ::testing::ValuesIn(kWrongProblem),
                         name_of);

class WrongGradientArgs : public ::testing::TestWithParam<Wrong> {};
TEST_P(WrongGradientArgs, AreRefused) { expect_refused(Call::gradients, GetParam(), Within::Args); }
INSTANTIATE_TEST_SUITE_P(Backward, WrongGradientArgs, ::testing::ValuesIn(kWrongArgs), name_of);

Call decode_everything() {
  Call call = Call::everything();
  call.operation = Operation::decode;
  return call;
}

const Wrong kWrongDecode[] = {
    {"key_dim", [](Call& c) { c.args.key.extent.dim = 8; },
     "key.extent.dim is 8; must equal query.extent.dim (16)"},
    {"out_broadcast", [](Call& c) { c.args.out.stride.batch = 0; },
     "out.stride is [0, 40, 8, 1]; must give every element of [2, 4, 5, 8] its own place: *"},
    {"sinks_head", [](Call& c) { c.args.sinks.extent.head = 1; },
     "sinks.extent.head is 1; must equal query.extent.head (4)"},
    {"dropout", [](Call& c) { c.options.dropout = 2; },
     "options.dropout is 2; must be a probability in [0, 1]"},
};

class WrongDecodeProblem : public ::testing::TestWithParam<Wrong> {};
TEST_P(WrongDecodeProblem, IsRefused) {
  expect_refused(decode_everything, GetParam(), Within::Problem);
}
INSTANTIATE_TEST_SUITE_P(Decode, WrongDecodeProblem, ::testing::ValuesIn(kWrongDecode), name_of);

TEST(WrongGradient, NothingAtAll) {
  EXPECT_EQ(thrown_by([] { backward({}); }).text,
            "query is missing; must be a tensor [batch, head, seq, dim]");
  EXPECT_EQ(thrown_by([] { decode({}); }).text,
            "query is missing; must be a tensor [batch, head, seq, dim]");
}

// A Problem written by hand can lack what arguments must have.
TEST(WrongGradient, ProblemsWrittenByHand) {
  struct Field {
    void (*spoil)(Problem&);
    const char* text;
  };
  const Field fields[] = {
      {[](Problem& p) { p.dout = {}; },
       "dout is missing; must be a tensor [batch, head, seq, dim]"},
      {[](Problem& p) { p.dq = {}; }, "dq is missing; must be a tensor [batch, head, seq, dim]"},
      {[](Problem& p) { p.dk = {}; }, "dk is missing; must be a tensor [batch, head, seq, dim]"},
      {[](Problem& p) { p.dv = {}; }, "dv is missing; must be a tensor [batch, head, seq, dim]"},
      {[](Problem& p) { p.dq->alignment = 2; },
       "dq.alignment is 2; must be a power of two from 4, the size of fp32, to 128"},
      {[](Problem& p) { p.dout->alignment = 0; },
       "dout.alignment is 0; must be a power of two from 4, the size of fp32, to 128"},
      {[](Problem& p) { p.dsink->alignment = 256; },
       "dsink.alignment is 256; must be a power of two from 4, the size of fp32, to 128"},
      {[](Problem& p) { p.dbias->dtype = static_cast<DType>(17); },
       "dbias.dtype is unknown; must be fp32"},
  };
  for (const Field& field : fields) {
    Problem problem = Call::gradients().problem();
    ASSERT_TRUE(supports(problem)) << supports(problem).reason;
    field.spoil(problem);
    EXPECT_EQ(supports(problem).status, Support::Status::InvalidArgument) << field.text;
    EXPECT_EQ(supports(problem).reason, field.text);
  }
}

TEST(WrongGradient, HeadDimension512IsBeyondThisVersion) {
  Problem problem = Call::gradients().problem();
  const auto set = [](TensorSpec& spec, std::int64_t dim) {
    spec.extent.dim = dim;
    spec.stride = bhsd_strides(spec.extent);
  };
  for (TensorSpec* spec : {&problem.query, &problem.key, &*problem.dq, &*problem.dk})
    set(*spec, 512);
  EXPECT_EQ(supports(problem).status, Support::Status::Unsupported);
  EXPECT_EQ(
      supports(problem).reason,
      "gradients for head dimension 512: backward works from 8 to 256, forward and decode for "
      "512, too");
  // No advice that ends there.
  for (TensorSpec* spec : {&problem.query, &problem.key, &*problem.dq, &*problem.dk})
    set(*spec, 320);
  EXPECT_EQ(
      supports(problem).reason,
      "gradients for head dimension 320: backward works from 8 to 256, forward and decode for "
      "512, too");
  for (TensorSpec* spec : {&problem.query, &problem.key, &*problem.dq, &*problem.dk})
    set(*spec, 12);
  EXPECT_EQ(supports(problem).reason,
            "query.extent.dim is 12; must be a multiple of 8 from 8 to 256: pad query and key with "
            "zeros to 16, and set scale to 1/√12");
}

TEST(WrongGradient, WorkspaceThatOverlaps) {
  for (const auto& [name, tensor] :
       {std::pair{"dq", &Args::dq}, std::pair{"dsink", &Args::dsink}}) {
    Call call = Call::gradients();
    const std::size_t size = plan(call.problem()).workspace_size() + 8192;
    call.args.workspace = {.data = call.outputs(size), .size = size};
    (call.args.*tensor).data = call.args.workspace.data;
    const Thrown thrown = thrown_by([&] { call.run(); });
    EXPECT_TRUE(matches(thrown.text, std::string("workspace is at 0x*; must not overlap ") + name +
                                         ", which begins at 0x*"))
        << thrown.text;
    EXPECT_TRUE(call.outputs_are_untouched());
  }
}

}  // namespace
}  // namespace tessera::testing
