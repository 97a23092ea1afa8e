#pragma once
/// What a failure of one random problem is worth.
///
/// The bound of a result is made of the error that the plain fp32 computation makes of the same
/// numbers. Once in some thousand draws that one happens to round next to nothing, and what is
/// right is beyond its bound then, by some per cent and on all kernels alike. The tolerance stays
/// what it is; the same problem is drawn again with other numbers instead: a kernel that is wrong
/// is wrong again, chance is not.

#include <cstddef>
#include <cstdint>

namespace tessera::testing {

/// What came of one draw.
struct Outcome {
  std::size_t failures = 0;  ///< of every kind
  std::size_t excesses = 0;  ///< of these, kernels whose numbers are beyond their bound
  double ratio = 0;          ///< largest error ÷ bound
};

enum class Decision : std::uint8_t {
  right,
  near_miss,  ///< beyond its bound once, within it in kRedraws other draws
  wrong
};

inline constexpr int kRedraws = 3;
inline constexpr double kMostByChance = 2;  ///< times the bound

/// NaN and infinity where there should be none have an infinite ratio; unwritten memory, bits that
/// differ between runs and whatever else fails are no excess.
constexpr bool may_be_chance(const Outcome& outcome) noexcept {
  return outcome.failures == outcome.excesses && outcome.ratio <= kMostByChance;
}

/// `redraw(i)`, i in [0, kRedraws), gives the outcome of the problem with other numbers. Called
/// only as long as that can decide anything.
template <class Redraw>
constexpr Decision decide(const Outcome& first, Redraw redraw) {
  if (first.failures == 0) return Decision::right;
  if (!may_be_chance(first)) return Decision::wrong;
  for (int i = 0; i < kRedraws; ++i) {
    if (redraw(i).failures > 0) return Decision::wrong;
  }
  return Decision::near_miss;
}

}  // namespace tessera::testing
