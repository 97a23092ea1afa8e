#pragma once
// RDNA: a block of keys and of values in LDS is multiplied while the next one is on its way to
// registers.

#include "backends/hip/matrix/block.hip.hpp"
#include "backends/hip/matrix/rdna_tile.hip.hpp"

namespace tessera::hip::matrix {

template <class Element, class T>
class Walk {
 public:
  using Rows = Block<Element, T>;
  using Scores = typename Rows::Scores;
  using Sums = typename Rows::Sums;
  static constexpr int kNumbers = Padded<T>::kNumbers;  // of LDS

  TESSERA_DEVICE Walk(const Rows& block, std::uint16_t* shared)
      : block_(block), keys_(shared), values_(shared + Padded<T>::kKeyNumbers) {}

  TESSERA_DEVICE void run(const kernel::LoopSplit& loop, Row& state, Sums& out) {
    Index tile = loop.last - 1;
    load(tile);
    for (; tile >= loop.first; --tile)
      step(tile, loop.first, tile < loop.whole_first || tile >= loop.whole_last, state, out);
  }

 private:
  using Keys = KeyTile<T>;
  using Values = ValueTile<T>;

  TESSERA_DEVICE void load(Index tile) {
    const Source keys = block_.keys(tile), values = block_.values(tile);
    if (keys.fast & values.fast) {
      Keys::load(next_keys_, Buffer(keys));
      Values::load(next_values_, Buffer(values));
    } else {
      Keys::load(next_keys_, Scattered(keys));
      Values::load(next_values_, Scattered(values));
    }
  }

  // Sᵀ = K·Qᵀ
  TESSERA_DEVICE void products(Scores& score) const {
    TESSERA_UNROLL
    for (int n = 0; n < T::kKeys / Matrix::kSide; ++n) {
      Matrix::Sums sums = 0;
      TESSERA_UNROLL
      for (int u = 0; u < T::kDim / 16; ++u) {
        Matrix::Operand key;
        TESSERA_UNROLL
        for (int i = 0; i < Matrix::kPieces; ++i)
          put_words(key, i,
                    Keys::read(keys_, n * Matrix::kSide + Matrix::column(),
                               2 * u + Matrix::piece(i) / 8));
        Matrix::template multiply<Element>(sums, key, block_.query(u));
      }
      TESSERA_UNROLL
      for (int r = 0; r < Matrix::kSums; ++r) score[n * Matrix::kSums + r] = sums[r];
      keep_order();
    }
  }

  // Vᵀ of 16 keys, in the order of their weights.
  TESSERA_DEVICE Matrix::Operand values(int m, int t) const {
    Matrix::Operand made;
    TESSERA_UNROLL
    for (int c = 0; c < Matrix::kWords / 2; ++c) {
      const Words2 words = Values::read(values_, m * Matrix::kSide + Matrix::column(),
                                        4 * t + Matrix::value_chunk(c));
      made.word[2 * c] = words[0];
      made.word[2 * c + 1] = words[1];
    }
    return made;
  }

  // Oᵀ += Vᵀ·Pᵀ
  TESSERA_DEVICE void accumulate(const Scores& weight, Sums& out) const {
    TESSERA_UNROLL
    for (int t = 0; t < T::kKeys / 16; ++t) {
      const Matrix::Operand weights = Matrix::template operand_of<Element>(weight + 8 * t);
      TESSERA_UNROLL
      for (int m = 0; m < T::kColumns; ++m)
        Matrix::template multiply<Element>(out[m], values(m, t), weights);
      keep_order();
    }
  }

  // The same with the block's products rounded to fp16, if `rounds`.
  TESSERA_DEVICE void accumulate_apart(const Scores& weight, bool rounds, Sums& out) const {
    Matrix::Operand weights[T::kKeys / 16];
    TESSERA_UNROLL
    for (int t = 0; t < T::kKeys / 16; ++t)
      weights[t] = Matrix::template operand_of<Element>(weight + 8 * t);
    TESSERA_UNROLL
    for (int m = 0; m < T::kColumns; ++m) {
      Matrix::Sums sums = 0;
      TESSERA_UNROLL
      for (int t = 0; t < T::kKeys / 16; ++t)
        Matrix::template multiply<Element>(sums, values(m, t), weights[t]);
      TESSERA_UNROLL
      for (int r = 0; r < Matrix::kSums; ++r)
        out[m][r] += rounds ? Element::rounded(sums[r]) : sums[r];
      keep_order();
    }
  }

  TESSERA_DEVICE void step(Index tile, Index first, bool masked, Row& state, Sums& out) {
    barrier();  // nobody reads the block of before any more
    Keys::store(next_keys_, keys_);
    Values::store(next_values_, values_);
    barrier();
    if (tile > first) load(tile - 1);
    Scores score;
    products(score);
    block_.modify(score, tile);
    if (masked) block_.hide(score, tile);
    float factor;
    if (advance<Element>(score, state, block_.scale(), factor)) {
      TESSERA_UNROLL
      for (int m = 0; m < T::kColumns; ++m) out[m] *= factor;
    }
    weigh(score, state, block_.scale());
    keep_order();
    block_.drop(score, tile);
    if constexpr (Rows::kRounds) {
      // Where registers are short there is one way for both.
      if (block_.rounds() || T::kDimV > 192) return accumulate_apart(score, block_.rounds(), out);
    }
    accumulate(score, out);
  }

  const Rows& block_;
  std::uint16_t *const keys_, *const values_;  // in LDS
  typename Keys::Registers next_keys_;
  typename Values::Registers next_values_;
};

}  // namespace tessera::hip::matrix
