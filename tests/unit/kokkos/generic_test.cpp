// The generic kernel against the definition, option by option. Run with TESSERA_KERNEL=generic.

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <tessera/attention.hpp>
#include <tessera/info.hpp>
#include <tessera/plan.hpp>

#include "tests/unit/kokkos/naive.hpp"

namespace tessera::testing {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Operands of one call with their memory: Gaussian inputs, outputs full of NaN.
class Call {
 public:
  Call(Extents query, Extents key, std::int64_t dim_v, DType type = DType::fp32) : type_(type) {
    args.query = ConstTensor::bhsd(fill(query), type, query);
    args.key = ConstTensor::bhsd(fill(key), type, key);
    key.dim = dim_v;
    args.value = ConstTensor::bhsd(fill(key), type, key);
    query.dim = dim_v;
    args.out = Tensor::bhsd(take(count(query), kNaN), type, query);
    args.lse =
        Tensor::lse(floats(static_cast<std::size_t>(query.batch * query.head * query.seq), kNaN),
                    query.batch, query.head, query.seq);
  }

  // `count` floats that live as long as the call.
  float* floats(std::size_t count, float value) {
    return memory_.emplace_back(count, value).data();
  }
  float* gaussian(std::size_t count) {
    float* const data = floats(count, 0);
    for (std::size_t i = 0; i < count; ++i) data[i] = normal_(generator_);
    return data;
  }
  const std::int32_t* indices(std::vector<std::int32_t> values) {
    return indices_.emplace_back(std::move(values)).data();
  }
  // Writable elements of an input, fp32 only.
  static float* data(const ConstTensor& t) {
    return static_cast<float*>(const_cast<void*>(t.data));
  }

  // Runs it and compares every row.
  void check() {
    ASSERT_EQ(plan(describe(args, options)).kernel(), "forward.generic")
        << "set TESSERA_KERNEL=generic";
    forward(args, options);
    const std::int64_t sequences =
        args.cu_seqlens_q.data ? args.cu_seqlens_q.size - 1 : args.query.extent.batch;
    for (std::int64_t b = 0; b < sequences; ++b) {
      const NaiveSequence s = naive_sequence(args, b);
      for (std::int64_t h = 0; h < args.query.extent.head; ++h) {
        for (std::int64_t i = 0; i < s.rows; ++i)
          check_row(naive_row(args, options, b, h, i), s, b, h, i);
      }
    }
  }

  Args args;
  Options options;

 private:
  static std::size_t count(const Extents& e) {
    return static_cast<std::size_t>(e.batch * e.head * e.seq * e.dim);
  }

  void* take(std::size_t count, float value) {
    float* const data = floats(count, value);
    narrow(data, count);
    return data;
  }
  const void* fill(const Extents& e) {
    float* const data = gaussian(count(e));
    narrow(data, count(e));
    return data;
  }
  // To 16 bits, in place.
  void narrow(float* data, std::size_t count) const {
    if (type_ == DType::fp32) return;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint16_t bits =
          type_ == DType::fp16 ? kernel::float_to_fp16(data[i]) : kernel::float_to_bf16(data[i]);
      std::memcpy(reinterpret_cast<std::uint16_t*>(data) + i, &bits, sizeof bits);
    }
  }

  void check_row(const NaiveRow& row, const NaiveSequence& s, std::int64_t b, std::int64_t h,
                 std::int64_t i) const {
    const std::string where = "sequence " + std::to_string(b) + ", head " + std::to_string(h) +
                              ", row " + std::to_string(i);
    const double unit = type_ == DType::fp32 ? 0 : type_ == DType::fp16 ? 0x1p-10 : 0x1p-7;
    for (std::int64_t d = 0; d < args.out.extent.dim; ++d) {
      const double must = row.out[static_cast<std::size_t>(d)];
      const double is = element(args.out, s.batch, h, s.query + i, d);
      if (std::isinf(row.lse)) {
        ASSERT_EQ(is, 0) << where;
      } else {
        ASSERT_NEAR(is, must, 1e-5 + unit * std::abs(must)) << where;
      }
    }
    const double lse = element(args.lse, s.batch, h, s.query + i, 0);
    if (std::isinf(row.lse)) {
      ASSERT_EQ(lse, row.lse) << where;
    } else {
      ASSERT_NEAR(lse, row.lse, 1e-5 * std::max(1.0, std::abs(row.lse))) << where;
    }
  }

  DType type_;
  std::vector<std::vector<float>> memory_;
  std::vector<std::vector<std::int32_t>> indices_;
  std::mt19937 generator_{7};
  std::normal_distribution<float> normal_;
};

Call square(std::int64_t seq_q, std::int64_t seq_k, DType type = DType::fp32) {
  return Call({2, 4, seq_q, 24}, {2, 2, seq_k, 24}, 16, type);
}

