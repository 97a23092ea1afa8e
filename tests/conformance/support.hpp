#pragma once
/// What the test files share.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "tests/conformance/runner.hpp"

namespace tessera::testing {

inline constexpr std::array kTypes{DType::fp32, DType::fp16, DType::bf16};
inline constexpr std::array kAlignments{Alignment::TopLeft, Alignment::BottomRight};
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The most negative finite number of a type.
inline double lowest(DType dtype) {
  switch (dtype) {
    case DType::fp16:
      return -65504.0;
    case DType::bf16:
      return -0x1.fep127;
    default:
      return static_cast<double>(std::numeric_limits<float>::lowest());
  }
}

/// Multiply-adds, everything visible, up to which a named case of forward also runs backward: its
/// reference takes some tens of milliseconds then.
inline constexpr std::int64_t kBackwardCost = 1'500'000;

/// Runs the case on every kernel, and as one of backward if it is one of forward that allows it;
/// what is wrong becomes a failure of the test.
inline void expect_passes(
    const Case& c, const std::function<void(Operands&)>& edit = [](Operands&) {}) {
  for (const std::string& text : run(c, edit)) ADD_FAILURE() << text;
  if (c.operation != Operation::forward || !c.gradients || c.expects_nan || c.expensive) return;
  if (c.multiply_adds() > kBackwardCost || std::max(c.dim, c.dim_v) > 256) return;
  for (const std::string& text : run(backward_of(c), edit)) ADD_FAILURE() << text;
}

/// Of packed segments of those lengths.
inline Case packed(const char* label, DType dtype, const std::vector<std::int64_t>& q,
                   const std::vector<std::int64_t>& k, std::int64_t dim, const Mask& mask = {}) {
  return {.label = label,
          .dtype = dtype,
          .dim = dim,
          .dim_v = dim,
          .mask = mask,
          .layout = Layout::bshd,
          .packed = true,
          .lengths_q = q,
          .lengths_k = k};
}

/// Fills what backward reads of forward's results, and uploads.
inline void prepare(Operands& operands) {
  if (operands.operation == Operation::backward) operands.fill_results();
  operands.upload();
}

/// Executes on every kernel that runs here, then calls `check` with the outputs downloaded. A build
/// made for shorter heads only runs none; that is counted.
inline void on_each_kernel(Operands& operands, const std::function<void(const Kernel&)>& check) {
  if (std::max(operands.query.extent.dim, operands.value.extent.dim) > largest_head_dim()) {
    ++tally().unsupported["head dimension above the largest built"];
    return;
  }
  const std::vector<Kernel> kernels = kernels_for(operands.operation);
  if (!kernels.empty()) prepare(operands);
  for (const Kernel& kernel : kernels) {
    if (!kernel.computes(operands.query.dtype)) continue;
    if (leaves_out(kernel,
                   describe(operands.args(Side::device), operands.options, kernel.operation)))
      continue;
    const Execution done = execute_on(kernel, operands);
    if (kernel.adapter != nullptr && done.status == Execution::Status::unsupported) continue;
    ASSERT_EQ(done.status, Execution::Status::done) << done.text;
    ++tally().runs[kernel.name];
    check(kernel);
  }
}

/// Overwrites rows [begin, end) of one head.
inline void set_rows(const Slot& slot, std::int64_t batch, std::int64_t head, std::int64_t begin,
                     std::int64_t end, double number) {
  for (std::int64_t s = begin; s < end; ++s) {
    for (std::int64_t d = 0; d < slot.extent.dim; ++d) slot.set(batch, head, s, d, number);
  }
}

/// Overwrites a row of one head.
inline void set_row(const Slot& slot, std::int64_t batch, std::int64_t head, std::int64_t row,
                    double number) {
  set_rows(slot, batch, head, row, row + 1, number);
}

/// Overwrites a column of one head: of a mask or bias, what every row has for one key.
inline void set_column(const Slot& slot, std::int64_t batch, std::int64_t head, std::int64_t column,
                       double number) {
  for (std::int64_t s = 0; s < slot.extent.seq; ++s) slot.set(batch, head, s, column, number);
}

/// Overwrites everything with `number(batch, head, seq, dim)`.
template <class Number>
void set_each(const Slot& slot, Number number) {
  slot.each([&](auto b, auto h, auto s, auto d) { slot.set(b, h, s, d, number(b, h, s, d)); });
}

/// Overwrites the elements for which `where(batch, head, seq, dim)`.
template <class Where>
void set_where(const Slot& slot, double number, Where where) {
  slot.each([&](auto b, auto h, auto s, auto d) {
    if (where(b, h, s, d)) slot.set(b, h, s, d, number);
  });
}

/// Overwrites everything.
inline void set_all(const Slot& slot, double number) {
  set_each(slot, [&](auto...) { return number; });
}

/// Multiplies everything.
inline void multiply_all(const Slot& slot, double factor) {
  set_each(slot, [&](auto... at) { return factor * slot.get(at...); });
}

}  // namespace tessera::testing
