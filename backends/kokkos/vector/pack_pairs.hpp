#pragma once
// As pack.hpp, for units that multiply pairs of bf16 numbers: blocks hold words of two, see
// products.hpp.

#include "backends/kokkos/vector/pack.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

// Eight words of a row; those from `left` numbers on, a multiple of 8, are 0 and are not read.
TESSERA_FN Float8 load_words(const Bf16* p, Index left) {
  if (left >= 16) return load_as<Float8>(p);
  if (left < 8) return Float8{};
  const Float4 low = load_as<Float4>(p);
  return __builtin_shufflevector(low, Float4{}, 0, 1, 2, 3, 4, 5, 6, 7);
}

// Words of eight columns from two rows of bf16 numbers, loaded as fp32.
TESSERA_FN Float8 join(Float8 first, Float8 second) {
  return reinterpret_cast<Float8>((reinterpret_cast<Bits8>(first) >> 16) |
                                  reinterpret_cast<Bits8>(second));
}

// Eight rows from `first` on, eight words from `column` on, transposed. Rows outside [from, to) are
// 0 and are not read.
TESSERA_FN void load_words_transposed(const Rows<Bf16>& source, Index first, Index from, Index to,
                                      Index column, Index columns, Float8 (&block)[8]) {
  TESSERA_UNROLL
  for (int i = 0; i < 8; ++i) {
    const Index row = first + i;
    block[i] =
        from <= row && row < to ? load_words(source[row] + column, columns - column) : Float8{};
  }
  transpose8(block);
}

// panel[word][lane], as pack_panel; not scaled.
TESSERA_FN void pack_panel_pairs(const Rows<Bf16>& source, Index count, Index columns, Index lanes,
                                 float* panel) {
  const Index words = round_up(columns, kColumns) / kPair;
  for (Index lane = 0; lane < lanes; lane += 8) {
    for (Index word = 0; word < words; word += 8) {
      Float8 block[8];
      load_words_transposed(source, lane, 0, count, word * kPair, columns, block);
      TESSERA_UNROLL
      for (int i = 0; i < 8; ++i) store_as(panel + (word + i) * lanes + lane, block[i]);
    }
  }
}

// block[group][word][key of the group]; for tiles block[group][words / 16][key][16]. Padded with
// zeros to whole groups.
TESSERA_FN void pack_key_pairs(const Rows<Bf16>& source, Index from, Index to, Index columns,
                               float* block) {
  const Index words = round_up(columns, kColumns) / kPair;
  for (Index key = 0; key < to; key += kGroup) {
    float* group = block + key * words;
#if defined(TESSERA_VECTOR_AMX)
    for (Index word = 0; word < words; word += 8) {
      float* tile = group + word / 16 * 16 * kGroup + word % 16;
      for (Index row = 0; row < kGroup; ++row) {
        const bool there = from <= key + row && key + row < to;
        store_as(tile + row * 16,
                 there ? load_words(source[key + row] + word * kPair, columns - word * kPair)
                       : Float8{});
      }
    }
#else
    for (Index word = 0; word < words; word += 8) {
      Float8 tile[8];
      load_words_transposed(source, key, from, to, word * kPair, columns, tile);
      TESSERA_UNROLL
      for (int i = 0; i < 8; ++i) store_as(group + (word + i) * kGroup, tile[i]);
    }
#endif
  }
}

// block[group][pair of keys][column of the group]; for tiles block[group][keys / 32][column][16
// pairs of keys]. Padded with zeros to whole steps of keys and whole groups of columns.
TESSERA_FN void pack_value_pairs(const Rows<Bf16>& source, Index from, Index to, Index columns,
                                 Index capacity, float* block) {
  const auto words_of = [&](Index key, Index column) {
    const auto row = [&](Index k) {
      return from <= k && k < to && column < columns ? load8(source[k] + column) : Float8{};
    };
    return join(row(key), row(key + 1));
  };
  for (Index column = 0; column < columns; column += kGroup) {
    float* group = block + column * (capacity / kPair);
    for (Index key = 0; key < to; key += kStep) {
#if defined(TESSERA_VECTOR_AMX)
      for (int quarter = 0; quarter < 4; ++quarter) {
        const Index c = quarter / 2 * 8, word = quarter % 2 * 8;
        Float8 tile[8];
        TESSERA_UNROLL
        for (int i = 0; i < 8; ++i) tile[i] = words_of(key + (word + i) * kPair, column + c);
        transpose8(tile);
        TESSERA_UNROLL
        for (int i = 0; i < 8; ++i)
          store_as(group + key / kPair * kGroup + (c + i) * 16 + word, tile[i]);
      }
#else
      store_as(group + key / kPair * kGroup, words_of(key, column));
#endif
    }
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
