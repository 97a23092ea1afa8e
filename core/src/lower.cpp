// From arguments to what a kernel is given. One element along an axis gives stride 0, whatever the
// caller's stride says.

#include <algorithm>
#include <cmath>

#include "core/src/operands.hpp"
#include "core/src/plan_impl.hpp"

namespace tessera::detail {
namespace {

std::int64_t step(std::int64_t extent, std::int64_t stride) { return extent > 1 ? stride : 0; }

template <class Pointer, class View>
auto operand(Pointer data, const View& t) {
  return kernel::Operand<std::remove_pointer_t<Pointer>>{
      .data = data,
      .batch = step(t.extent.batch, t.stride.batch),
      .head = step(t.extent.head, t.stride.head),
      .seq = step(t.extent.seq, t.stride.seq)};
}

kernel::ScoreOperand score_operand(const ConstTensor& t) {
  return {.data = t.data,
          .batch = step(t.extent.batch, t.stride.batch),
          .head = step(t.extent.head, t.stride.head),
          .row = step(t.extent.seq, t.stride.seq),
          .column = step(t.extent.dim, t.stride.dim)};
}

std::int64_t edge(std::optional<std::int64_t> bound) {
  return std::min(bound.value_or(kernel::kUnbounded), kernel::kUnbounded);
}

const std::int32_t* int32s(const ConstVector& v) {
  return static_cast<const std::int32_t*>(v.data);
}

kernel::Indices indices(const ConstVector& v) {
  return {.data = v.data, .wide = v.dtype == DType::int64};
}

}  // namespace

kernel::ForwardArguments lower_forward(const Problem& p, const Args& args) {
  kernel::ForwardArguments k;
  k.query = operand(args.query.data, args.query);
  k.key = operand(args.key.data, args.key);
  k.value = operand(args.value.data, args.value);
  k.out = operand(args.out.data, args.out);
  k.lse = operand(static_cast<float*>(args.lse.data), args.lse);

  const Sizes sizes = sizes_of(p);
  k.batch = sizes.batch;
  k.head_q = p.query.extent.head;
  k.head_k = p.key.extent.head;
  k.seq_q = sizes.seq_q;
  k.seq_k = sizes.seq_k;
  k.total_q = p.query.extent.seq;
  k.total_k = p.key.extent.seq;
  k.dim = p.query.extent.dim;
  k.dim_v = p.value.extent.dim;

  k.scale = args.scale.value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(k.dim))));
  k.softcap = args.softcap;
  k.left = edge(p.options.mask.left());
  k.right = edge(p.options.mask.right());
  k.bottom_right = p.options.mask.alignment() != Alignment::TopLeft;

  k.key_begin = int32s(args.key_begin);
  k.key_end = int32s(args.key_end);
  k.query_end = int32s(args.query_end);
  if (p.packed) {
    k.cu_seqlens_q = indices(args.cu_seqlens_q);
    k.cu_seqlens_k = indices(args.cu_seqlens_k);
  }

  k.alibi_slopes = static_cast<const float*>(args.alibi_slopes.data);
  k.alibi_batch = step(args.alibi_slopes.extent.batch, args.alibi_slopes.stride.batch);
  k.alibi_head = step(args.alibi_slopes.extent.head, args.alibi_slopes.stride.head);
  k.bias = score_operand(args.bias);
  k.bias_fp32 = args.bias.dtype == DType::fp32;
  k.boolean_mask = score_operand(args.boolean_mask);
  k.sinks = static_cast<const float*>(args.sinks.data);
  k.sinks_head = step(args.sinks.extent.head, args.sinks.stride.head);
  k.dropout = {.threshold = dropout_threshold(p.options.dropout),
               .seed = args.seed,
               .offset = args.offset,
               .seed_device = args.seed_device,
               .offset_device = args.offset_device};
  k.accumulate_fp16 = p.options.accumulate == Accumulate::fp16;
  return k;
}

kernel::BackwardArguments lower_backward(const Problem& p, const Args& args) {
  kernel::BackwardArguments k;
  k.forward = lower_forward(p, args);
  k.dout = operand(args.dout.data, args.dout);
  k.dout_column = p.dout->extent.dim > 1 ? args.dout.stride.dim : 1;
  k.dlse = operand(static_cast<const float*>(args.dlse.data), args.dlse);
  k.dq = operand(args.dq.data, args.dq);
  k.dk = operand(args.dk.data, args.dk);
  k.dv = operand(args.dv.data, args.dv);
  if (p.dbias) {
    const kernel::ScoreOperand strides = score_operand(args.dbias);
    const Sizes sizes = sizes_of(p);
    const Extents& e = p.dbias->extent;
    k.dbias = {.data = args.dbias.data,
               .batch = strides.batch,
               .head = strides.head,
               .row = strides.row,
               .column = strides.column,
               .each_batch = e.batch == sizes.batch,
               .each_head = e.head == p.query.extent.head,
               .each_row = e.seq == sizes.seq_q,
               .each_column = e.dim == sizes.seq_k};
  }
  k.dsink = static_cast<float*>(args.dsink.data);
  k.dsink_head = step(args.dsink.extent.head, args.dsink.stride.head);
  return k;
}

}  // namespace tessera::detail
