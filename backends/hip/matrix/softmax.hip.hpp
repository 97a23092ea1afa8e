#pragma once
// The online softmax of core/kernel, two scores an instruction. What changes only when a maximum
// rises is computed then, so that a tile of keys in which none does costs, for two scores, a
// multiplication and addition, a maximum, two exponentials, an addition and the packing.

#include "backends/hip/common/fragment.hip.hpp"

namespace tessera::hip::matrix {

// The lane's row.
struct LazyRow {
  float max = kernel::kMinusInfinity;    // of scores before `scale` multiplies them; of both halves
  float limit = kernel::kMinusInfinity;  // what scores may reach before the maximum follows them
  float origin = 0;                      // what is subtracted from scaled scores
  bool large = false;  // the wave subtracts before it scales: see kernel::kFusedLimit
  Pair sum = 0;        // of the lane's own keys

  TESSERA_DEVICE Row row() const { return {max, sum[0] + sum[1]}; }
};

// How far above `max` scores may rise. Where scores are so large that their rounding is more than
// `rise`, not at all: weights would be more than 2^(rise + 1).
template <class Element>
TESSERA_DEVICE float limit_of(float max, float scale) {
  const float limit = max + __builtin_fminf(Element::kRise / scale, -kernel::kMostNegative);
  return (limit - max) * scale > Element::kRise + 1 ? max : limit;
}

// Does a score rise above what its row, of those of the wave, allows? NaN never does: it shows in
// the weights.
template <int kCount>
TESSERA_DEVICE bool rises(const float (&score)[kCount], const LazyRow& row) {
  float max = row.limit;
  TESSERA_UNROLL
  for (int i = 0; i < kCount; ++i) max = larger(max, score[i]);
  return any(max > row.limit);
}

// Moves all of the wave's rows to their maxima; returns the factor by which O must be scaled.
template <class Element, int kCount>
TESSERA_DEVICE float raise(const float (&score)[kCount], LazyRow& row, float scale) {
  const float max = largest(score);
  const float next = larger(larger(max, other_half(max)), row.max);
  const float factor = kernel::scaled_factor<GcnLanes>(row.max, next, scale);
  row.max = next;
  row.limit = limit_of<Element>(next, scale);
  row.origin = kernel::scaled_origin<GcnLanes>(next, scale);
  row.large = any(__builtin_fabsf(row.origin) > kernel::kFusedLimit);
  if (row.large) row.origin = 0;
  row.sum *= factor;
  return factor;
}

// What weigh expects of scores where row.large.
template <int kCount>
TESSERA_DEVICE void subtract_maximum(float (&score)[kCount], const LazyRow& row) {
  TESSERA_UNROLL
  for (float& x : score) x -= kernel::origin<GcnLanes>(row.max);
}

// Scores to weights, which are added to the sum.
template <int kCount>
TESSERA_DEVICE void weigh(float (&score)[kCount], LazyRow& row, float scale) {
  Pair sum = 0;
  TESSERA_UNROLL
  for (int i = 0; i < kCount; i += 2) {
    const Pair x = __builtin_elementwise_fma(Pair{score[i], score[i + 1]}, Pair{scale, scale},
                                             Pair{-row.origin, -row.origin});
    const float a = x[0], b = x[1];
    const Pair weight{GcnLanes::exp2(a), GcnLanes::exp2(b)};
    sum = i == 0 ? weight : sum + weight;
    score[i] = weight[0];
    score[i + 1] = weight[1];
  }
  row.sum += sum;
}

}  // namespace tessera::hip::matrix
