// The gradient kernels for head dimension 64 against the float64 reference: fp16 plain, bf16 in the
// general flavour.

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "backends/hip/gradient/config.hpp"
#include "reference/fill.hpp"
#include "reference/number.hpp"
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
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const Case kCases[] = {
    {.name = "whole_tiles", .seq_q = 128, .seq_k = 128},
    {.name = "causal_gqa_ragged",
     .head_q = 2,
     .head_k = 1,
     .seq_q = 77,
     .seq_k = 141,
     .mask = Mask::causal(Alignment::BottomRight)},
    {.name = "narrow_unaligned", .seq_q = 40, .seq_k = 50, .dim = 40, .dim_v = 24, .padding = 3},
};

// Of a dense tensor.
void put(const Numbers& to, const std::vector<double>& from) {
  const Tensor t = to.tensor();
  std::size_t i = 0;
  for (std::int64_t b = 0; b < t.extent.batch; ++b)
    for (std::int64_t h = 0; h < t.extent.head; ++h)
      for (std::int64_t s = 0; s < t.extent.seq; ++s)
        for (std::int64_t d = 0; d < t.extent.dim; ++d)
          reference::store(t.dtype, t.data,
                           b * t.stride.batch + h * t.stride.head + s * t.stride.seq + d,
                           from[i++]);
}

using Parameter = std::tuple<Case, DType, Order>;
class Gradient : public ::testing::TestWithParam<Parameter> {};

TEST_P(Gradient, AsTheReference) {
  const auto& [c, dtype, order] = GetParam();
  const bool general = dtype == DType::bf16;
  const Extents q{c.batch, c.head_q, c.seq_q, c.dim}, k{c.batch, c.head_k, c.seq_k, c.dim};
  Extents v = k, o = q;
  v.dim = o.dim = c.dim_v;
  const Numbers query(dtype, q, c.padding), key(dtype, k, c.padding), value(dtype, v, c.padding);
  const Numbers dq(dtype, q, c.padding), dk(dtype, k, c.padding), dv(dtype, v, c.padding);
  const Numbers out(dtype, o, c.padding), dout(dtype, o, c.padding);
  const Numbers lse(DType::fp32, {c.batch, c.head_q, c.seq_q, 1}, 0);
  const Numbers sinks(DType::fp32, {1, c.head_q, 1, 1}, 0);
  const Numbers dsink(DType::fp32, {1, c.head_q, 1, 1}, 0);
  reference::fill_gaussian(query.tensor(), 1);
  reference::fill_gaussian(key.tensor(), 2);
  reference::fill_gaussian(value.tensor(), 3);
  reference::fill_gaussian(dout.tensor(), 4);
  reference::fill_gaussian(sinks.tensor(), 5);
  Args args{.query = query.tensor(),
            .key = key.tensor(),
            .value = value.tensor(),
            .out = out.tensor(),
            .lse = lse.tensor(),
            .dout = dout.tensor()};
  if (general) args.sinks = ConstTensor::per_head(sinks.tensor().data, DType::fp32, c.head_q);
  const Options options{.mask = c.mask};
  const reference::Forward forward = reference::forward(args, options);
  put(out, forward.out);
  put(lse, forward.lse);

  const auto rows = static_cast<std::size_t>(c.batch * c.head_q * c.seq_q);
  std::vector<float> row_lse(rows), row_delta(rows);
  hip::gradient::Parameters p;
  kernel::BackwardArguments& b = p.arguments;
  b.forward = arguments_of(args, c.mask);
  b.dout = operand<const void>(dout.tensor());
  b.dq = operand<void>(dq.tensor());
  b.dk = operand<void>(dk.tensor());
  b.dv = operand<void>(dv.tensor());
  if (general) {
    b.dsink = static_cast<float*>(dsink.tensor().data);
    b.dsink_head = 1;
  }
  p.statistics = {row_lse.data(), row_delta.data()};
  const bool aligned = c.padding == 0;
  p.fast_q = p.fast_k = p.fast_v = p.fast_dout = p.fast_out = aligned;
  p.aligned_dq = p.aligned_dk = p.aligned_dv = aligned;

  using hip::gradient::kOwned;
  const auto queue = [&](void (*kernel)(hip::gradient::Parameters), std::int64_t tasks) {
    p.tasks = p.groups = tasks;
    run({.wave = wave_of_target(),
         .threads = hip::gradient::kThreads,
         .groups = static_cast<unsigned>(tasks),
         .argument = &p,
         .order = order},
        [&] { kernel(p); });
  };
  queue(general ? tessera_backward_bf16_rows : tessera_backward_fp16_rows,
        kernel::count_blocks(static_cast<std::int64_t>(rows), kOwned));
  p.order = kernel::work_order(b.forward, kOwned, nullptr);
  queue(general ? tessera_backward_bf16_64_dq_general : tessera_backward_fp16_64_dq,
        p.order.size());
  p.order = kernel::key_work_order(b.forward, kOwned, nullptr);
  queue(general ? tessera_backward_bf16_64_dkv_general : tessera_backward_fp16_64_dkv,
        p.order.size());
  if (general) queue(tessera_backward_dsink, c.head_q);

  reference::Gradients ours{.dq = dq.tensor(), .dk = dk.tensor(), .dv = dv.tensor()};
  if (general) ours.dsink = ConstTensor::per_head(b.dsink, DType::fp32, c.head_q);
  const ConstTensor given_out = out.tensor(), given_lse = lse.tensor();
  const reference::Verdict verdict = reference::judge_backward(
      args, options, ours,
      reference::backward(args, options, dout.tensor(), {}, given_out, given_lse),
      reference::backward_low(args, options, dout.tensor(), {}, given_out, given_lse));
  EXPECT_TRUE(verdict.pass) << verdict.text;
}

INSTANTIATE_TEST_SUITE_P(All, Gradient,
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
