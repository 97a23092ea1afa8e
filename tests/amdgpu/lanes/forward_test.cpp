// The forward kernels of `matrix` and `fp32` for head dimension 64, as their sources say, against
// the float64 reference.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>

#include "backends/hip/fp32/config.hpp"
#include "backends/hip/matrix/config.hpp"
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
  std::int64_t padding = 0;  // numbers between rows: rows that are not aligned to 16 bytes
  float softcap = 0;
  bool sinks = false;
  double larger_keys = 1;  // scores that rise from tile to tile make maxima rise
  unsigned groups = 0;     // launched; 0: one a task
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// What a wave holds is 32 rows (CDNA) or 16, a step 64 keys or 32, a work-group 256 rows or 128.
const Case kCases[] = {
    {.name = "whole_tiles", .seq_q = 256, .seq_k = 384},
    {.name = "causal_gqa_ragged",
     .batch = 2,
     .head_q = 4,
     .head_k = 2,
     .seq_q = 77,
     .seq_k = 141,
     .mask = Mask::causal(Alignment::BottomRight)},
    {.name = "causal_blocks", .seq_q = 290, .seq_k = 290, .mask = Mask::causal(Alignment::TopLeft)},
    {.name = "window",
     .seq_q = 150,
     .seq_k = 400,
     .mask = Mask::window(70, 9, Alignment::BottomRight)},
    {.name = "rows_without_keys",
     .seq_q = 140,
     .seq_k = 60,
     .mask = Mask::causal(Alignment::BottomRight)},
    {.name = "one_row", .head_q = 3, .seq_q = 1, .seq_k = 7},
    {.name = "narrow", .seq_q = 40, .seq_k = 130, .dim = 40, .dim_v = 24},
    {.name = "unaligned", .seq_q = 40, .seq_k = 130, .padding = 3},
    {.name = "rising_maxima", .seq_q = 64, .seq_k = 450, .larger_keys = 6},
    {.name = "few_groups", .head_q = 5, .seq_q = 20, .seq_k = 170, .groups = 2},
    {.name = "softcap_sinks",
     .head_q = 2,
     .seq_q = 50,
     .seq_k = 170,
     .mask = Mask::causal(Alignment::BottomRight),
     .softcap = 3,
     .sinks = true},
};

using Parameter = std::tuple<Case, DType, Order>;

class Forward : public ::testing::TestWithParam<Parameter> {
 protected:
  Forward() : dtype_(std::get<DType>(GetParam())) {
    reference::fill_gaussian(query_.tensor(), 1);
    reference::fill_gaussian(key_.tensor(), 2, c_.larger_keys);
    reference::fill_gaussian(value_.tensor(), 3);
    reference::fill_gaussian(sinks_.tensor(), 4);
  }

  hip::ForwardParameters parameters(const hip::matrix::Blocking& blocking) const {
    hip::ForwardParameters p;
    kernel::ForwardArguments& a = p.arguments;
    a = arguments_of(args(), c_.mask);
    p.order = kernel::work_order(a, blocking.rows, nullptr);
    p.tasks = p.order.size();
    p.groups = c_.groups != 0 ? c_.groups : p.tasks;
    p.fast_q = p.fast_k = p.fast_v = p.aligned_out = c_.padding == 0;
    return p;
  }
  Args args() const {
    Args args{.query = query_.tensor(),
              .key = key_.tensor(),
              .value = value_.tensor(),
              .out = out_.tensor(),
              .lse = lse_.tensor(),
              .softcap = c_.softcap};
    if (c_.sinks) args.sinks = ConstTensor::per_head(sinks_.tensor().data, DType::fp32, c_.head_q);
    return args;
  }

  const Case& c_ = std::get<Case>(GetParam());
  const DType dtype_;
  const Numbers query_{dtype_, {c_.batch, c_.head_q, c_.seq_q, c_.dim}, c_.padding};
  const Numbers key_{dtype_, {c_.batch, c_.head_k, c_.seq_k, c_.dim}, c_.padding};
  const Numbers value_{dtype_, {c_.batch, c_.head_k, c_.seq_k, c_.dim_v}, c_.padding};
  const Numbers out_{dtype_, {c_.batch, c_.head_q, c_.seq_q, c_.dim_v}, c_.padding};
  const Numbers lse_{DType::fp32, {c_.batch, c_.head_q, c_.seq_q, 1}, 0};
  const Numbers sinks_{DType::fp32, {1, c_.head_q, 1, 1}, 0};
};

auto kernel_of(DType dtype, bool general) {
  if (dtype == DType::fp32)
    return general ? tessera_forward_fp32_64_general : tessera_forward_fp32_64;
  if (dtype == DType::fp16)
    return general ? tessera_forward_fp16_64_general : tessera_forward_fp16_64;
  return general ? tessera_forward_bf16_64_general : tessera_forward_bf16_64;
}

std::string name_of(DType dtype) {
  return dtype == DType::fp32 ? "fp32" : dtype == DType::fp16 ? "fp16" : "bf16";
}

TEST_P(Forward, AsTheReference) {
  const bool cdna = is_cdna();
  const bool general = c_.softcap != 0 || c_.sinks;
  using hip::fp32::Shape64;
  const hip::matrix::Blocking blocking =
      dtype_ == DType::fp32
          ? hip::matrix::Blocking{hip::fp32::kThreads, Shape64::kRows, Shape64::kKeys}
          : hip::matrix::blocking(cdna, 64, 64, general);
  const hip::ForwardParameters p = parameters(blocking);
  const auto kernel = kernel_of(dtype_, general);
  const Counts counts = run({.wave = wave_of_target(),
                             .threads = blocking.threads,
                             .groups = static_cast<unsigned>(p.groups),
                             .argument = &p,
                             .order = std::get<Order>(GetParam())},
                            [&] { kernel(p); });
  EXPECT_GT(counts.operations, 0);
  const Options options{.mask = c_.mask};
  const reference::Verdict verdict =
      reference::judge(args(), options, reference::forward(args(), options),
                       reference::forward_low(args(), options));
  EXPECT_TRUE(verdict.pass) << verdict.text;
  EXPECT_EQ(verdict.reference_nan, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Forward,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Values(DType::fp16, DType::bf16,
                                                              DType::fp32),
                                            ::testing::ValuesIn(kOrders)),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" +
                                  name_of(std::get<1>(test.param)) + "_" +
                                  name_of(std::get<2>(test.param));
                         });

}  // namespace
}  // namespace tessera::amdgpu::lanes
