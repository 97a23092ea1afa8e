#pragma once
// What a forward kernel is given: plain data, by value, the same for every backend. The host core
// fills it from validated Args: broadcasts are stride 0, absent options are null, unbounded window
// edges are kUnbounded.

#include <cstdint>

#include "core/kernel/macros.hpp"

namespace tessera::kernel {

using Index = std::int64_t;

// A window edge that hides nothing. Far beyond any position, yet sums of a few such numbers do not
// overflow.
inline constexpr Index kUnbounded = Index{1} << 60;

// An operand [batch, head, seq, dim] whose dim stride is 1; strides in elements.
template <class Void>
struct Operand {
  Void* data = nullptr;
  Index batch = 0;
  Index head = 0;
  Index seq = 0;
};

// A score modifier [batch, head_q, seq_q, seq_k], any strides in elements, 0 where it broadcasts.
struct ScoreOperand {
  const void* data = nullptr;
  Index batch = 0;
  Index head = 0;
  Index row = 0;
  Index column = 0;  // 0 or 1
};

// int32 or int64 numbers.
struct Indices {
  const void* data = nullptr;
  bool wide = false;  // int64

  TESSERA_FN Index operator[](Index i) const {
    return wide ? static_cast<Index>(static_cast<const std::int64_t*>(data)[i])
                : static_cast<Index>(static_cast<const std::int32_t*>(data)[i]);
  }
};

// Philox4x32-7 dropout of the weights.
struct Dropout {
  std::uint32_t threshold = 0;  // round-half-even(p · 2^16), 0: off, 65536: drops everything
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  const std::uint64_t* seed_device = nullptr;  // replaces seed if not null
  const std::uint64_t* offset_device = nullptr;

  // Factor of a kept weight: 1 / realised keep probability; 0 where nothing is kept.
  TESSERA_FN float keep_scale() const {
    return threshold < 65536u ? 65536.0f / static_cast<float>(65536u - threshold) : 0.0f;
  }
};

struct ForwardArguments {
  Operand<const void> query;  // [batch, head_q, seq_q, dim]
  Operand<const void> key;    // [batch, head_k, seq_k, dim]
  Operand<const void> value;  // [batch, head_k, seq_k, dim_v]
  Operand<void> out;          // [batch, head_q, seq_q, dim_v]
  Operand<float> lse;         // [batch, head_q, seq_q]; null: not wanted

  Index batch = 0;  // packed: number of segments
  Index head_q = 0;
  Index head_k = 0;
  Index seq_q = 0;  // packed: longest segment
  Index seq_k = 0;
  Index total_q = 0;  // rows in memory along seq: seq_q, or packed all segments'
  Index total_k = 0;
  Index dim = 0;
  Index dim_v = 0;

  float scale = 1;
  float softcap = 0;  // 0: off

  Index left = kUnbounded;  // see Band in mask.hpp
  Index right = kUnbounded;
  bool bottom_right = true;  // alignment of the diagonal

  const std::int32_t* key_begin = nullptr;  // [batch]
  const std::int32_t* key_end = nullptr;
  const std::int32_t* query_end = nullptr;
  Indices cu_seqlens_q;  // [batch + 1]; both null unless packed
  Indices cu_seqlens_k;

  const float* alibi_slopes = nullptr;  // slopes[b · alibi_batch + h · alibi_head]
  Index alibi_batch = 0;
  Index alibi_head = 0;
  ScoreOperand bias;
  bool bias_fp32 = true;         // else the inputs' type
  ScoreOperand boolean_mask;     // uint8
  const float* sinks = nullptr;  // sinks[h · sinks_head]
  Index sinks_head = 0;
  Dropout dropout;
  bool accumulate_fp16 = false;  // Q·Kᵀ and each tile's P·V are rounded to fp16

  TESSERA_FN bool packed() const { return cu_seqlens_q.data != nullptr; }
  // Does anything but the mask's geometry touch a product, a score or a weight? Then the general
  // flavour of a kernel runs.
  TESSERA_FN bool general() const {
    return softcap > 0 || alibi_slopes != nullptr || bias.data != nullptr ||
           boolean_mask.data != nullptr || sinks != nullptr || dropout.threshold != 0 ||
           accumulate_fp16;
  }
};

// The gradient of a score modifier: its own shape, of which each extent is the problem's or 1, and
// then summed over that axis.
struct ScoreGradient {
  void* data = nullptr;
  Index batch = 0;  // strides in elements
  Index head = 0;
  Index row = 0;
  Index column = 0;
  bool each_batch = false;  // is the extent the problem's?
  bool each_head = false;
  bool each_row = false;
  bool each_column = false;
};

// With P the weights, M what dropout multiplies them with (0 or keep_scale()), D = rowsum(dO∘O):
//
//     dV = (P∘M)ᵀ·dO      dS = P∘((dO·Vᵀ)∘M − D + dlse)      dbias = dS
//     dX = dS∘cap′        dQ = scale·dX·K     dK = scale·dXᵀ·Q     dsink = Σ P_sink·(dlse − D)
struct BackwardArguments {
  // out and lse: what forward gave, read only. Both null: they must be computed; out alone null:
  // likewise, lse stands.
  ForwardArguments forward;
  Operand<const void> dout;   // like out, any strides
  Index dout_column = 1;      // 0: a row of dout is one number
  Operand<const float> dlse;  // like lse; null: 0
  Operand<void> dq;           // like query
  Operand<void> dk;           // like key
  Operand<void> dv;           // like value
  ScoreGradient dbias;        // of the bias's type; null: not wanted
  float* dsink = nullptr;     // [head_q]; null: not wanted
  Index dsink_head = 0;
};

}  // namespace tessera::kernel
