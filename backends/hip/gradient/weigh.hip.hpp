#pragma once
// What happens to a tile between products, a lane's numbers of it:
//
//     P = 2^(S − lse)     dS = P∘(dP∘M − δ)     δ = rowsum(dO∘O) − dlse
//
// Element i of a lane stands between what the lane owns, a row or a key, and place
// column_of(i) + Matrix::own_row() of the tile that it walks over, a key or a row.

#include <cstdint>

#include "backends/hip/common/fragment.hip.hpp"
#include "backends/hip/common/opaque.hip.hpp"
#include "backends/hip/gradient/parameters.hpp"
#include "backends/hip/gradient/tile.hip.hpp"

namespace tessera::hip::gradient {

// Of a tile, a lane.
inline constexpr int kScores = kTile * Matrix::kSums / Matrix::kSide;

enum class Owns { Row, Key };

// With respect to what dS is: the score that the softmax sees, or scale·Q·Kᵀ.
enum class Of { Score, Product };

// What is the same for all scores of one (batch, query head).
struct Head {
  Index batch = 0;
  Index head = 0;
  kernel::ScoreModifiers modifiers;
  kernel::DropoutStream dropout;
};

template <bool kGeneral>
TESSERA_DEVICE Head head_of(const kernel::ForwardArguments& a, Index batch, Index head) {
  Head h{batch, head, {}, {}};
  if constexpr (kGeneral) {
    h.modifiers = uniform(kernel::score_modifiers(a, batch, head));
    if (a.dropout.threshold != 0)
      h.dropout = uniform(kernel::dropout_stream(a.dropout, a.head_q, batch, head));
  }
  return h;
}

// Index of a sequence's row 0 among the statistics.
TESSERA_DEVICE Index statistics_at(const kernel::ForwardArguments& a, const kernel::Sequence& s,
                                   Index head) {
  return (s.batch * a.head_q + head) * a.total_q + s.query;
}

// Statistics of the lane's own row.
struct RowOfLane {
  float lse = -kernel::kMinusInfinity;
  float delta = 0;
  TESSERA_DEVICE float lse_of(int) const { return lse; }
  TESSERA_DEVICE float delta_of(int) const { return delta; }
};

// Of the tile's rows, in LDS.
struct RowsOfTile {
  const float* lse;  // from the lane's first row on
  const float* delta;
  TESSERA_DEVICE float lse_of(int i) const { return lse[column_of(i)]; }
  TESSERA_DEVICE float delta_of(int i) const { return delta[column_of(i)]; }
};

// Where the tile lies, and which of its keys the lane's row sees, or which of its rows see the
// lane's key, relative to Matrix::own_row().
struct Place {
  Index row_first = 0;  // of the work-group's rows, or of the tile's
  Index key_first = 0;
  kernel::Interval<int> see{0, kTile};
};

// Where nothing but the mask's geometry touches scores. By selection: a hidden key's weight and
// gradient are 0, whatever the products and the statistics were.
template <bool kMasked, class Rows>
TESSERA_DEVICE void weigh_plain(float (&score)[kScores], float (&gradient)[kScores], float scale,
                                const Rows& rows, const Place& place) {
  TESSERA_UNROLL
  for (int i = 0; i < kScores; ++i) {
    const float p = GcnLanes::exp2(GcnLanes::fma(score[i], scale, -rows.lse_of(i)));
    const float ds = p * (gradient[i] - rows.delta_of(i));
    const bool seen = !kMasked || kernel::holds<GcnLanes>(place.see, column_of(i));
    score[i] = seen ? p : 0.0f;
    gradient[i] = seen ? ds : 0.0f;
  }
}

// Of the lane's row or key and the tile's first key or row; a step along the tile is `step`.
struct Along {
  Index at, step;
};
template <Owns kOwns>
TESSERA_DEVICE Along along(const kernel::ScoreOperand& o, const Head& h, const Place& place) {
  const Index row = place.row_first + (kOwns == Owns::Row ? owned() : 0);
  const Index key = place.key_first + (kOwns == Owns::Key ? owned() : 0);
  return {h.batch * o.batch + h.head * o.head + row * o.row + key * o.column,
          kOwns == Owns::Row ? o.column : o.row};
}

// The score that the softmax sees, in base 2. Nothing is read for a key that is hidden anyhow.
template <class Element, Owns kOwns>
class Modifier {
 public:
  TESSERA_DEVICE Modifier(const kernel::ForwardArguments& a, const kernel::Sequence& s,
                          const Head& h, const Place& place)
      : a_(a),
        h_(h),
        bias_(along<kOwns>(a.bias, h, place)),
        mask_(along<kOwns>(a.boolean_mask, h, place)),
        distance_(kernel::distance_to(s.diagonal, place.row_first, place.key_first)) {}

