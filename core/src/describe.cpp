// From arguments to the problem that they pose.

#include <algorithm>
#include <bit>

#include "core/src/operands.hpp"

namespace tessera {
namespace {

// Largest power of two, up to what every allocator gives, that divides the address: with more, a
// plan would refuse the next array of the same shape by chance. What null divides is not known.
std::int64_t alignment_of(const void* data) {
  if (data == nullptr) return TensorSpec{}.alignment;
  const int zeros = std::countr_zero(reinterpret_cast<std::uintptr_t>(data));
  return std::int64_t{1} << std::min(zeros, 4);
}

TensorSpec spec_of(const ConstTensor& tensor) {
  return {.dtype = tensor.dtype,
          .extent = tensor.extent,
          .stride = tensor.stride,
          .alignment = alignment_of(tensor.data)};
}

}  // namespace

Problem describe(const Args& args, const Options& options, Operation operation) {
  Problem problem;
  problem.operation = operation;
  problem.options = options;
  for (const auto& input : detail::kRequiredInputs)
    problem.*input.spec = spec_of(args.*input.tensor);
  const auto describe_if_given = [&](const auto& operand) {
    const ConstTensor tensor = args.*operand.tensor;
    if (tensor.data != nullptr) problem.*operand.spec = spec_of(tensor);
  };
  if (operation == Operation::backward) {
    for (const auto& result : detail::kResults) describe_if_given(result);
    problem.dout = spec_of(args.dout);
    describe_if_given(detail::kGradientInputs[1]);
    for (const auto& gradient : detail::kGradients) {
      if (gradient.required) problem.*gradient.spec = spec_of(args.*gradient.tensor);
      if (!gradient.required) describe_if_given(gradient);
    }
  } else {
    problem.out = spec_of(args.out);
    if (args.lse.data != nullptr) problem.lse = spec_of(args.lse);
  }
  for (const auto& input : detail::kOptionalInputs) {
    if ((args.*input.tensor).data != nullptr) problem.*input.spec = spec_of(args.*input.tensor);
  }
  for (const auto& range : detail::kRangeVectors)
    problem.*range.given = (args.*range.vector).data != nullptr;
  if (args.cu_seqlens_q.data != nullptr || args.cu_seqlens_k.data != nullptr) {
    problem.packed = PackedSpec{.dtype_q = args.cu_seqlens_q.dtype,
                                .dtype_k = args.cu_seqlens_k.dtype,
                                .segments = std::max(args.cu_seqlens_q.size, std::int64_t{0}) - 1};
  }
  problem.softcap = args.softcap != 0;  // a wrong one is refused when it is used
  return problem;
}

}  // namespace tessera
