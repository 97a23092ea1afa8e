#pragma once
// Scores and weights of a tile: a few query rows of one head against the keys they see. double is
// the reference, float the plain computation.

#include <cstdint>
#include <vector>

#include "reference/call.hpp"
#include "reference/multiply.hpp"

namespace tessera::reference {

// Rows [first, first + count) of a sequence.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// The sequence's rows in tiles that keep a tile's scores in cache. Independent of the number of
// threads.
std::vector<RowRange> row_tiles(const Sequence& sequence);

// All keys (transposed: [dim][keys]) of one sequence and key head.
template <class Real>
Panel<Real> pack_keys_transposed(const ConstTensor& tensor, const Sequence& sequence,
                                 std::int64_t head);
// [keys][dim].
template <class Real>
Panel<Real> pack_keys(const ConstTensor& tensor, const Sequence& sequence, std::int64_t head);

// What happened to a row before its weights.
template <class Real>
struct RowStatistics {
  Interval visible;   // by mask and ranges
  bool empty = true;  // nothing is visible: no weight, output 0
  Real lse = 0;       // sink included
  Real numerator =
      0;  // softmax = exp(score − maximum) · numerator / denominator, dropout not included;
  Real denominator =
      1;          // without a sink the numerator is 1 and the denominator Σ exp(score − maximum)
  Real sink = 0;  // softmax weight of the sink
  double magnitude = 0;  // scale · max over visible keys of Σ|q||k|
};

// Scores, then weights, of a tile. Column c of the arrays is key `origin` + c; rows are `width`
// apart.
template <class Real>
struct ScoreTile {
  // Fills everything for rows `range` of query head `head`. `magnitudes`: also
  // RowStatistics::magnitude. `derivative`: also `capped`.
  void compute(const Call& call, const Sequence& sequence, std::int64_t head, RowRange range,
               const Panel<Real>& keys_transposed, bool magnitudes, bool derivative);

  Real* weights(std::int64_t row) { return weight.data() + row * width; }
  const std::uint8_t* seen_row(std::int64_t row) const { return seen.data() + row * width; }

  RowRange range;
  std::int64_t origin = 0;  // a multiple of kLanes
  std::int64_t width = 0;   // a multiple of kLanes; 0 if no row sees anything
  Interval keys;            // hull of what the rows see
  std::vector<RowStatistics<Real>> rows;
  std::vector<Real> weight;  // exp(score − maximum) where visible and the row is not empty, else 0
  std::vector<std::uint8_t> seen;  // is the key visible, boolean mask and bias −∞ included
  std::vector<Real> keep;          // dropout: 1 or 0; empty if there is no dropout
  std::vector<Real>
      capped;  // derivative of the softcap; empty if not wanted or there is no softcap

 private:
  void modify(const Call& call, const Sequence& sequence, std::int64_t head, std::int64_t row,
              bool derivative);
  void exponentiate(const Call& call, const Sequence& sequence, std::int64_t head,
                    std::int64_t row);

  std::vector<Real> query_, absolute_query_, absolute_score_, line_;
};

// c[r][·] (+)= Σ_k a[r][k]·b[first + k][·] over k in [0, inner) with seen[r][k]: what is not seen
// does not count even if b is NaN there. Strides as in Product; `seen` has a's strides. Where
// absolute_c is given, also magnitudes.
template <class Real>
void multiply_seen(const Product<Real>& product, const Panel<Real>& b, std::int64_t first,
                   const std::uint8_t* seen);

}  // namespace tessera::reference
