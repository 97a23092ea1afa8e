// Sound requests beyond this version: refused by supports(), plan() and forward() with the nearest
// thing that works.

#include <gtest/gtest.h>

#include "tests/unit/src/call.hpp"

namespace tessera::testing {
namespace {

struct Beyond {
  const char* name;
  void (*change)(Problem&);
  const char* text;
};

void set_dims(Problem& p, std::int64_t dim, std::int64_t dim_v) {
  const auto set = [](TensorSpec& spec, std::int64_t to) {
    spec.extent.dim = to;
    spec.stride = bhsd_strides(spec.extent);
  };
  set(p.query, dim);
  set(p.key, dim);
  set(p.value, dim_v);
  if (p.out) set(*p.out, dim_v);
}

void pack(Problem& p) {
  p.packed = PackedSpec{.segments = 3};
  for (TensorSpec* spec : {&p.query, &p.key, &p.value, &*p.out, &*p.lse}) spec->extent.batch = 1;
}

constexpr const char* kRule = "; must be a multiple of 8 from 8 to 256, or 512";

const Beyond kBeyond[] = {
    {"paged", [](Problem& p) { p.paged = true; },
     "this version reads no paged key and value: contiguous ones of any strides work, also packed "
     "by cu_seqlens_k"},
    {"batch_invariant", [](Problem& p) { p.options.batch_invariant = true; },
     "options.batch_invariant is not in this version: a batch of one gives bits that depend on no "
     "neighbour"},
    {"packed_with_key_begin",
     [](Problem& p) {
       pack(p);
       p.key_begin = true;
     },
     "key_begin together with cu_seqlens is not in this version: *"},
    {"packed_with_key_end",
     [](Problem& p) {
       pack(p);
       p.key_end = true;
     },
     "key_end together with cu_seqlens is not in this version: *"},
    {"packed_with_query_end",
     [](Problem& p) {
       pack(p);
       p.query_end = true;
     },
     "query_end together with cu_seqlens is not in this version: *"},
    {"dim_0", [](Problem& p) { set_dims(p, 0, 8); },
     "query.extent.dim is 0; must be a multiple of 8 from 8 to 256, or 512"},
    {"dim_12", [](Problem& p) { set_dims(p, 12, 8); },
     "query.extent.dim is 12; must be a multiple of 8 from 8 to 256, or 512: pad query and key "
     "with "
     "zeros to 16, and set scale to 1/√12"},
    {"dim_264", [](Problem& p) { set_dims(p, 264, 8); },
     "query.extent.dim is 264; must be a multiple of 8 from 8 to 256, or 512: pad query and key "
     "with zeros to 512, and set scale to 1/√264"},
    {"dim_576", [](Problem& p) { set_dims(p, 576, 512); },
     "query.extent.dim is 576; must be a multiple of 8 from 8 to 256, or 512"},
    {"dim_v_0", [](Problem& p) { set_dims(p, 16, 0); },
     "value.extent.dim is 0; must be a multiple of 8 from 8 to 256, or 512"},
    {"dim_v_1", [](Problem& p) { set_dims(p, 16, 1); },
     "value.extent.dim is 1; must be a multiple of 8 from 8 to 256, or 512: pad value with zeros, "
     "and out, to 8"},
    {"dim_v_520", [](Problem& p) { set_dims(p, 16, 520); },
     "value.extent.dim is 520; must be a multiple of 8 from 8 to 256, or 512"},
    {"dim_v_260_beside_512", [](Problem& p) { set_dims(p, 512, 260); },
     "value.extent.dim is 260; must be a multiple of 8 from 8 to 512: pad value with zeros, and "
     "out, to 264"},
    {"dropout_with_2_to_32_heads",
     [](Problem& p) {
       p.options.dropout = 0.5;
       for (TensorSpec* spec : {&p.query, &p.key, &p.value, &*p.out, &*p.lse})
         spec->extent.batch = std::int64_t{1} << 30;
     },
     "dropout with 1073741824 × 4 heads, 5 rows and 7 keys: works below 2^32 heads in all, 2^32 "
     "rows and 2^35 keys"},
    {"dropout_with_2_to_32_rows",
     [](Problem& p) {
       p.options.dropout = 0.5;
       for (TensorSpec* spec : {&p.query, &*p.out, &*p.lse}) {
         spec->extent = {
             .batch = 1, .head = 4, .seq = std::int64_t{1} << 32, .dim = spec->extent.dim};
         spec->stride = bhsd_strides(spec->extent);
       }
       p.key.extent.batch = p.value.extent.batch = 1;
     },
     "dropout with 1 × 4 heads, 4294967296 rows and 7 keys: works below *"},
};

TEST(Unsupported, IsSaidBySupportsAndPlan) {
  for (const Beyond& beyond : kBeyond) {
    Problem problem = Call::dense().problem();
    ASSERT_TRUE(supports(problem));
    beyond.change(problem);
    const Support support = supports(problem);
    EXPECT_EQ(support.status, Support::Status::Unsupported)
        << beyond.name << ": " << support.reason;
    EXPECT_TRUE(matches(support.reason, beyond.text)) << beyond.name << ": " << support.reason;
    EXPECT_FALSE(support);
    const Thrown thrown = thrown_by([&] { plan(problem); });
    EXPECT_EQ(thrown.kind, Thrown::Kind::Unsupported) << beyond.name;
    EXPECT_EQ(thrown.text, support.reason);
  }
}

TEST(Unsupported, HeadDimensionsNameTheRule) {
  for (const std::int64_t dim : {1, 7, 9, 257, 511, 513, 100000}) {
    Problem problem = Call::dense().problem();
    set_dims(problem, dim, 8);
    EXPECT_NE(supports(problem).reason.find(kRule), std::string::npos) << supports(problem).reason;
  }
}

TEST(Unsupported, ForwardWritesNothing) {
  Call call = Call::dense();
  call.options.batch_invariant = true;
  EXPECT_EQ(thrown_by([&] { call.run(); }).kind, Thrown::Kind::Unsupported);
  EXPECT_TRUE(call.outputs_are_untouched());
}

}  // namespace
}  // namespace tessera::testing