  TESSERA_DEVICE float operator()(float product, int i, bool seen) const {
    const int walked = own_row_ + column_of(i);
    float bias = 0;
    bool visible = true;
    if (h_.modifiers.bias && seen) {
      const Index at = bias_.at + walked * bias_.step;
      bias = a_.bias_fp32 ? static_cast<const float*>(a_.bias.data)[at]
                          : Element::load(a_.bias.data, at);
    }
    if (h_.modifiers.mask && seen)
      visible = static_cast<const std::uint8_t*>(
                    a_.boolean_mask.data)[mask_.at + walked * mask_.step] != 0;
    const int row = kOwns == Owns::Row ? owned_ : walked;
    const int key = kOwns == Owns::Row ? walked : owned_;
    const float score =
        kernel::modify<GcnLanes>(h_.modifiers, product, distance_, row, key, bias, visible);
    return seen ? score : kernel::kMinusInfinity;
  }

 private:
  const kernel::ForwardArguments& a_;
  const Head& h_;
  const Along bias_, mask_;
  const kernel::TileDistance distance_;
  const int owned_ = anew(owned()), own_row_ = anew(Matrix::own_row());
};

// Bit i says whether dropout keeps element i.
template <Owns kOwns>
TESSERA_DEVICE std::uint32_t kept_of(const Head& h, const Place& place) {
  std::uint32_t bits = 0;
  if constexpr (kOwns == Owns::Row) {
    float ones[kScores];
    TESSERA_UNROLL
    for (float& one : ones) one = 1;
    drop(ones, h.dropout, place.row_first, owned(), place.key_first);
    TESSERA_UNROLL
    for (int i = 0; i < kScores; ++i) bits |= ones[i] != 0 ? 1u << i : 0u;
  } else {
    const int own_row = anew(Matrix::own_row());
    const Index key = place.key_first + anew(owned());
    const auto group = static_cast<std::uint32_t>(key / 8);
    TESSERA_UNROLL
    for (int i = 0; i < kScores; ++i) {
      const std::uint32_t row =
          kernel::dropout_rows<GcnLanes>(place.row_first, own_row + column_of(i));
      std::uint32_t words[4];
      kernel::draw<GcnLanes>(h.dropout, row, group, words);
      // The key's number to the first place: an index that differs between lanes is none.
      const std::uint32_t low = (key & 2) != 0 ? words[1] : words[0];
      const std::uint32_t high = (key & 2) != 0 ? words[3] : words[2];
      words[0] = ((key & 4) != 0 ? high : low) >> (16 * (key & 1));
      bits |= kernel::kept<GcnLanes>(h.dropout, words, 0) ? 1u << i : 0u;
      keep_order();
    }
  }
  return bits;
}
static_assert(kScores <= 32);

// With every option.
template <class Element, Owns kOwns, Of kOf, class Rows>
TESSERA_DEVICE void weigh_general(float (&score)[kScores], float (&gradient)[kScores],
                                  const kernel::ForwardArguments& a, const kernel::Sequence& s,
                                  const Head& h, const Rows& rows, const Place& place) {
  const float keep_scale = a.dropout.keep_scale();
  const std::uint32_t kept = a.dropout.threshold != 0 ? kept_of<kOwns>(h, place) : ~0u;
  const Modifier<Element, kOwns> modifier(a, s, h, place);
  TESSERA_UNROLL
  for (int i = 0; i < kScores; ++i) {
    const float product = score[i];
    const bool seen = kernel::holds<GcnLanes>(place.see, column_of(i));
    const bool keeps = (kept >> i & 1u) != 0;
    const float modified = modifier(product, i, seen);
    const float p = GcnLanes::exp2(modified - rows.lse_of(i));
    float ds = p * ((keeps ? gradient[i] * keep_scale : 0.0f) - rows.delta_of(i));
    if (kOf == Of::Product) ds *= kernel::cap_slope<GcnLanes>(h.modifiers, product);
    const bool hidden = modified == kernel::kMinusInfinity;
    score[i] = hidden || !keeps ? 0.0f : p;
    gradient[i] = hidden ? 0.0f : ds;
    keep_order();
  }
}

// --- Products --------------------------------------------------------------------------------

// A lane's column of tile·ownedᵀ.
template <class Element, class Own>
TESSERA_DEVICE void multiply(float (&product)[kScores], const Own& own, const std::uint16_t* tile) {
  TESSERA_UNROLL
  for (int n = 0; n < kTile / Matrix::kSide; ++n) {
    Matrix::Sums sums = 0;
    own.template multiply<Element>(sums, tile, n * Matrix::kSide);
    TESSERA_UNROLL
    for (int r = 0; r < Matrix::kSums; ++r) product[n * Matrix::kSums + r] = sums[r];
    keep_order();
  }
}

// Numbers of either sign, and NaN whatever its bits, are rounded to nearest.
template <class Element>
struct Signed {
  TESSERA_DEVICE static std::uint32_t pack_weights(float low, float high) {
    return Element::pack(low, high);
  }
};

template <int kBlocks>
TESSERA_DEVICE void clear(Matrix::Sums (&sum)[kBlocks]) {
  TESSERA_UNROLL
  for (Matrix::Sums& part : sum) part = 0;
}

// sum += tileᵀ·factors, the tile transposed in LDS.
template <class Element, int kColumns>
TESSERA_DEVICE void accumulate(Matrix::Sums (&sum)[kColumns / Matrix::kSide],
                               const float (&factor)[kScores], const std::uint16_t* tile) {
  TESSERA_UNROLL
  for (int t = 0; t < kTile / 16; ++t) {
    const Matrix::Operand factors = Matrix::operand_of<Signed<Element>>(factor + 8 * t);
    TESSERA_UNROLL
    for (int m = 0; m < kColumns / Matrix::kSide; ++m) {
      Matrix::multiply<Element>(sum[m], Tile<kColumns>::column_operand(tile, m * Matrix::kSide, t),
                                factors);
      if (kFewRegisters) keep_order();
    }
    keep_order();
  }
}

// --- The end ---------------------------------------------------------------------------------

// A lane's row of a gradient: factor · sum, or 0 where it is not `seen`.
template <class Element, int kColumns>
TESSERA_DEVICE void store_row(const Matrix::Sums (&sum)[kColumns / Matrix::kSide], float factor,
                              bool seen, std::uint16_t* row, Index columns, bool aligned) {
  constexpr int kRun = Matrix::kOwnRow;  // columns of a lane that follow one another
  const int own_row = anew(Matrix::own_row());
  TESSERA_UNROLL
  for (int i = 0; i < kColumns / Matrix::kSide * Matrix::kSums; i += 2) {
    const int m = i / Matrix::kSums, r = i % Matrix::kSums;
    const int column = column_of(i) + own_row;
    if (column >= columns) continue;
    const auto word = [&](int at) {
      return seen ? Element::pack(sum[m][at] * factor, sum[m][at + 1] * factor) : 0u;
    };
    if (kRun >= 4 && aligned) {
      if (r % 4 == 0) *reinterpret_cast<Words2*>(row + column) = Words2{word(r), word(r + 2)};
    } else {
      const std::uint32_t both = word(r);
      row[column] = static_cast<std::uint16_t>(both);
      row[column_of(i + 1) + own_row] = static_cast<std::uint16_t>(both >> 16);
    }
  }
}

}  // namespace tessera::hip::gradient
