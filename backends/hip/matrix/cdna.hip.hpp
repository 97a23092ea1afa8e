#pragma once
// CDNA: two groups of waves take turns at the matrix units. While one multiplies, the other makes
// weights of scores and brings keys and values to LDS; a barrier ends each turn. A step is two
// turns: it weighs the scores of a tile n, then multiplies its weights and the next tile's keys,
//
//     turn          2n             2n + 1           2n + 2           2n + 3
//     group 0       weigh n        multiply n       weigh n + 1      multiply n + 1
//     group 1       multiply n-1   weigh n          multiply n       weigh n + 1
//
// where multiply n is  Oᵀ += Vᵀ·Pᵀ  of tile n and  Sᵀ = K·Qᵀ  of tile n + 1. The values and keys
// that it reads, buffer n, must be in LDS by the end of turn 2n and are read until the end of turn
// 2n + 2: a wave of group g finishes buffer n + g while it weighs n, and starts what comes after.
// Kernels of four waves are group 0 alone.

#include "backends/hip/matrix/block.hip.hpp"
#include "backends/hip/matrix/softmax.hip.hpp"
#if defined(__gfx950__)
#include "backends/hip/matrix/cdna_direct.hip.hpp"
#else
#include "backends/hip/matrix/cdna_registers.hip.hpp"
#endif

namespace tessera::hip::matrix {

template <class Element, class T>
class Walk {
 public:
  using Rows = Block<Element, T>;
  using Scores = typename Rows::Scores;
  using Sums = typename Rows::Sums;
  static constexpr int kNumbers = Staging<T>::kBuffers * Staging<T>::kBuffer / 2;  // of LDS

  TESSERA_DEVICE Walk(const Rows& block, std::uint16_t* shared)
      : block_(block),
        turn_(kTakesTurns ? wave() / 4 : 0),
        scale_(block.scale()),
        staging_(shared, block.keys(0), block.values(0)),
        operands_(shared) {
    operands_.go_to(from_);
  }

  TESSERA_DEVICE void run(const kernel::LoopSplit& loop, Row& state, Sums& out) {
    first_ = loop.first;
    const auto above_first = [&](Index tile) {  // scalar units compare 32 bits
      return static_cast<int>(kernel::smaller(tile - first_, kManyTiles));
    };
    const int whole_first = above_first(loop.whole_first);
    const int whole_last = above_first(loop.whole_last);
    // Steady steps start tiles up to three on, all of whose rows must be there.
    const int steady_first = block_.fast() ? (whole_first > 3 ? whole_first : 3) : kManyTiles;
    int tile = above_first(loop.last) - 1;
    begin(tile, out);
    for (;;) {
      if constexpr (!Rows::kGeneral) {
        Source next_keys = keys(tile - 2 - turn_), next_values = values(tile - 1 - turn_);
        // One condition: a loop of several ends keeps its registers in several places.
        for (; (tile >= steady_first) & (tile < whole_last) & calm_; --tile) {
          steady_step(next_keys, next_values, out);
          next_keys.first -= T::kKeys * next_keys.stride;
          next_values.first -= T::kKeys * next_values.stride;
        }
      }
      make_weights(tile, tile < whole_first || tile >= whole_last, out);
      multiply_values(out);
      if (tile-- == 0) break;
      multiply<kValues, kProducts>(out);
      barrier();
      vote();
    }
    if (kTakesTurns && turn_ == 0) barrier();
    state = row_.row();
  }

 private:
  static constexpr bool kTakesTurns = T::kWaves == 8;
  static constexpr int kLast = (Staging<T>::kBuffers - 1) * Staging<T>::kBuffer;
  static constexpr int kManyTiles = 1 << 30;  // of so many keys there is no memory

  TESSERA_DEVICE Source keys(int tile) const { return block_.keys(first_ + tile); }
  TESSERA_DEVICE Source values(int tile) const { return block_.values(first_ + tile); }

  TESSERA_DEVICE void begin(int tile, Sums& out) {
    if (block_.fast()) {
      staging_.first(Buffer(keys(tile)));
    } else {
      staging_.first(Scattered(keys(tile)));
    }
    start(tile, [&](const auto& k, const auto& v) { staging_.start(k, v); });
    barrier();
    if (turn_ == 1) {
      stage(tile - 1);
      barrier();
    }
    multiply<kValues, kProducts>(out);
    barrier();
    vote();
  }

  // Values of a tile, and keys of the one that comes after it.
  template <class Take>
  TESSERA_DEVICE void start(int tile, Take take) const {
    Source k = keys(tile - 1);
    if (tile == 0) k.begin = k.end = 0;
    if (block_.fast()) {
      take(Buffer(k), Buffer(values(tile)));
    } else {
      take(Scattered(k), Scattered(values(tile)));
    }
  }
  TESSERA_DEVICE void stage(int tile) {
    if (tile >= 0) {
      start(tile, [&](const auto& k, const auto& v) { staging_.turn(k, v); });
    } else {
      staging_.finish();
    }
  }

  // Of a tile that all rows see, where nothing modifies scores, no maximum rises and none is large:
  // no branch.
  TESSERA_DEVICE void steady_step(const Source& next_keys, const Source& next_values, Sums& out) {
    staging_.turn_whole(next_keys, next_values);
    Scores score;
    get(score);
    weigh(score, row_, scale_);
    pack_weights(score);
    barrier();
    multiply<0, kProducts>(out);
    barrier();
    vote();
  }

