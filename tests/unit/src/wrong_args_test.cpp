// Wrong pointers, vectors, values and overlaps: what only Args hold.

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

#include "tests/unit/src/wrong.hpp"

namespace tessera::testing {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
T* moved(T* data, std::ptrdiff_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Byte*>(data) + bytes;
}

// What lies at an address that no memory of ours has.
template <class T = void>
const T* at_address(std::uintptr_t address) {
  return reinterpret_cast<const T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

const Wrong kWrongDense[] = {
    {"query_missing", [](Call& c) { c.args.query = {}; },
     "query is missing; must be a tensor [batch, head, seq, dim]"},
    {"key_missing", [](Call& c) { c.args.key = {}; },
     "key is missing; must be a tensor [batch, head, seq, dim]"},
    {"value_missing", [](Call& c) { c.args.value = {}; },
     "value is missing; must be a tensor [batch, head, seq, dim]"},
    {"out_missing", [](Call& c) { c.args.out = {}; },
     "out is missing; must be a tensor [batch, head, seq, dim]"},
    {"query_null", [](Call& c) { c.args.query.data = nullptr; },
     "query.data is null; must point to the elements of [2, 4, 5, 16]"},
    {"key_null", [](Call& c) { c.args.key.data = nullptr; },
     "key.data is null; must point to the elements of [2, 2, 7, 16]"},
    {"value_null", [](Call& c) { c.args.value.data = nullptr; },
     "value.data is null; must point to the elements of [2, 2, 7, 8]"},
    {"out_null", [](Call& c) { c.args.out.data = nullptr; },
     "out.data is null; must point to the elements of [2, 4, 5, 8]"},
    {"lse_null", [](Call& c) { c.args.lse.data = nullptr; },
     "lse.data is null; must point to the elements of [2, 4, 5, 1]; to go without lse, leave it "
     "default-constructed"},
    {"bias_null", [](Call& c) { c.args.bias.data = nullptr; },
     "bias.data is null; must point to the elements of [2, 4, 5, 7]; to go without bias, leave it "
     "default-constructed"},
    {"boolean_mask_null", [](Call& c) { c.args.boolean_mask.data = nullptr; },
     "boolean_mask.data is null; must point to the elements of [2, 4, 5, 7]; *"},
    {"alibi_slopes_null", [](Call& c) { c.args.alibi_slopes.data = nullptr; },
     "alibi_slopes.data is null; must point to the elements of [2, 4, 1, 1]; *"},
    {"sinks_null", [](Call& c) { c.args.sinks.data = nullptr; },
     "sinks.data is null; must point to the elements of [1, 4, 1, 1]; *"},
    {"key_begin_null", [](Call& c) { c.args.key_begin.data = nullptr; },
     "key_begin.data is null; must point to 2 numbers; to go without key_begin, leave it "
     "default-constructed"},
    {"key_end_null", [](Call& c) { c.args.key_end.data = nullptr; },
     "key_end.data is null; must point to 2 numbers; *"},
    {"query_end_null", [](Call& c) { c.args.query_end.data = nullptr; },
     "query_end.data is null; must point to 2 numbers; *"},

    {"query_misaligned", [](Call& c) { c.args.query.data = moved(c.args.query.data, 2); },
     "query.data is 0x*; must be a multiple of 4, the size of fp32"},
    {"out_misaligned", [](Call& c) { c.args.out.data = moved(c.args.out.data, 1); },
     "out.data is 0x*; must be a multiple of 4, the size of fp32"},
    {"lse_misaligned", [](Call& c) { c.args.lse.data = moved(c.args.lse.data, 2); },
     "lse.data is 0x*; must be a multiple of 4, the size of fp32"},
    {"sinks_misaligned", [](Call& c) { c.args.sinks.data = moved(c.args.sinks.data, 3); },
     "sinks.data is 0x*; must be a multiple of 4, the size of fp32"},
    {"key_end_misaligned", [](Call& c) { c.args.key_end.data = moved(c.args.key_end.data, 1); },
     "key_end.data is 0x*; must be a multiple of 4, the size of int32"},
    {"seed_misaligned", [](Call& c) { c.args.seed_device = at_address<std::uint64_t>(12); },
     "seed_device is 0xc; must be a multiple of 8, the size of its 64-bit number"},
    {"offset_misaligned", [](Call& c) { c.args.offset_device = at_address<std::uint64_t>(1); },
     "offset_device is 0x1; must be a multiple of 8, the size of its 64-bit number"},
    {"key_dtype_unknown", [](Call& c) { c.args.key.dtype = static_cast<DType>(99); },
     "key.dtype is 99; must be an enumerator of DType"},
    {"query_runs_past_memory",
     [](Call& c) {
       c.args.query.data = at_address(std::numeric_limits<std::uintptr_t>::max() - 127);
     },
     "query.data is 0xffffffffffffff80; 2560 bytes from there must not run past the end of memory"},

    {"key_begin_dtype",
     [](Call& c) { c.args.key_begin = c.vector<std::int64_t>(DType::int64, {0, 1}); },
     "key_begin.dtype is int64; must be int32"},
    {"key_end_dtype", [](Call& c) { c.args.key_end.dtype = DType::fp32; },
     "key_end.dtype is fp32; must be int32"},
    {"query_end_dtype", [](Call& c) { c.args.query_end.dtype = static_cast<DType>(77); },
     "query_end.dtype is unknown; must be int32"},
    {"key_begin_size", [](Call& c) { c.args.key_begin.size = 1; },
     "key_begin.size is 1; must equal query.extent.batch (2)"},
    {"key_end_size", [](Call& c) { c.args.key_end.size = 3; },
     "key_end.size is 3; must equal query.extent.batch (2)"},
    {"query_end_size", [](Call& c) { c.args.query_end.size = 0; },
     "query_end.size is 0; must equal query.extent.batch (2)"},
    {"query_end_size_negative", [](Call& c) { c.args.query_end.size = -2; },
     "query_end.size is -2; must be at least 0"},

    {"scale_nan", [](Call& c) { c.args.scale = kNaN; }, "scale is nan; must be finite"},
    {"scale_infinite", [](Call& c) { c.args.scale = -kInfinity; }, "scale is -inf; must be finite"},
    {"scale_beyond_base_2", [](Call& c) { c.args.scale = 2.3587e38f; },
     "scale is 2.3587e+38; must be at most 2.358e38 in size: its product with log2(e) must be "
     "finite in fp32"},
    {"scale_lowest", [](Call& c) { c.args.scale = std::numeric_limits<float>::lowest(); },
     "scale is -3.4028235e+38; must be at most 2.358e38 in size: its product with log2(e) must be "
     "finite "
     "in fp32"},
    {"scale_subnormal", [](Call& c) { c.args.scale = -1e-40f; },
     "scale is -1e-40; must be 0 or at least 1.1754944e-38 in size: fp32 has no precision below"},
    {"softcap_beyond_base_2", [](Call& c) { c.args.softcap = 2.3587e38f; },
     "softcap is 2.3587e+38; must be at most 2.358e38 in size: its product with log2(e) must be "
     "finite in fp32"},
    {"softcap_nan", [](Call& c) { c.args.softcap = kNaN; },
     "softcap is nan; must be finite and at least 0; 0 is off"},
    {"softcap_infinite", [](Call& c) { c.args.softcap = kInfinity; },
     "softcap is inf; must be finite and at least 0; 0 is off"},
    {"softcap_negative_fraction", [](Call& c) { c.args.softcap = -0.1f; },
     "softcap is -0.1; must be finite and at least 0; 0 is off"},
    {"softcap_negative", [](Call& c) { c.args.softcap = -30; },
     "softcap is -30; must be finite and at least 0; 0 is off"},

    {"workspace_null", [](Call& c) { c.args.workspace = {.data = nullptr, .size = 4096}; },
     "workspace.data is null; must point to workspace.size (4096) bytes"},
    {"workspace_misaligned",
     [](Call& c) { c.args.workspace = {.data = moved(c.outputs(512), 32), .size = 256}; },
     "workspace.data is 0x*; must be a multiple of 64, a cache line"},
    {"workspace_past_memory",
     [](Call& c) {
       c.args.workspace = {.data = c.outputs(128), .size = std::numeric_limits<std::size_t>::max()};
     },
     "workspace.size is 18446744073709551615; bytes must not run past the end of memory"},

    {"out_is_query",
     [](Call& c) {
       c.args.out.data = c.outputs(4096);
       c.args.query.data = c.args.out.data;
     },
     "out is at 0x*; must not overlap query, which begins at 0x*"},
    {"out_overlaps_the_end_of_value",
     [](Call& c) {
       c.args.out.data = c.outputs(4096);
       c.args.value.data = moved(c.args.out.data, 2 * 4 * 5 * 8 * 4 - 4);
     },
     "out is at 0x*; must not overlap value, which begins at 0x*"},
    {"lse_overlaps_key",
     [](Call& c) {
       c.args.lse.data = c.outputs(4096);
       c.args.key.data = c.args.lse.data;
     },
     "lse is at 0x*; must not overlap key, which begins at 0x*"},
    {"lse_overlaps_out",
     [](Call& c) {
       c.args.out.data = c.outputs(4096);
       c.args.lse.data = moved(c.args.out.data, 256);
     },
     "lse is at 0x*; must not overlap out, which begins at 0x*"},
    {"out_overlaps_bias",
     [](Call& c) {
       c.args.out.data = c.outputs(4096);
       c.args.bias.data = moved(c.args.out.data, 1024);
     },
     "out is at 0x*; must not overlap bias, which begins at 0x*"},
    {"out_overlaps_boolean_mask",
     [](Call& c) {
       c.args.out.data = c.outputs(4096);
       c.args.boolean_mask.data = moved(c.args.out.data, 1279);
     },
     "out is at 0x*; must not overlap boolean_mask, which begins at 0x*"},
    {"lse_overlaps_alibi_slopes",
     [](Call& c) {
       c.args.lse.data = c.outputs(4096);
       c.args.alibi_slopes.data = moved(c.args.lse.data, 32);
     },
     "lse is at 0x*; must not overlap alibi_slopes, which begins at 0x*"},
    {"lse_overlaps_sinks",
     [](Call& c) {
       c.args.lse.data = c.outputs(4096);
       c.args.sinks.data = moved(c.args.lse.data, 156);
     },
     "lse is at 0x*; must not overlap sinks, which begins at 0x*"},
    {"out_overlaps_key_end",
     [](Call& c) {
       c.args.out.data = c.outputs(4096);
       c.args.key_end.data = c.args.out.data;
     },
     "out is at 0x*; must not overlap key_end, which begins at 0x*"},
    {"out_overlaps_seed",
     [](Call& c) {
       c.args.out.data = c.outputs(4096);
       c.args.seed_device = static_cast<const std::uint64_t*>(c.args.out.data);
     },
     "out is at 0x*; must not overlap seed_device, which begins at 0x*"},
};

const Wrong kWrongPacked[] = {
    {"cu_seqlens_q_absent", [](Call& c) { c.args.cu_seqlens_q = {}; },
     "cu_seqlens_q.data is null; must be given together with cu_seqlens_k"},
    {"cu_seqlens_k_absent", [](Call& c) { c.args.cu_seqlens_k = {}; },
     "cu_seqlens_k.data is null; must be given together with cu_seqlens_q"},
    {"cu_seqlens_q_null", [](Call& c) { c.args.cu_seqlens_q.data = nullptr; },
     "cu_seqlens_q.data is null; must point to 4 numbers; *"},
    {"cu_seqlens_q_dtype", [](Call& c) { c.args.cu_seqlens_q.dtype = DType::fp32; },
     "cu_seqlens_q.dtype is fp32; must be int32 or int64"},
    {"cu_seqlens_k_dtype", [](Call& c) { c.args.cu_seqlens_k.dtype = DType::uint8; },
     "cu_seqlens_k.dtype is uint8; must be int32 or int64"},
    {"cu_seqlens_q_empty", [](Call& c) { c.args.cu_seqlens_q.size = 0; },
     "cu_seqlens_q.size is 0; must be at least 1: segments + 1"},
    {"cu_seqlens_q_size_lowest",
     [](Call& c) { c.args.cu_seqlens_q.size = std::numeric_limits<std::int64_t>::min(); },
     "cu_seqlens_q.size is -9223372036854775808; must be at least 0"},
    {"cu_seqlens_q_size_overflows",
     [](Call& c) {
       c.args.cu_seqlens_q.size = c.args.cu_seqlens_k.size =
           std::numeric_limits<std::int64_t>::max();
     },
     "cu_seqlens_q.size is 9223372036854775807; numbers must take fewer than 2^63 bytes"},
    {"cu_seqlens_k_size", [](Call& c) { c.args.cu_seqlens_k.size = 3; },
     "cu_seqlens_k.size is 3; must equal cu_seqlens_q.size (4)"},
    {"cu_seqlens_q_misaligned",
     [](Call& c) { c.args.cu_seqlens_q.data = moved(c.args.cu_seqlens_q.data, 4); },
     "cu_seqlens_q.data is 0x*; must be a multiple of 8, the size of int64"},
    {"out_overlaps_cu_seqlens_k",
     [](Call& c) {
       c.args.out.data = c.outputs(4096);
       c.args.cu_seqlens_k.data = c.args.out.data;
     },
     "out is at 0x*; must not overlap cu_seqlens_k, which begins at 0x*"},
};

class WrongArgs : public ::testing::TestWithParam<Wrong> {};
TEST_P(WrongArgs, AreRefused) { expect_refused(Call::everything, GetParam(), Within::Args); }
INSTANTIATE_TEST_SUITE_P(Dense, WrongArgs, ::testing::ValuesIn(kWrongDense), name_of);

class WrongPackedArgs : public ::testing::TestWithParam<Wrong> {};
TEST_P(WrongPackedArgs, AreRefused) { expect_refused(Call::packed, GetParam(), Within::Args); }
INSTANTIATE_TEST_SUITE_P(Packed, WrongPackedArgs, ::testing::ValuesIn(kWrongPacked), name_of);

TEST(WrongArgs, NothingAtAll) {
  const Thrown thrown = thrown_by([] { forward({}); });
  EXPECT_EQ(thrown.text, "query is missing; must be a tensor [batch, head, seq, dim]");
}

TEST(WrongArgs, WorkspaceThatOverlaps) {
  for (const auto& [name, operand] :
       {std::pair{"key", &Args::key}, std::pair{"bias", &Args::bias}}) {
    Call call = Call::everything();
    const std::size_t size = plan(call.problem()).workspace_size() + 4096;
    call.args.workspace = {.data = call.outputs(size), .size = size};
    (call.args.*operand).data = call.args.workspace.data;
    const Thrown thrown = thrown_by([&] { call.run(); });
    EXPECT_TRUE(matches(thrown.text, std::string("workspace is at 0x*; must not overlap ") + name +
                                         ", which begins at 0x*"))
        << thrown.text;
    EXPECT_TRUE(call.outputs_are_untouched());
  }
  Call call = Call::dense();
  const std::size_t size = plan(call.problem()).workspace_size() + 4096;
  call.args.workspace = {.data = call.outputs(size), .size = size};
  call.args.out.data = call.args.workspace.data;
  EXPECT_TRUE(
      matches(thrown_by([&] { call.run(); }).text, "workspace is at 0x*; must not overlap out, *"));
  EXPECT_TRUE(call.outputs_are_untouched());
}

TEST(WrongArgs, DeviceOfTheStream) {
  Call call = Call::dense();
  for (const int device : {-1, device_count(), std::numeric_limits<int>::max()}) {
    const Thrown thrown =
        thrown_by([&] { forward(call.args, {}, Stream::from_native(nullptr, device)); });
    EXPECT_EQ(thrown.text, "stream.device is " + std::to_string(device) +
                               "; must be in [0, device_count()), which is [0, " +
                               std::to_string(device_count()) + ")");
  }
  EXPECT_TRUE(call.outputs_are_untouched());
}

}  // namespace
}  // namespace tessera::testing