TEST(Generic, LengthsAndAlignments) {
  for (const auto& [seq_q, seq_k] :
       {std::pair{1, 1}, {1, 65}, {31, 33}, {32, 32}, {33, 64}, {65, 31}, {70, 100}}) {
    for (const Alignment alignment : {Alignment::TopLeft, Alignment::BottomRight}) {
      SCOPED_TRACE(std::to_string(seq_q) + " x " + std::to_string(seq_k));
      Call plain = square(seq_q, seq_k), causal = square(seq_q, seq_k),
           window = square(seq_q, seq_k);
      causal.options.mask = Mask::causal(alignment);
      window.options.mask = Mask::window(5, 3, alignment);
      plain.check();
      causal.check();
      window.check();
    }
  }
}

TEST(Generic, HalfTypes) {
  for (const DType type : {DType::fp16, DType::bf16}) {
    Call call = square(40, 70, type);
    call.options.mask = Mask::causal(Alignment::BottomRight);
    call.check();
  }
}

int largest_head_dim() {
  const std::string all(build_info().head_dims);
  return std::stoi(all.substr(all.rfind(';') + 1));  // npos + 1 is 0
}

// Scratch memory of level 0 ends between them.
TEST(Generic, HeadDimensions) {
  for (const auto& [dim, dim_v] :
       {std::pair{8, 8}, {64, 64}, {72, 80}, {192, 128}, {40, 256}, {512, 512}}) {
    SCOPED_TRACE(dim);
    if (std::max(dim, dim_v) > largest_head_dim()) continue;  // a build of fewer, see below
    Call({1, 1, 34, dim}, {1, 1, 35, dim}, dim_v).check();
  }
}

TEST(Generic, Groups) {
  Call({1, 6, 20, 8}, {1, 1, 20, 8}, 8).check();
  Call({1, 6, 20, 8}, {1, 2, 20, 8}, 8).check();
}

TEST(Generic, Modifiers) {
  const auto with = [](auto change) {
    for (const bool causal : {false, true}) {
      Call call = square(40, 45);
      if (causal) call.options.mask = Mask::causal(Alignment::TopLeft);
      change(call);
      call.check();
    }
  };
  with([](Call& c) { c.args.softcap = 1.5f; });
  with([](Call& c) { c.args.scale = -0.3f; });
  with([](Call& c) { c.args.alibi_slopes = ConstTensor::per_head(c.gaussian(4), DType::fp32, 4); });
  with([](Call& c) {
    c.args.bias = ConstTensor::bhsd(c.gaussian(2 * 4 * 40 * 45), DType::fp32, {2, 4, 40, 45});
  });
  with(
      [](Call& c) { c.args.bias = ConstTensor::bhsd(c.gaussian(40), DType::fp32, {1, 1, 40, 1}); });
  with([](Call& c) {
    const float* const random = c.gaussian(40 * 45);
    auto* const bytes = reinterpret_cast<std::uint8_t*>(c.floats(40 * 45, 0));
    for (int i = 0; i < 40 * 45; ++i)
      bytes[i] = random[i] > 0 || i / 45 == 3 ? 0 : 2;  // row 3 sees nothing
    c.args.boolean_mask = ConstTensor::bhsd(bytes, DType::uint8, {1, 1, 40, 45});
  });
  with([](Call& c) { c.args.sinks = ConstTensor::per_head(c.gaussian(4), DType::fp32, 4); });
  with([](Call& c) {
    c.options.dropout = 0.3;
    c.args.seed = 0x123456789ABCDEFu;
    c.args.offset = 0xFEDCBA987654u;
  });
}

TEST(Generic, RangesAndRowsThatSeeNothing) {
  for (const bool sinks : {false, true}) {
    Call call = square(40, 70);
    call.args.key_begin = {call.indices({5, 33}), DType::int32, 2};
    call.args.key_end = {call.indices({50, 34}), DType::int32, 2};
    call.args.query_end = {call.indices({40, 7}), DType::int32, 2};
    call.options.mask = Mask::window(2, 0, Alignment::TopLeft);
    if (sinks) call.args.sinks = ConstTensor::per_head(call.gaussian(4), DType::fp32, 4);
    call.check();
  }
}

// Nothing beyond a sequence reaches a result, whatever it holds.
TEST(Generic, PaddingIsNotRead) {
  Call call = square(40, 70);
  call.args.key_begin = {call.indices({5, 0}), DType::int32, 2};
  call.args.key_end = {call.indices({50, 70}), DType::int32, 2};
  call.args.query_end = {call.indices({33, 40}), DType::int32, 2};
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t j = 0; j < 70; ++j) {
      if (5 <= j && j < 50) continue;
      std::fill_n(Call::data(call.args.key) + (h * 70 + j) * 24, 24, kNaN);
      std::fill_n(Call::data(call.args.value) + (h * 70 + j) * 16, 16, j % 2 ? kInfinity : kNaN);
    }
  }
  for (std::int64_t h = 0; h < 4; ++h)
    std::fill_n(Call::data(call.args.query) + (h * 40 + 33) * 24, 7 * 24, kNaN);
  call.check();
}

