#pragma once
// Tensors of tests, and what kernels are told of them.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <tessera/args.hpp>
#include <tessera/options.hpp>

#include "core/kernel/arguments.hpp"

namespace tessera::amdgpu::lanes {

// Memory that ends where its tensor ends.
class Numbers {
 public:
  Numbers(DType dtype, const Extents& extent, std::int64_t padding)
      : extent_(extent), dtype_(dtype) {
    const std::int64_t row = extent.dim + padding;
    stride_ = {
        .batch = extent.head * extent.seq * row, .head = extent.seq * row, .seq = row, .dim = 1};
    const auto count = static_cast<std::size_t>(extent.batch * stride_.batch - padding);
    const std::size_t size = count * (dtype == DType::fp32 ? 4 : 2);
    data_.reset(static_cast<std::byte*>(std::malloc(size)));
    std::memset(data_.get(), 0xFF, size);
  }
  Tensor tensor() const { return {data_.get(), dtype_, extent_, stride_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
  Extents extent_;
  Strides stride_;
  DType dtype_;
};

template <class Void>
kernel::Operand<Void> operand(const Tensor& t) {
  return {static_cast<Void*>(t.data), t.stride.batch, t.stride.head, t.stride.seq};
}

// As the host core lowers them.
inline kernel::ForwardArguments arguments_of(const Args& args, const Mask& mask) {
  const auto of = [](const ConstTensor& t) {
    return kernel::Operand<const void>{t.data, t.stride.batch, t.stride.head, t.stride.seq};
  };
  kernel::ForwardArguments a;
  a.query = of(args.query);
  a.key = of(args.key);
  a.value = of(args.value);
  a.out = operand<void>(args.out);
  if (args.lse.data != nullptr) a.lse = operand<float>(args.lse);
  a.batch = args.query.extent.batch;
  a.head_q = args.query.extent.head;
  a.head_k = args.key.extent.head;
  a.seq_q = a.total_q = args.query.extent.seq;
  a.seq_k = a.total_k = args.key.extent.seq;
  a.dim = args.query.extent.dim;
  a.dim_v = args.value.extent.dim;
  a.scale = 1 / std::sqrt(static_cast<float>(a.dim));
  a.softcap = args.softcap;
  a.left = mask.left().value_or(kernel::kUnbounded);
  a.right = mask.right().value_or(kernel::kUnbounded);
  a.bottom_right = mask.alignment() != Alignment::TopLeft;
  if (args.sinks.data != nullptr) {
    a.sinks = static_cast<const float*>(args.sinks.data);
    a.sinks_head = 1;
  }
  return a;
}

}  // namespace tessera::amdgpu::lanes