  // Weights of any tile, before the turn that multiplies them.
  TESSERA_DEVICE void make_weights(int tile, bool masked, Sums& out) {
    stage(tile - 1 - turn_);
    keep_order();
    Scores score;
    get(score);
    block_.modify(score, first_ + tile);
    if (masked) block_.hide(score, first_ + tile);
    keep_order();
    // Scaled always: a branch around it takes registers for a second O.
    const float factor = rises(score, row_) ? raise<Element>(score, row_, scale_) : 1.0f;
    TESSERA_UNROLL
    for (int m = 0; m < T::kColumns; ++m) out[m] *= factor;
    keep_order();
    if (row_.large) subtract_maximum(score, row_);
    weigh(score, row_, scale_);
    block_.drop(score, first_ + tile);
    pack_weights(score);
    barrier();
  }

  // Of the scores that were made last.
  TESSERA_DEVICE void vote() {
    if (Rows::kGeneral) return;  // they are products still
    Scores score;
    get(score);
    calm_ = !rises(score, row_) & !row_.large;
  }
  TESSERA_DEVICE void get(Scores& score) const {
    TESSERA_UNROLL
    for (int i = 0; i < T::kScores; ++i) score[i] = score_[i / Matrix::kSums][i % Matrix::kSums];
  }

  // The next buffer's.
  TESSERA_DEVICE void pack_weights(const Scores& score) {
    TESSERA_UNROLL
    for (int t = 0; t < kWeights; ++t)
      weights_[t] = Matrix::template operand_of<Element>(score + 8 * t);
    from_ = from_ == kLast ? 0 : from_ + Staging<T>::kBuffer;
    operands_.go_to(from_);
  }

  // The products of a turn, one for each operand that is read: [0, kValues) make Oᵀ += Vᵀ·Pᵀ of
  // tile n, [kValues, kProducts) Sᵀ = K·Qᵀ of tile n + 1.
  static constexpr int kBlocks = T::kKeys / Matrix::kSide;
  static constexpr int kWeights = T::kKeys / 16;
  static constexpr int kValues = kWeights * T::kColumns;
  static constexpr int kProducts = kValues + kBlocks * T::kDim / 16;

  TESSERA_DEVICE Matrix::Operand operand(int i) const {
    if (i < kValues) return operands_.value(i % T::kColumns, i / T::kColumns);
    return operands_.key((i - kValues) % kBlocks, (i - kValues) / kBlocks);
  }

  TESSERA_DEVICE void multiply_values(Sums& out) {
    if (multiplies_apart()) {
      accumulate_apart(out);
    } else {
      multiply<0, kValues>(out);
    }
  }

  // In this order, with the next operands on their way.
  template <int kBegin, int kEnd>
  TESSERA_DEVICE void multiply(Sums& out) {
    constexpr int kAhead = 4;
    Matrix::Operand ahead[kAhead];
    if (kEnd > kValues) {
      TESSERA_UNROLL
      for (Matrix::Sums& score : score_) score = 0;
    }
    set_priority<1>();
    TESSERA_UNROLL
    for (int i = kBegin; i < kBegin + kAhead; ++i) ahead[i % kAhead] = operand(i);
    keep_order();
    TESSERA_UNROLL
    for (int i = kBegin; i < kEnd; ++i) {
      const Matrix::Operand& a = ahead[i % kAhead];
      if (i < kValues) {
        Matrix::template multiply<Element>(out[i % T::kColumns], a, weights_[i / T::kColumns]);
      } else {
        const int k = i - kValues;
        Matrix::template multiply<Element>(score_[k % kBlocks], a, block_.query(k / kBlocks));
      }
      if (i + kAhead < kEnd) ahead[i % kAhead] = operand(i + kAhead);
      keep_order();
    }
    set_priority<0>();
  }

  // Accumulate::fp16 rounds a tile's products before it adds them. Where registers are short this
  // is the way for all.
  TESSERA_DEVICE bool multiplies_apart() const {
    return Rows::kRounds && (T::kDimV > 192 || block_.rounds());
  }
  TESSERA_DEVICE void accumulate_apart(Sums& out) const {
    if constexpr (Rows::kRounds) {
      const bool rounds = block_.rounds();
      TESSERA_UNROLL
      for (int m = 0; m < T::kColumns; ++m) {
        Matrix::Sums sums = 0;
        TESSERA_UNROLL
        for (int t = 0; t < kWeights; ++t)
          Matrix::template multiply<Element>(sums, operands_.value(m, t), weights_[t]);
        TESSERA_UNROLL
        for (int r = 0; r < Matrix::kSums; ++r)
          out[m][r] += rounds ? Element::rounded(sums[r]) : sums[r];
        keep_order();
      }
    }
  }

  const Rows& block_;
  const int turn_;  // the group that the wave is of
  const float scale_;
  Staging<T> staging_;
  Index first_ = 0;   // tile: others are told relative to it
  int from_ = kLast;  // the buffer that is read
  Operands<T> operands_;
  LazyRow row_;
  bool calm_ = false;  // no maximum rises, nor is one large
  Matrix::Sums score_[kBlocks];
  Matrix::Operand weights_[kWeights];
};

}  // namespace tessera::hip::matrix
