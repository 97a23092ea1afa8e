#pragma once
/// A Problem says what is to be computed, without data: a plan for it serves every call of that
/// shape.

#include <cstdint>
#include <optional>

#include <tessera/options.hpp>
#include <tessera/tensor.hpp>

namespace tessera {

struct Args;

/// Which function of attention.
enum class Operation : std::uint8_t { forward, backward, decode };

/// A tensor without its data.
struct TensorSpec {
  DType dtype = DType::fp32;
  Extents extent{};
  Strides stride{};
  /// Power of two from the size of an element to 128 that divides the address in bytes; `describe`
  /// takes the largest up to 16, and 16 for null. A plan serves pointers at least as aligned: what
  /// malloc and operator new give always is, the inside of an array may not be.
  std::int64_t alignment = 16;

  friend constexpr bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// Packed (variable-length) input: segments one after another along the seq axis of batch 1.
struct PackedSpec {
  DType dtype_q = DType::int32;  ///< of cu_seqlens_q: int32 or int64
  DType dtype_k = DType::int32;  ///< of cu_seqlens_k: int32 or int64
  std::int64_t segments = 0;     ///< both prefix sums hold segments + 1 numbers

  friend constexpr bool operator==(const PackedSpec&, const PackedSpec&) = default;
};

/// What is to be computed: a plain aggregate, unvalidated, without pointers. Shapes are [batch,
/// head, seq, dim].
///
///     query  [batch, head_q, seq_q, dim]       out  [batch, head_q, seq_q, dim_v]
///     key    [batch, head_k, seq_k, dim]       lse  [batch, head_q, seq_q, 1] fp32
///     value  [batch, head_k, seq_k, dim_v]
///
/// head_q is a multiple of head_k: query head h reads key head h / (head_q / head_k).
struct Problem {
  Operation operation = Operation::forward;
  TensorSpec query{};
  TensorSpec key{};
  TensorSpec value{};
  std::optional<TensorSpec> out{};    ///< forward writes it; backward reads it, or recomputes it
  std::optional<TensorSpec> lse{};    ///< forward writes it if set; backward as out
  std::optional<TensorSpec> dout{};   ///< like out; backward, as all that follow
  std::optional<TensorSpec> dlse{};   ///< like lse; absent: 0
  std::optional<TensorSpec> dq{};     ///< like query
  std::optional<TensorSpec> dk{};     ///< like key
  std::optional<TensorSpec> dv{};     ///< like value
  std::optional<TensorSpec> dbias{};  ///< like bias; written if set
  std::optional<TensorSpec> dsink{};  ///< like sinks; written if set
  std::optional<TensorSpec> alibi_slopes{};  ///< [batch or 1, head_q, 1, 1] fp32
  std::optional<TensorSpec> bias{};  ///< [batch, head_q, seq_q, seq_k] fp32 or the input type
  std::optional<TensorSpec> boolean_mask{};  ///< [batch, head_q, seq_q, seq_k] uint8
  std::optional<TensorSpec> sinks{};         ///< [1, head_q, 1, 1] fp32
  std::optional<PackedSpec> packed{};
  bool key_begin = false;  ///< is there a vector of first visible keys
  bool key_end = false;    ///< is there a vector of ends of the visible keys
  bool query_end = false;  ///< is there a vector of ends of the query rows
  bool softcap = false;    ///< is the score capped
  bool paged = false;      ///< do key and value live in pages
  Options options{};

  friend constexpr bool operator==(const Problem&, const Problem&) = default;
};

/// The problem that these arguments pose: their shapes and which of them are there. Validates
/// nothing.
TESSERA_API Problem describe(const Args& args, const Options& options = {},
                             Operation operation = Operation::forward);

}  // namespace tessera
