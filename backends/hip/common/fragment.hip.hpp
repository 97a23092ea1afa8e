#pragma once
// Scores and outputs as a lane of Matrix's sums holds them, transposed: a lane has one query, and
// of every kSide keys (or columns of the output) those of its half.
//
//     element i of a lane      key column_of(i) + Matrix::own_row()
//
// What happens to them is core/kernel's: mask, modifiers, online softmax, dropout.

#include <cstdint>

#include "backends/hip/common/matrix.hip.hpp"
#include "core/kernel/arguments.hpp"
#include "core/kernel/mask.hpp"
#include "core/kernel/modifiers.hpp"
#include "core/kernel/philox.hpp"
#include "core/kernel/sequence.hpp"
#include "core/kernel/softmax.hpp"

namespace tessera::hip {

using kernel::Index;

constexpr int column_of(int i) {
  return i / Matrix::kSums * Matrix::kSide + Matrix::row_of(i % Matrix::kSums);
}

// --- Mask ------------------------------------------------------------------------------------

// Hides what the lane's row, which is the tile's row `row`, does not see.
template <int kCount>
TESSERA_DEVICE void hide(float (&score)[kCount], const kernel::TileBand& band, int row) {
  const int own = Matrix::own_row();
  const kernel::Interval<int> all = band.row<GcnLanes>(row);
  const kernel::Interval<int> see{all.begin - own, all.end - own};
  TESSERA_UNROLL
  for (int i = 0; i < kCount; ++i) score[i] = kernel::hide<GcnLanes>(score[i], see, column_of(i));
}

// --- Modifiers -------------------------------------------------------------------------------

// Bias and boolean mask of the lane's row, from the tile's first key on.
struct ScoreData {
  const unsigned char* bias = nullptr;
  const std::uint8_t* mask = nullptr;
  int bias_column = 0, mask_column = 0;  // strides, elements
  bool bias_fp32 = true;
  Index keys = 0;  // of the tile that exist, at least one
};

// `exists`: is the row one of the sequence's, below query_end? Else some row that exists is read.
template <class Element>
TESSERA_DEVICE ScoreData score_data(const kernel::ForwardArguments& a, Index batch, Index head,
                                    Index row, Index key, Index keys, bool exists) {
  const auto at = [&](const kernel::ScoreOperand& of) {
    return batch * of.batch + head * of.head + (exists ? row : 0) * of.row + key * of.column;
  };
  ScoreData d;
  d.bias = static_cast<const unsigned char*>(a.bias.data) + at(a.bias) * (a.bias_fp32 ? 4 : 2);
  d.mask = static_cast<const std::uint8_t*>(a.boolean_mask.data) + at(a.boolean_mask);
  d.bias_column = static_cast<int>(a.bias.column);
  d.mask_column = static_cast<int>(a.boolean_mask.column);
  d.bias_fp32 = a.bias_fp32;
  d.keys = keys;
  return d;
}

// The same from a later key on.
template <class Element>
TESSERA_DEVICE ScoreData from_key(ScoreData d, Index key) {
  d.bias += key * d.bias_column * (d.bias_fp32 ? 4 : 2);
  d.mask += key * d.mask_column;
  d.keys -= key;
  return d;
}

// Products to scores in base 2: kernel::modify, step by step for all of a lane's scores, so that
// what is off costs one branch, and none of the lanes' own.
template <class Element, int kCount>
TESSERA_DEVICE void modify(float (&score)[kCount], const kernel::ScoreModifiers& m,
                           const kernel::TileDistance& distance, const ScoreData& data, int row) {
  const int own = Matrix::own_row();
  // Keys that do not exist are hidden later: the tile's first one stands for them.
  const int keys = static_cast<int>(kernel::smaller(data.keys, 1 << 20));
  const auto column = [&](int i) {
    const int at = own + column_of(i);
    return at < keys ? at : 0;
  };
  TESSERA_UNROLL
  for (float& x : score) {
    x = kernel::scale_and_cap<GcnLanes>(m, x);
    if (m.softcap != 0) keep_order();
  }
  if (m.alibi) {
    TESSERA_UNROLL
    for (int i = 0; i < kCount; ++i)
      score[i] = kernel::add_alibi<GcnLanes>(
          score[i], m.alibi_slope, kernel::distance<GcnLanes>(distance, row, own + column_of(i)));
  }
  if (m.bias) {
    float bias[kCount];
    if (data.bias_fp32) {
      TESSERA_UNROLL
      for (int i = 0; i < kCount; ++i)
        bias[i] = reinterpret_cast<const float*>(data.bias)[column(i) * data.bias_column];
    } else {
      TESSERA_UNROLL
      for (int i = 0; i < kCount; ++i)
        bias[i] = Element::load(data.bias, column(i) * data.bias_column);
    }
    TESSERA_UNROLL
    for (int i = 0; i < kCount; ++i) score[i] = kernel::add_bias<GcnLanes>(score[i], bias[i]);
  }
  if (m.mask) {
    TESSERA_UNROLL
    for (int i = 0; i < kCount; ++i) {
      const bool visible = data.mask[column(i) * data.mask_column] != 0;
      score[i] = GcnLanes::select(visible, score[i], kernel::kMinusInfinity);
    }
  }
}

// --- Online softmax --------------------------------------------------------------------------

// The lane's row. `max` is of scores before `scale` multiplies them, and the same in both halves;
// `sum` is of the lane's own keys until `finish`.
struct Row {
  float max = kernel::kMinusInfinity;
  float sum = 0;
};

template <int kCount>
TESSERA_DEVICE float largest(const float (&score)[kCount]) {
  float a = score[0], b = score[1];
  TESSERA_UNROLL
  for (int i = 2; i < kCount; i += 2) {
    a = larger(a, score[i]);
    b = larger(b, score[i + 1]);
  }
  return larger(a, b);
}

// Moves the wave's rows to the maxima of these scores, if one of them has risen by more than kRise;
// returns whether it did: then O must be scaled by `factor`. A score times `scale`, which is
// positive, is in base 2. NaN never counts as risen: it shows in the weights.
template <class Element, int kCount>
TESSERA_DEVICE bool advance(const float (&score)[kCount], Row& row, float scale, float& factor) {
  const float max = largest(score);
  if (!any((max - row.max) * scale > Element::kRise)) return false;
  const float next = larger(larger(max, other_half(max)), row.max);
  factor = kernel::scaled_factor<GcnLanes>(row.max, next, scale);
  row.max = next;
  row.sum *= factor;
  return true;
}

// Scores to weights, which are added to the sum.
template <int kCount>
TESSERA_DEVICE void weigh(float (&score)[kCount], Row& row, float scale) {
  float origin = kernel::scaled_origin<GcnLanes>(row.max, scale);
  if (any(__builtin_fabsf(origin) > kernel::kFusedLimit)) {
    TESSERA_UNROLL
    for (int i = 0; i < kCount; ++i) score[i] -= kernel::origin<GcnLanes>(row.max);
    origin = 0;
  }
  float sum[4] = {0, 0, 0, 0};
  TESSERA_UNROLL
  for (int i = 0; i < kCount; ++i) {
    score[i] = GcnLanes::exp2(GcnLanes::fma(score[i], scale, -origin));
    sum[i & 3] += score[i];
  }
  row.sum += (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Weights that are dropped become 0, after the sum has counted them. The tile's first key is a
// multiple of 8.
template <int kCount>
TESSERA_DEVICE void drop(float (&weight)[kCount], const kernel::DropoutStream& stream,
                         Index row_first, int row, Index key_first) {
  constexpr int kOwn = Matrix::kOwnRow;
  const std::uint32_t rows = kernel::dropout_rows<GcnLanes>(row_first, row);
  const std::uint32_t own_group = kOwn == 8 ? static_cast<std::uint32_t>(half()) : 0u;
  std::uint32_t words[4] = {};
  TESSERA_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const int column = column_of(i);
    if (i == 0 || column / 8 != column_of(i - 1) / 8) {
      kernel::draw<GcnLanes>(
          stream, rows, static_cast<std::uint32_t>(key_first / 8 + column / 8) + own_group, words);
      if (kOwn == 4 && half() == 1) {
        words[0] = words[2];
        words[1] = words[3];
      }
      if (kOwn == 1 && half() == 1) {
        TESSERA_UNROLL
        for (std::uint32_t& word : words) word >>= 16;
      }
      keep_order();
    }
    if (!kernel::kept<GcnLanes>(stream, words, static_cast<std::uint32_t>(column % 8)))
      weight[i] = 0;
  }
}

// --- The end ---------------------------------------------------------------------------------

// What the lane's row is divided by, and its lse.
struct Finished {
  float factor;  // of O; 0 also for a row that saw nothing
  bool seen;     // else its output is 0, whatever its O
  float lse;
};

// `live`: is the row below query_end? `sink` in natural units, −∞ for none.
TESSERA_DEVICE Finished finish(const Row& row, float scale, bool live, float sink,
                               const kernel::Dropout& dropout) {
  kernel::SoftmaxState<float> state{row.max * scale, row.sum + other_half(row.sum)};
  if (!live) state = kernel::empty_state<GcnLanes>();
  Finished f;
  f.seen = state.sum != 0.0f && dropout.threshold < 65536u;
  f.factor = dropout.keep_scale();
  if (sink != kernel::kMinusInfinity && live)
    f.factor *= kernel::add_sink<GcnLanes>(state, kernel::to_base2<GcnLanes>(sink));
  f.factor *= kernel::inverse_sum<GcnLanes>(state);
  f.lse = kernel::log_sum_exp(state.max, state.sum);
  return f;
}

}  // namespace tessera::hip
