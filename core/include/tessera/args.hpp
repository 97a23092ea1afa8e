#pragma once
/// The arguments of one call: pointers, and the values that change from call to call.

#include <cstddef>
#include <cstdint>
#include <optional>

#include <tessera/tensor.hpp>

namespace tessera {

/// Caller-owned scratch memory on the device, 64-byte aligned. Absent: the backend uses its own.
struct Workspace {
  void* data = nullptr;
  std::size_t size = 0;  ///< bytes; at least Plan::workspace_size()
};

/// Pointers and values of one call, set by designated initialisers. What is left out is off. Values
/// in device memory are not validated: kernels clamp ranges and prefix sums to the extents. Where
/// the host can read them, or with TESSERA_CHECK_VALUES=1 in the environment, it looks:
/// InvalidArgument if prefix sums do not begin with 0, fall, pass the total or hold a segment
/// beyond Options::max_seq_q or max_seq_k, or if a range is negative. Ranges beyond the sequence
/// are clamped; key_begin ≥ key_end sees nothing.
///
/// Packed input: a segment counts as a batch entry. alibi_slopes are [1 or segments, head_q, 1, 1];
/// bias and boolean_mask [segments, head_q, longest query segment, longest key segment], the
/// longest being Options::max_seq_q and max_seq_k (0: the total). Rows beyond the last segment are
/// not written.
///
/// Order of operations on a score: scale, softcap, + bias and ALiBi, mask, softmax (with sink),
/// dropout.
struct Args {
  ConstTensor query{};  ///< [batch, head_q, seq_q, dim] fp32, fp16 or bf16
  ConstTensor key{};    ///< [batch, head_k, seq_k, dim], of query's dtype
  ConstTensor value{};  ///< [batch, head_k, seq_k, dim_v], of query's dtype
  /// [batch, head_q, seq_q, dim_v], of query's dtype. Backward only reads what forward wrote, and
  /// computes it again if it is absent.
  Tensor out{};
  /// Optional: [batch, head_q, seq_q, 1] fp32, natural log of Σexp(score), the sink included.
  /// Backward reads it, with `out` or alone, and computes it again if both are absent.
  Tensor lse{};

  /// Backward: gradient of a loss with respect to out, like out; any strides, 0 included, the last
  /// 1 or 0: a gradient of a sum, expanded, is taken as it is.
  ConstTensor dout{};
  /// Backward, optional: gradient with respect to lse, like lse; any strides.
  ConstTensor dlse{};
  Tensor dq{};     ///< Backward: gradient with respect to query, of its shape and dtype
  Tensor dk{};     ///< Backward: like key; the query heads of a group are summed in fp32
  Tensor dv{};     ///< Backward: like value
  Tensor dbias{};  ///< Backward, optional: like bias; what an extent of 1 repeats is summed in fp32
  Tensor dsink{};  ///< Backward, optional: like sinks, summed over the batch

  /// Factor of Q·Kᵀ; finite, and so is its product with log2(e) in fp32: |scale| ≤ 2.358e38,
  /// and not subnormal: 0 or |scale| ≥ 1.1754944e-38. Default 1/√dim.
  std::optional<float> scale{};
  float softcap = 0;  ///< 0 to 2.358e38; cap·tanh(score / cap) if positive; 0 is off

  /// [1 or batch, head_q, 1, 1] fp32: score − slope·|row + diagonal − column|.
  ConstTensor alibi_slopes{};
  /// [batch, head_q, seq_q, seq_k] fp32 or query's dtype; stride 0 or extent 1 broadcasts.
  ConstTensor bias{};
  /// [batch, head_q, seq_q, seq_k] uint8, non-zero is visible; broadcasts alike.
  ConstTensor boolean_mask{};
  /// [1, head_q, 1, 1] fp32: a natural-log logit that only enlarges the sum.
  ConstTensor sinks{};

  ConstVector key_begin{};  ///< int32 [batch]: keys before it are padding. Default 0
  ConstVector key_end{};    ///< int32 [batch]: keys from it on are padding. Default seq_k
  ConstVector query_end{};  ///< int32 [batch]: rows from it on give out 0, lse −∞. Default seq_q

  /// Packed: int32 or int64 [segments + 1], 0 = first ≤ … ≤ last ≤ query.extent.seq.
  ConstVector cu_seqlens_q{};
  /// Packed: int32 or int64 [segments + 1], of as many numbers as cu_seqlens_q.
  ConstVector cu_seqlens_k{};

  std::uint64_t seed = 0;    ///< dropout: Philox4x32-7 key
  std::uint64_t offset = 0;  ///< dropout: Philox4x32-7 counter
  /// On the device; replaces `seed`, so that a replayed graph draws anew.
  const std::uint64_t* seed_device = nullptr;
  /// On the device; replaces `offset`.
  const std::uint64_t* offset_device = nullptr;

  Workspace workspace{};
};

}  // namespace tessera
