#pragma once
// Keys and values as operands of matrix products, from memory straight to registers: each is used
// once, by one wave.
//
//     Sᵀ = K·Qᵀ      a lane reads a key's numbers as the product wants them, 16 bytes at a time
//     Oᵀ = Vᵀ·Pᵀ     a lane owns neighbouring columns of values, of each of its keys a word or more
//
// A product's row of Vᵀ may be any column of V, as long as the output knows: row i of product m of
// a strip is column kOwn·i + m of it. So a wave reads whole lines, and transposes in its registers.

#include <cstdint>

#include "backends/hip/common/fragment.hip.hpp"
#include "backends/hip/decode/source.hip.hpp"

namespace tessera::hip::decode {

inline constexpr int kKeys = Matrix::kSide;  // of a wave's tile

// Numbers of a tile's keys, and columns of its values, on their way at the same time: as many as
// there are registers for beside the output.
inline constexpr int kMostStrip = TESSERA_HIP_CDNA ? 128 : Matrix::kPieces == 1 ? 64 : 32;

template <class S>
inline constexpr int kStrip = S::kDim < kMostStrip ? S::kDim : kMostStrip;

TESSERA_DEVICE void put(Words<Matrix::kWords>& words, int piece, Words4 from) {
  TESSERA_UNROLL
  for (int w = 0; w < 4; ++w) words[4 * piece + w] = from[w];
}
TESSERA_DEVICE Matrix::Operand operand_of(Words<Matrix::kWords> words) {
  return __builtin_bit_cast(Matrix::Operand, words);
}

template <int kWidth>
struct KeyStrip {
  static constexpr int kSteps = kWidth / 16;
  Words<Matrix::kWords> word[kSteps];

  template <class From>
  TESSERA_DEVICE void load(const From& from, int strip) {
    const int row = anew(Matrix::column()), first = anew(strip * kWidth + Matrix::piece(0));
    TESSERA_UNROLL
    for (int u = 0; u < kSteps; ++u) {
      TESSERA_UNROLL
      for (int i = 0; i < Matrix::kPieces; ++i)
        put(word[u], i, from.template load<4>(row, first + 16 * u + 8 * i));
    }
  }
  TESSERA_DEVICE Matrix::Operand operand(int u) const { return operand_of(word[u]); }
};

template <int kWidth>
struct ValueStrip {
  static constexpr int kOwn = kWidth / Matrix::kSide;  // columns of a lane
  static constexpr int kSteps = kKeys / 16;
  static constexpr int kChunks = Matrix::kWords / 2;           // of four keys, in a step
  static constexpr int kChunkStep = TESSERA_HIP_CDNA ? 2 : 1;  // of Matrix::value_chunk
  static constexpr int kWords = kOwn / 2;
  static_assert(kWords == 1 || kWords == 2 || kWords == 4);
  Words<kWords> word[kSteps][kChunks][4];

  template <class From>
  TESSERA_DEVICE void load(const From& from, int strip) {
    const int column = anew(strip * kWidth + kOwn * Matrix::column());
    const int chunk = anew(Matrix::value_chunk(0));
    TESSERA_UNROLL
    for (int t = 0; t < kSteps; ++t) {
      TESSERA_UNROLL
      for (int c = 0; c < kChunks; ++c) {
        TESSERA_UNROLL
        for (int key = 0; key < 4; ++key)
          word[t][c][key] =
              from.template load<kWords>(16 * t + 4 * (chunk + c * kChunkStep) + key, column);
      }
    }
  }

  // Product m's: the lane's m-th column, of 16 keys.
  TESSERA_DEVICE Matrix::Operand operand(int m, int t) const {
    Matrix::Operand made;
    TESSERA_UNROLL
    for (int c = 0; c < kChunks; ++c) {
      TESSERA_UNROLL
      for (int w = 0; w < 2; ++w)
        made.word[2 * c + w] =
            __builtin_amdgcn_perm(word[t][c][2 * w + 1][m / 2], word[t][c][2 * w][m / 2],
                                  m % 2 == 0 ? 0x05040100u : 0x07060302u);
    }
    return made;
  }
};

}  // namespace tessera::hip::decode
