#pragma once
// Copies between tensors in memory and the fp32 blocks that the kernel computes on. This is where
// element types, strides and tails are absorbed: behind it every block is dense, padded with zeros,
// and in the order in which it is read.

#include "backends/kokkos/vector/products.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

// Rows of a source, `stride` elements apart; elements of a row are neighbours.
template <class T>
struct Rows {
  const T* data;
  Index stride;

  TESSERA_FN const T* operator[](Index row) const { return data + row * stride; }
  // Eight numbers from `column` on.
  TESSERA_FN Float8 at(Index row, Index column) const {
    return load8(data + row * stride + column);
  }
};

// Rows of one number each.
template <class T>
struct RepeatedRows {
  const T* data;
  Index stride;

  TESSERA_FN Float8 at(Index row, Index) const { return load1(data + row * stride) - Float8{}; }
};

template <class T, class Void>
TESSERA_FN Rows<T> rows_of(const kernel::Operand<Void>& operand, Index batch, Index head,
                           Index first) {
  return {static_cast<const T*>(operand.data) + batch * operand.batch + head * operand.head +
              first * operand.seq,
          operand.seq};
}

// Eight rows from `first` on, columns [column, column + 8), transposed: block[c] holds column c of
// the rows. Rows outside [from, to) are 0 and are not read.
template <class Source>
TESSERA_FN void load_transposed(const Source& source, Index first, Index from, Index to,
                                Index column, Float8 (&block)[8]) {
  if (from <= first && first + 8 <= to) {
    TESSERA_UNROLL
    for (int i = 0; i < 8; ++i) block[i] = source.at(first + i, column);
  } else {
    TESSERA_UNROLL
    for (int i = 0; i < 8; ++i) {
      const Index row = first + i;
      block[i] = from <= row && row < to ? source.at(row, column) : Float8{};
    }
  }
  transpose8(block);
}

// Stores eight lanes, or the first four where a panel of registers of four ends.
TESSERA_FN void store_lanes(float* p, Float8 v, Index left) {
  if (kWidth >= 8 || left >= 8) {
    store_as(p, v);
  } else {
    store_as(p, Float4(__builtin_shufflevector(v, v, 0, 1, 2, 3)));
  }
}

// panel[column][lane] = source[row = lane][column] · scale for `count` rows and `columns` (a
// multiple of 8) columns; lanes from count to `lanes` (a multiple of kWidth) are 0.
template <class Source>
TESSERA_FN void pack_panel(const Source& source, Index count, Index columns, float scale,
                           Index lanes, float* panel) {
  for (Index lane = 0; lane < lanes; lane += 8) {
    for (Index column = 0; column < columns; column += 8) {
      Float8 block[8];
      load_transposed(source, lane, 0, count, column, block);
      TESSERA_UNROLL
      for (int i = 0; i < 8; ++i) {
        store_lanes(panel + (column + i) * lanes + lane, block[i] * scale, lanes - lane);
      }
    }
  }
}

// As pack_panel, for a source [row][column] with any strides and any number of columns: a bias or a
// boolean mask.
template <class T>
TESSERA_FN void pack_scores(const T* source, Index row_stride, Index column_stride, Index count,
                            Index columns, Index lanes, float* panel) {
  const Index whole = column_stride == 1 ? columns / 8 * 8 : 0;
  pack_panel(Rows<T>{source, row_stride}, count, whole, 1.0f, lanes, panel);
  for (Index column = whole; column < columns; ++column) {
    for (Index lane = 0; lane < lanes; ++lane) {
      panel[column * lanes + lane] =
          lane < count ? load1(source + lane * row_stride + column * column_stride) : 0.0f;
    }
  }
}

// Keys in groups: block[group][column][key of the group]. Keys before `from` and from `to` on are 0
// and are not read; the source's row 0 is the block's key 0. `keys` is rounded up to whole groups.
template <class T>
TESSERA_FN void pack_keys(const Rows<T>& source, Index from, Index to, Index columns,
                          float* block) {
  for (Index key = 0; key < to; key += 8) {
    for (Index column = 0; column < columns; column += 8) {
      Float8 tile[8];
      load_transposed(source, key, from, to, column, tile);
      if constexpr (kGroup == 8) {
        TESSERA_UNROLL
        for (int i = 0; i < 8; ++i) store_as(block + key * columns + (column + i) * 8, tile[i]);
      } else {
        TESSERA_UNROLL
        for (int i = 0; i < 8; ++i) {
          store_as(block + key * columns + (column + i) * 4,
                   Float4(__builtin_shufflevector(tile[i], tile[i], 0, 1, 2, 3)));
          store_as(block + (key + 4) * columns + (column + i) * 4,
                   Float4(__builtin_shufflevector(tile[i], tile[i], 4, 5, 6, 7)));
        }
      }
    }
  }
}

// Stores eight columns of a value as the groups that hold them; groups are `stride` floats apart.
TESSERA_FN void store_groups(float* block, Index stride, Float8 v) {
  if constexpr (kGroup == 8) {
    store_as(block, v);
  } else {
    store_as(block, Float4(__builtin_shufflevector(v, v, 0, 1, 2, 3)));
    store_as(block + stride, Float4(__builtin_shufflevector(v, v, 4, 5, 6, 7)));
  }
}

// Values in groups of columns: block[group][key][column of the group], room for `capacity` keys a
// group. Keys before `from` are 0 and are not read; keys from `to` on are not written.
template <class T>
TESSERA_FN void pack_values(const Rows<T>& source, Index from, Index to, Index columns,
                            Index capacity, float* block) {
  // Column by column, not key by key: a power-of-two distance between groups would map them all to
  // one cache set. Two eights at once, so that a cache line of fp32 is read once.
  const Index stride = capacity * kGroup;
  Index column = 0;
  for (; column + 16 <= columns; column += 16) {
    float* left = block + column * capacity;
    float* right = left + 8 * capacity;
    for (Index key = 0; key < from; ++key) {
      store_groups(left + key * kGroup, stride, Float8{});
      store_groups(right + key * kGroup, stride, Float8{});
    }
    for (Index key = from; key < to; ++key) {
      store_groups(left + key * kGroup, stride, load8(source[key] + column));
      store_groups(right + key * kGroup, stride, load8(source[key] + column + 8));
    }
  }
  for (; column < columns; column += 8) {
    float* left = block + column * capacity;
    for (Index key = 0; key < from; ++key) store_groups(left + key * kGroup, stride, Float8{});
    for (Index key = from; key < to; ++key)
      store_groups(left + key * kGroup, stride, load8(source[key] + column));
  }
}

// out[row][column] = panel[column][lane = row] · factor[lane] for `count` rows.
template <class T>
TESSERA_FN void unpack_panel(const float* panel, const float* factor, Index lanes, Index count,
                             Index columns, T* out, Index stride) {
  for (Index lane = 0; lane < count; lane += 8) {
    const Float8 scale = load8(factor + lane);
    const Index rows = count - lane < 8 ? count - lane : 8;
    for (Index column = 0; column < columns; column += 8) {
      Float8 block[8];
      TESSERA_UNROLL
      for (int i = 0; i < 8; ++i) block[i] = load8(panel + (column + i) * lanes + lane) * scale;
      transpose8(block);
      if (rows == 8) {
        TESSERA_UNROLL
        for (int i = 0; i < 8; ++i) store8(out + (lane + i) * stride + column, block[i]);
      } else {
        for (Index i = 0; i < rows; ++i) store8(out + (lane + i) * stride + column, block[i]);
      }
    }
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
