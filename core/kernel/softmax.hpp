#pragma once
// The online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867) in base 2, one row a lane, in
// phases, because machines interleave them differently: a CPU observes while Q·Kᵀ is still in
// registers and exponentiates from its cache; a GPU puts matrix instructions and barriers between
// them.
//
//     for each tile of keys
//         hide      score ← −∞ where the row does not see the key
//         observe   tile maximum
//         advance   maximum and sum move to the new maximum; O must be scaled by the factor
//         weight    p = 2^(score − maximum), added to the sum, then O += p·V
//     merge         two states of the same rows over different keys
//     finish        O · inverse_sum, log_sum_exp
//
// A state starts empty: maximum −∞, sum 0. Whether a row saw a key is known by sum != 0, never by
// its maximum: legal scores lie below any sentinel. A NaN score makes the sum NaN.

#include "core/kernel/lanes.hpp"
#include "core/kernel/mask.hpp"

namespace tessera::kernel {

// Of scores in base 2: score · log2(e).
template <class V>
struct SoftmaxState {
  V max;
  V sum;
};

template <class L>
TESSERA_FN SoftmaxState<typename L::Value> empty_state() {
  return {L::broadcast(kMinusInfinity), L::broadcast(0.0f)};
}

// −∞, by selection, where key j is not in the row's interval: whatever the score was, NaN included,
// it is gone.
template <class L>
TESSERA_FN typename L::Value hide(typename L::Value score, const Interval<typename L::Index>& see,
                                  typename L::Index j) {
  return L::select(holds<L>(see, j), score, L::broadcast(kMinusInfinity));
}

// Maximum of a tile so far.
template <class L>
TESSERA_FN typename L::Value observe(typename L::Value tile_max, typename L::Value score) {
  return L::max(tile_max, score);
}

// What is subtracted from scores: the maximum, or 0 for a row that has seen nothing, so that −∞ −
// (−∞) never happens.
template <class L>
TESSERA_FN typename L::Value origin(typename L::Value max) {
  return L::select(L::equal(max, L::broadcast(kMinusInfinity)), L::broadcast(0.0f), max);
}

// Moves the state to the maximum of itself and the tile. Returns the factor that sum has been, and
// O must be, scaled by.
template <class L>
TESSERA_FN typename L::Value advance(SoftmaxState<typename L::Value>& state,
                                     typename L::Value tile_max) {
  const auto max = L::max(state.max, tile_max);
  const auto factor = L::exp2(state.max - origin<L>(max));
  state.max = max;
  state.sum = state.sum * factor;
  return factor;
}

// As advance, but a row stays where it is while its scores rise by at most kLazyRise above its
// maximum, which is that of some of them then: its factor is 1, its weights reach 2^kLazyRise.
// Factors are rounded, and where maxima rise evenly always the same way: with one a tile the error
// would grow with the number of keys. Here what a factor scales weighs at most a sixteenth of what
// made it necessary. Where scaling O is an instruction of its own, that is saved, too. `exactly`:
// as advance, for weights that must not exceed 1.
inline constexpr float kLazyRise = 4.0f;
template <class L>
TESSERA_FN typename L::Value advance_lazily(SoftmaxState<typename L::Value>& state,
                                            typename L::Value tile_max, bool exactly = false) {
  const auto rise = L::broadcast(exactly ? 0.0f : kLazyRise);
  const auto rises = L::less(state.max + rise, tile_max);
  return advance<L>(state, L::select(rises, tile_max, state.max));
}

// Weight of a score, not yet divided by the sum; origin is origin(state.max).
template <class L>
TESSERA_FN typename L::Value weight(typename L::Value score, typename L::Value origin) {
  return L::exp2(score - origin);
}

// Of scores that are not scaled yet: their maxima are kept as they are, and a weight is 2^(score ·
// scale − origin), one multiplication and addition. `scale`, positive, brings a score to base 2.
// The product in here must be rounded before anything is added: build without contraction.
template <class L>
TESSERA_FN typename L::Value scaled_origin(typename L::Value max, float scale) {
  return origin<L>(max * L::broadcast(scale));
}

// Where an origin is larger than this, what rounding it leaves of its own score is more than 1:
// scores are subtracted from origin(max) then before they are scaled.
inline constexpr float kFusedLimit = 0x1p24f;

// The factor of what was computed beside maximum `from`, beside maximum `to` from now on.
template <class L>
TESSERA_FN typename L::Value scaled_factor(typename L::Value from, typename L::Value to,
                                           float scale) {
  const auto limit = L::broadcast(kFusedLimit);
  const auto first = from * L::broadcast(scale), second = scaled_origin<L>(to, scale);
  const auto large =
      L::either(L::less(limit, L::max(first, -first)), L::less(limit, L::max(second, -second)));
  const auto apart = (from - origin<L>(to)) * L::broadcast(scale);
  return L::exp2(L::select(large, apart, first - second));
}

// The factors by which two states of the same rows, and their O, enter the union: a becomes the
// union's state, and O = O_a·factor.a + O_b·factor.b. merge(empty, empty) is empty.
template <class V>
struct MergeFactors {
  V a;
  V b;
};

template <class L>
TESSERA_FN MergeFactors<typename L::Value> merge(SoftmaxState<typename L::Value>& a,
                                                 const SoftmaxState<typename L::Value>& b) {
  const auto max = L::max(a.max, b.max);
  const auto zero = origin<L>(max);
  const MergeFactors<typename L::Value> factor{L::exp2(a.max - zero), L::exp2(b.max - zero)};
  a.sum = L::fma(a.sum, factor.a, b.sum * factor.b);
  a.max = max;
  return factor;
}

// Adds a sink: a logit, already times log2(e), that only enlarges the sum. O must be scaled by the
// factor returned. A sink of −∞ is none.
template <class L>
TESSERA_FN typename L::Value add_sink(SoftmaxState<typename L::Value>& state,
                                      typename L::Value sink) {
  const auto factor = advance<L>(state, sink);
  state.sum = state.sum + L::exp2(sink - origin<L>(state.max));
  return factor;
}

// Probability of a sink, e^(sink − lse), both natural logarithms. In double and not in base 2: what
// rounding adds to either is magnified by their size. At most 1, though a rounded lse may lie below
// its sink.
TESSERA_FN double sink_probability(float sink, float lse) {
  const double difference = static_cast<double>(sink) - static_cast<double>(lse);
  return difference > 0 ? 1.0 : TESSERA_MATH(exp)(difference);
}

// Factor that makes O the output: 1 / sum, or 0 for a row that saw nothing; NaN stays NaN.
template <class L>
TESSERA_FN typename L::Value inverse_sum(const SoftmaxState<typename L::Value>& state) {
  const auto zero = L::broadcast(0.0f);
  return L::select(L::equal(state.sum, zero), zero, L::broadcast(1.0f) / state.sum);
}

// Natural logarithm of Σ exp(score) of one row: −∞ if it saw nothing. Rounded once, since what is
// large is only the product: probabilities e^(score − lse) magnify every further rounding.
TESSERA_FN float log_sum_exp(float max, float sum) {
  if (sum == 0.0f) return kMinusInfinity;
  const float rest = TESSERA_MATH(fmaf)(max, kLn2Rest, TESSERA_MATH(logf)(sum));
  return TESSERA_MATH(fmaf)(max, kLn2, rest);
}

}  // namespace tessera::kernel
