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

/// Pointers and values of one call, set by designated initialisers. What is left out is off. Values in device memory
/// are not validated: kernels clamp ranges and prefix sums to the extents. Where the host can read them, it looks.
///
/// Order of operations on a score: scale, softcap, + bias and ALiBi, mask, softmax (with sink), dropout.
struct Args {
  ConstTensor query{};  ///< [batch, head_q, seq_q, dim] fp32, fp16 or bf16
  ConstTensor key{};    ///< [batch, head_k, seq_k, dim], of query's dtype
  ConstTensor value{};  ///< [batch, head_k, seq_k, dim_v], of query's dtype
  Tensor out{};         ///< [batch, head_q, seq_q, dim_v], of query's dtype
  Tensor lse{};         ///< optional: [batch, head_q, seq_q, 1] fp32, natural log of Σexp(score), the sink included

  std::optional<float> scale{};  ///< finite; factor of Q·Kᵀ. Default 1/√dim
  float softcap = 0;             ///< cap·tanh(score / cap) if positive; 0 is off

  ConstTensor alibi_slopes{};  ///< [1 or batch, head_q, 1, 1] fp32: score − slope·|row + diagonal − column|
  ConstTensor bias{};          ///< [batch, head_q, seq_q, seq_k] fp32 or query's dtype; stride 0 or extent 1 broadcasts
  ConstTensor boolean_mask{};  ///< [batch, head_q, seq_q, seq_k] uint8, non-zero is visible; broadcasts alike
  ConstTensor sinks{};         ///< [1, head_q, 1, 1] fp32: a natural-log logit that only enlarges the sum

  ConstVector key_begin{};  ///< int32 [batch]: keys before it are padding. Default 0
  ConstVector key_end{};    ///< int32 [batch]: keys from it on are padding. Default seq_k
  ConstVector query_end{};  ///< int32 [batch]: rows from it on give out 0, lse −∞. Default seq_q

  ConstVector cu_seqlens_q{};  ///< packed: int32 or int64 [segments + 1], 0 = first ≤ … ≤ last ≤ query.extent.seq
  ConstVector cu_seqlens_k{};  ///< packed: int32 or int64 [segments + 1]

  std::uint64_t seed = 0;                       ///< dropout: Philox4x32-7 key
  std::uint64_t offset = 0;                     ///< dropout: Philox4x32-7 counter
  const std::uint64_t* seed_device = nullptr;   ///< on the device; replaces `seed`, so that a replayed graph draws anew
  const std::uint64_t* offset_device = nullptr; ///< on the device; replaces `offset`

  Workspace workspace{};
};

}  // namespace tessera
