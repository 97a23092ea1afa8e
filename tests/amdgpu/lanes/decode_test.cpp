// The decode kernels for head dimension 64, and what merges their parts, against the float64
// reference.

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "core/kernel/split.hpp"
#include "core/kernel/work_order.hpp"
#include "reference/fill.hpp"
#include "reference/reference.hpp"
#include "tests/amdgpu/lanes/kernels.hpp"
#include "tests/amdgpu/lanes/tensors.hpp"
#include "tests/amdgpu/lanes/testing.hpp"

namespace tessera::amdgpu::lanes {
namespace {

struct Case {
  std::string name;
  std::int64_t batch = 1, head_q = 1, head_k = 1, seq_q = 1, seq_k = 1, dim = 64, dim_v = 64;
  Mask mask = Mask::none();
  std::int64_t padding = 0;  // numbers between rows
  bool sinks = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const Case kCases[] = {
    {.name = "one_part", .head_q = 4, .head_k = 2, .seq_k = 90},
    {.name = "parts", .batch = 2, .head_q = 4, .seq_k = 1200},
    {.name = "many_rows",
     .head_q = 6,
     .head_k = 1,
     .seq_q = 7,
     .seq_k = 330,
     .mask = Mask::causal(Alignment::BottomRight)},
    {.name = "narrow_unaligned", .head_q = 3, .seq_k = 333, .dim = 40, .dim_v = 24, .padding = 3},
    {.name = "sinks", .head_q = 8, .head_k = 2, .seq_q = 2, .seq_k = 400, .sinks = true},
};

using Parameter = std::tuple<Case, DType, Order>;
class Decode : public ::testing::TestWithParam<Parameter> {};

TEST_P(Decode, AsTheReference) {
  const auto& [c, dtype, order] = GetParam();
  const Numbers query(dtype, {c.batch, c.head_q, c.seq_q, c.dim}, c.padding);
  const Numbers key(dtype, {c.batch, c.head_k, c.seq_k, c.dim}, c.padding);
  const Numbers value(dtype, {c.batch, c.head_k, c.seq_k, c.dim_v}, c.padding);
  const Numbers out(dtype, {c.batch, c.head_q, c.seq_q, c.dim_v}, c.padding);
  const Numbers lse(DType::fp32, {c.batch, c.head_q, c.seq_q, 1}, 0);
  const Numbers sinks(DType::fp32, {1, c.head_q, 1, 1}, 0);
  reference::fill_gaussian(query.tensor(), 1);
  reference::fill_gaussian(key.tensor(), 2);
  reference::fill_gaussian(value.tensor(), 3);
  reference::fill_gaussian(sinks.tensor(), 4);
  Args args{.query = query.tensor(),
            .key = key.tensor(),
            .value = value.tensor(),
            .out = out.tensor(),
            .lse = lse.tensor()};
  if (c.sinks) args.sinks = ConstTensor::per_head(sinks.tensor().data, DType::fp32, c.head_q);

  const int wave = wave_of_target();
  const std::int64_t side = wave / 2, group = c.head_q / c.head_k;
  const std::int64_t row_blocks = kernel::count_blocks(c.seq_q * group, side);
  const std::int64_t tasks = c.batch * c.head_k * row_blocks;
  const std::int64_t parts = kernel::split_keys(c.seq_k, hip::decode::kPartTile, tasks).parts;
  const std::int64_t rows = c.batch * c.head_q * c.seq_q;
  std::vector<kernel::SoftmaxState<float>> states(static_cast<std::size_t>(rows * parts));
  std::vector<float> outs(static_cast<std::size_t>(rows * parts * c.dim_v));
  const bool aligned = c.padding == 0;
  hip::decode::Parameters p{.arguments = arguments_of(args, c.mask),
                            .parts = static_cast<std::int32_t>(parts),
                            .row_blocks = static_cast<std::int32_t>(row_blocks),
                            .group = static_cast<std::int32_t>(group),
                            .fast_q = aligned,
                            .fast_k = aligned,
                            .fast_v = aligned};
  if (parts > 1) {
    p.out = outs.data();
    p.state = states.data();
  }
  EXPECT_EQ(parts > 1, c.seq_k >= 1024);

  const bool fp16 = dtype == DType::fp16;
  const auto kernel = c.sinks
                          ? (fp16 ? tessera_decode_fp16_64_general : tessera_decode_bf16_64_general)
                          : (fp16 ? tessera_decode_fp16_64 : tessera_decode_bf16_64);
  const auto merge = fp16 ? tessera_decode_fp16_merge : tessera_decode_bf16_merge;
  Launch launch{.wave = wave,
                .threads = hip::decode::kWaves * wave,
                .groups = static_cast<unsigned>(tasks * parts),
                .argument = &p,
                .order = order};
  run(launch, [&] { kernel(p); });
  launch.groups = static_cast<unsigned>(tasks * side);
  if (parts > 1) run(launch, [&] { merge(p); });

  const Options options{.mask = c.mask};
  const reference::Verdict verdict = reference::judge(
      args, options, reference::forward(args, options), reference::forward_low(args, options));
  EXPECT_TRUE(verdict.pass) << verdict.text;
}

INSTANTIATE_TEST_SUITE_P(All, Decode,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Values(DType::fp16, DType::bf16),
                                            ::testing::ValuesIn(kOrders)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name +
                                  (std::get<1>(test.param) == DType::fp16 ? "_fp16_" : "_bf16_") +
                                  name_of(std::get<2>(test.param));
                         });

}  // namespace
}  // namespace tessera::amdgpu::lanes