// A NaN in a masked key reaches nobody; in a visible one every row that sees it, and no other.
TEST(Generic, NaNInKeys) {
  Call call({1, 1, 20, 8}, {1, 1, 20, 8}, 8);
  call.options.mask = Mask::causal(Alignment::TopLeft);
  Call::data(call.args.key)[12 * 8] = kNaN;
  forward(call.args, call.options);
  for (std::int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(std::isnan(element(call.args.out, 0, 0, i, 3)), i >= 12) << i;
    EXPECT_EQ(std::isnan(element(call.args.lse, 0, 0, i, 0)), i >= 12) << i;
  }
}

TEST(Generic, Packed) {
  // Segments without queries, without keys, without both; longer and shorter than a block.
  Call call({1, 4, 110, 8}, {1, 2, 120, 8}, 8);
  call.args.cu_seqlens_q = {call.indices({0, 0, 33, 33, 40, 40, 41, 110}), DType::int32, 8};
  call.args.cu_seqlens_k = {call.indices({0, 4, 37, 37, 37, 37, 80, 120}), DType::int32, 8};
  call.args.sinks = ConstTensor::per_head(call.gaussian(4), DType::fp32, 4);
  call.options.mask = Mask::causal(Alignment::BottomRight);
  call.check();
}

TEST(Generic, ManySegments) {
  constexpr std::int32_t kSegments = 100000;
  std::vector<std::int32_t> starts;
  for (std::int32_t s = 0; s <= kSegments; ++s)
    starts.push_back(s / 1000);  // 100 segments of one token
  Call call({1, 2, 100, 8}, {1, 2, 100, 8}, 8);
  call.args.cu_seqlens_q = {call.indices(starts), DType::int32, kSegments + 1};
  call.args.cu_seqlens_k = call.args.cu_seqlens_q;
  call.check();
}

TEST(Generic, Strides) {
  Call call({2, 2, 33, 8}, {2, 2, 40, 8}, 8);
  // Rows of a larger array; one key head for all; a batch that repeats.
  float* const wide = call.gaussian(2 * 40 * 2 * 24);
  call.args.query = {wide, DType::fp32, {2, 2, 33, 8}, {40 * 48, 24, 48, 1}};
  call.args.key = {wide + 8, DType::fp32, {2, 2, 40, 8}, {0, 24, 48, 1}};
  call.args.value = {wide + 16, DType::fp32, {2, 2, 40, 8}, {40 * 48, 0, 48, 1}};
  call.args.out = {
      call.floats(2 * 33 * 2 * 12, kNaN), DType::fp32, {2, 2, 33, 8}, {33 * 24, 12, 24, 1}};
  call.check();
  for (std::int64_t n = 0; n < 2 * 33 * 2; ++n) {
    for (std::int64_t d = 8; d < 12; ++d)
      ASSERT_TRUE(std::isnan(static_cast<float*>(call.args.out.data)[n * 12 + d]));
  }
}

TEST(Generic, NoKeys) {
  Call call({1, 2, 5, 8}, {1, 1, 0, 8}, 8);
  call.check();
  call.args.sinks = ConstTensor::per_head(call.gaussian(2), DType::fp32, 2);
  call.check();
}

TEST(Generic, DropsEverything) {
  Call call({1, 1, 40, 8}, {1, 1, 40, 8}, 8);
  call.options.dropout = 1;
  forward(call.args, call.options);
  for (std::int64_t i = 0; i < 40; ++i) {
    for (std::int64_t d = 0; d < 8; ++d) EXPECT_EQ(element(call.args.out, 0, 0, i, d), 0);
    EXPECT_TRUE(std::isfinite(element(call.args.lse, 0, 0, i, 0)));
  }
}

// The most negative bias hides nothing: such a row is uniform.
TEST(Generic, MostNegativeBias) {
  Call call({1, 1, 4, 8}, {1, 1, 40, 8}, 8);
  call.args.bias = ConstTensor::bhsd(call.floats(1, std::numeric_limits<float>::lowest()),
                                     DType::fp32, {1, 1, 1, 1});
  call.args.scale = 0.0f;
  call.args.lse = {};
  forward(call.args, call.options);
  for (std::int64_t d = 0; d < 8; ++d) {
    double mean = 0;
    for (std::int64_t j = 0; j < 40; ++j) mean += element(call.args.value, 0, 0, j, d) / 40;
    for (std::int64_t i = 0; i < 4; ++i)
      EXPECT_NEAR(element(call.args.out, 0, 0, i, d), mean, 1e-6);
  }
}

TEST(Generic, NamesWhatItCannotDo) {
  Call call({1, 1, 4, 8}, {1, 1, 4, 8}, 8);
  Problem problem = describe(call.args);
  problem.query.extent.dim = problem.key.extent.dim = 520;
  problem.query.stride = problem.key.stride = bhsd_strides({1, 1, 4, 520});
  const Support support = supports(problem);
  EXPECT_EQ(support.status, Support::Status::Unsupported);
  EXPECT_NE(support.reason.find("520"), std::string::npos) << support.reason;
}

}  // namespace
}  // namespace tessera::testing
