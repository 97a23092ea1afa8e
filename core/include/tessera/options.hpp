#pragma once
/// What attention is computed, apart from shapes and data: the choices that a plan is made for.

#include <cstdint>
#include <optional>

#include <tessera/export.hpp>

namespace tessera {

/// Which corner of the score matrix the mask's diagonal leaves from, when there are more keys than
/// queries or fewer.
///
///     seq_q = 2, seq_k = 4, causal     TopLeft  ■ □ □ □     BottomRight  ■ ■ ■ □
///                                               ■ ■ □ □                  ■ ■ ■ ■
///
/// The diagonal is 0 for TopLeft and key_end − query_end for BottomRight (packed: of the segment's
/// lengths).
enum class Alignment : std::uint8_t { TopLeft, BottomRight };

/// Which keys a query row may see: row i sees column j if
///
///     i + diagonal − left ≤ j ≤ i + diagonal + right
///
/// with both edges inclusive and each side possibly unbounded. Key ranges, lengths and boolean
/// masks hide more.
class Mask {
 public:
  /// Keys visible on one side of the diagonal; nullopt is unbounded.
  using Edge = std::optional<std::int64_t>;

  /// Every key is visible.
  constexpr Mask() noexcept = default;
  static constexpr Mask none() noexcept { return {}; }

  /// j ≤ i + diagonal. The alignment is required: libraries differ, and a wrong guess is silent.
  static constexpr Mask causal(Alignment alignment) noexcept {
    return window(std::nullopt, 0, alignment);
  }

  /// `left` keys before the diagonal and `right` after it; nullopt is unbounded, else at least 0.
  /// flash-attn's (left, right) with −1 for unbounded; Hugging Face's `sliding_window` is causal
  /// with left + 1.
  static constexpr Mask window(Edge left, Edge right, Alignment alignment) noexcept {
    Mask mask;
    mask.left_ = left;
    mask.right_ = right;
    mask.alignment_ = alignment;
    return mask;
  }

  static Mask causal() = delete;                       // give an Alignment: TopLeft or BottomRight
  static Mask window(Edge left, Edge right) = delete;  // give an Alignment: TopLeft or BottomRight

  constexpr Edge left() const noexcept { return left_; }
  constexpr Edge right() const noexcept { return right_; }
  /// Unset for `none()`: ALiBi then takes BottomRight.
  constexpr std::optional<Alignment> alignment() const noexcept { return alignment_; }
  constexpr bool bounded() const noexcept { return left_.has_value() || right_.has_value(); }

  friend constexpr bool operator==(const Mask&, const Mask&) = default;

 private:
  Edge left_;
  Edge right_;
  std::optional<Alignment> alignment_;
};

/// Format in which products are accumulated. Softmax statistics are fp32 always.
enum class Accumulate : std::uint8_t {
  fp32,
  fp16,  ///< for fp16 inputs only: scores and each tile's P·V are rounded to fp16
};

/// The choices that do not change from call to call, set by designated initialisers:
/// `{.mask = Mask::causal(Alignment::BottomRight)}`.
struct Options {
  Mask mask{};
  /// Probability in [0, 1] that a weight is dropped. Realised in steps of 2⁻¹⁶: see
  /// Plan::realised_dropout.
  double dropout = 0;
  Accumulate accumulate = Accumulate::fp32;
  /// Backward gives the same bits every time. Forward always does.
  bool deterministic = false;
  /// A row's bits do not depend on its neighbours in the batch.
  bool batch_invariant = false;
  /// Packed input: the longest segment, which the host must know to plan for it. 0: as long as the
  /// whole tensor. Must be 0 for input that is not packed.
  std::int64_t max_seq_q = 0;
  std::int64_t max_seq_k = 0;

  friend constexpr bool operator==(const Options&, const Options&) = default;
};

}  // namespace tessera
