#pragma once
// What touches a score between Q·Kᵀ and the softmax, in this order:
//
//     scale       q·k times the scale
//     softcap     cap · tanh(score / cap)
//     ALiBi       − slope · |row + diagonal − column|
//     bias        + bias
//     mask        −∞ where a boolean mask says so; its geometry comes after (hide, softmax.hpp)
//
// The result is in base 2: times log2(e). A finite bias never hides a key: what would overflow
// saturates at the largest finite numbers, so that a row which holds nothing but the most negative
// bias is uniform. NaN and ±∞ in a score pass; a bias of −∞ hides.

#include "core/kernel/arguments.hpp"
#include "core/kernel/lanes.hpp"
#include "core/kernel/macros.hpp"
#include "core/kernel/mask.hpp"

namespace tessera::kernel {

// `sum` brought back to the finite numbers if it overflowed though its terms are finite. `finite`
// is 0 if they are, else NaN: the terms times 0, added.
template <class L>
TESSERA_FN typename L::Value saturate(typename L::Value sum, typename L::Value finite) {
  const auto low = L::broadcast(kMostNegative), high = L::broadcast(-kMostNegative);
  const auto raised = L::max(low, sum);
  const auto clamped = L::select(L::less(high, raised), high, raised);
  return L::select(L::equal(finite, L::broadcast(0.0f)), clamped, sum);
}

// Natural to base 2. ±∞ and NaN pass, finite numbers stay finite.
template <class L>
TESSERA_FN typename L::Value to_base2(typename L::Value x) {
  return saturate<L>(x * L::broadcast(kLog2E), x * L::broadcast(0.0f));
}

// tanh, within 3 ulp, odd to the bit; ±1 at ±∞; NaN passes.
template <class L>
TESSERA_FN typename L::Value tanh(typename L::Value x) {
  const auto one = L::broadcast(1.0f);
  const auto magnitude = L::select(L::less(x, L::broadcast(0.0f)), -x, x);
  // From 1 on: 1 − 2e/(1 + e) with e = exp(−2|x|), whose error the quotient makes smaller.
  const auto e = L::exp2(magnitude * L::broadcast(-2.0f * kLog2E));
  const auto far = one - (e + e) / (one + e);
  // Below 1: x + x³·p(x²), p minimax for the relative error of the sum (5e-9, Remez).
  const auto square = x * x;
  auto p = L::broadcast(-3.5845282e-4f);
  p = L::fma(p, square, L::broadcast(2.3013672e-3f));
  p = L::fma(p, square, L::broadcast(-7.946109e-3f));
  p = L::fma(p, square, L::broadcast(2.1486659e-2f));
  p = L::fma(p, square, L::broadcast(-5.3879805e-2f));
  p = L::fma(p, square, L::broadcast(1.3332345e-1f));
  p = L::fma(p, square, L::broadcast(-3.3333296e-1f));
  const auto near = x * L::fma(p, square, one);
  const auto signed_far = L::select(L::less(x, L::broadcast(0.0f)), -far, far);
  return L::select(L::less(magnitude, one), near, signed_far);
}

// Where the lanes' rows and a tile's keys stand to each other: the signed distance row + diagonal −
// column is far + near + i − j for row i and key j counted from the tile's. `far` is a multiple of
// 2^24, `near` in [−2^23, 2^23).
struct TileDistance {
  float far = 0;
  int near = 0;
};

// Once a tile; first row and key inside the sequence, as for relative_to.
TESSERA_FN constexpr TileDistance distance_to(Index diagonal, Index row_first, Index key_first) {
  const Index origin = row_first + diagonal - key_first;
  const Index multiple = (origin + (Index{1} << 23)) >> 24;
  return {static_cast<float>(multiple) * 16777216.0f, static_cast<int>(origin - (multiple << 24))};
}

// |row + diagonal − column| rounded once to fp32, so exact up to 2^24, wherever the tile lies (|i|,
// |j| < 2^22; beyond 2^47 rounded twice).
template <class L>
TESSERA_FN typename L::Value distance(const TileDistance& tile, typename L::Index i,
                                      typename L::Index j) {
  const auto signed_distance = L::broadcast(tile.far) + L::convert(i - j + L::whole(tile.near));
  return L::max(signed_distance, -signed_distance);
}

// What is on, for one (batch, head): uniform over the lanes, so that what is off costs a branch.
struct ScoreModifiers {
  float scale = 1;        // of q·k, softcap off: times log2(e); softcap on: divided by the cap
  float softcap = 0;      // times log2(e); 0: off
  float alibi_slope = 0;  // times log2(e)
  bool alibi = false;
  bool bias = false;
  bool mask = false;
};

TESSERA_FN ScoreModifiers score_modifiers(const ForwardArguments& a, Index batch, Index head) {
  ScoreModifiers m{};
  if (a.softcap > 0) {
    // Where the cap is so small that a factor overflows, the largest finite one does.
    const float inverse = 1.0f / a.softcap;
    const float finite = inverse < -kMostNegative ? inverse : -kMostNegative;
    m.scale = saturate<ScalarLanes>(a.scale * finite, 0.0f);
    m.softcap = to_base2<ScalarLanes>(a.softcap);
  } else {
    m.scale = a.scale * kLog2E;
  }
  m.alibi = a.alibi_slopes != nullptr;
  if (m.alibi)
    m.alibi_slope =
        to_base2<ScalarLanes>(a.alibi_slopes[batch * a.alibi_batch + head * a.alibi_head]);
  m.bias = a.bias.data != nullptr;
  m.mask = a.boolean_mask.data != nullptr;
  return m;
}

// q·k to a capped score in base 2.
template <class L>
TESSERA_FN typename L::Value scale_and_cap(const ScoreModifiers& m, typename L::Value product) {
  const auto scaled = product * L::broadcast(m.scale);
  if (m.softcap == 0) return scaled;
  return L::broadcast(m.softcap) * tanh<L>(scaled);
}

// Derivative of the capped score by the scaled one: 1 − tanh²; 1 without a cap.
template <class L>
TESSERA_FN typename L::Value cap_slope(const ScoreModifiers& m, typename L::Value product) {
  const auto one = L::broadcast(1.0f);
  if (m.softcap == 0) return one;
  const auto t = tanh<L>(product * L::broadcast(m.scale));
  return (one - t) * (one + t);
}

// `distance` as the function of that name gives it.
template <class L>
TESSERA_FN typename L::Value add_alibi(typename L::Value score, float slope,
                                       typename L::Value distance) {
  const auto sum = L::fma(L::broadcast(-slope), distance, score);
  return saturate<L>(sum,
                     L::fma(L::broadcast(slope), L::broadcast(0.0f), score * L::broadcast(0.0f)));
}

// `bias` in natural units, as the caller gave it. Where it is −∞ the key is hidden, whatever the
// score.
template <class L>
TESSERA_FN typename L::Value add_bias(typename L::Value score, typename L::Value bias) {
  const auto zero = L::broadcast(0.0f), hidden = L::broadcast(kMinusInfinity);
  const auto sum =
      saturate<L>(L::fma(bias, L::broadcast(kLog2E), score), L::fma(bias, zero, score * zero));
  return L::select(L::equal(bias, hidden), hidden, sum);
}

// All of it, for row i and key j of a tile: q·k becomes the score that the softmax sees, in base 2.
// `bias` and `visible` are what the kernel loaded for them, and are ignored where they are off.
template <class L>
TESSERA_FN typename L::Value modify(const ScoreModifiers& m, typename L::Value product,
                                    const TileDistance& tile, typename L::Index i,
                                    typename L::Index j, typename L::Value bias,
                                    typename L::Predicate visible) {
  auto score = scale_and_cap<L>(m, product);
  if (m.alibi) score = add_alibi<L>(score, m.alibi_slope, distance<L>(tile, i, j));
  if (m.bias) score = add_bias<L>(score, bias);
  if (m.mask) score = L::select(visible, score, L::broadcast(kMinusInfinity));
  return score;
}

}  // namespace tessera::kernel
