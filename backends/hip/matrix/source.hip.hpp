#pragma once
// Where a tile of a 16-bit operand is read from.

#include <cstdint>

#include "backends/hip/common/gcn.hip.hpp"
#include "backends/hip/common/opaque.hip.hpp"
#include "core/kernel/arguments.hpp"

namespace tessera::hip::matrix {

using kernel::Index;

// Rows [begin, end) of the tile exist, `first` is its row 0.
struct Source {
  const std::uint16_t* first;
  Index stride;
  int begin, end;
  int columns;  // that exist, a multiple of 8; what is beyond, and rows that do not exist, are 0
  bool fast;    // every row is aligned to 16 bytes, and the tile's offsets fit 31 bits
};

// The same as a buffer: what lies beyond its end is 0.
struct Buffer {
  __amdgpu_buffer_rsrc_t resource;
  std::uint32_t stride;  // bytes
  int begin;
  std::uint32_t rows;
  int columns;

  TESSERA_DEVICE explicit Buffer(const Source& from)
      : resource(buffer_of(from.first)),
        stride(static_cast<std::uint32_t>(2 * from.stride)),
        begin(from.begin),
        rows(static_cast<std::uint32_t>(from.end - from.begin)),
        columns(from.columns) {}

  TESSERA_DEVICE std::uint32_t offset(int row, int column) const {
    const bool there = static_cast<std::uint32_t>(row - begin) < rows && column < columns;
    const std::uint32_t at =
        static_cast<std::uint32_t>(row) * stride + 2u * static_cast<std::uint32_t>(column);
    return there ? at : kBeyondBuffer;
  }
  // Numbers of a row from `column` on, all of which exist or none.
  template <int kNumbers>
  TESSERA_DEVICE Words<kNumbers / 2> load(int row, int column) const {
    return load_words<kNumbers / 2>(resource, offset(row, column), 0);
  }
};

// Tiles all of whose rows exist: where a lane reads is the same from tile to tile.
TESSERA_DEVICE std::uint32_t lane_offset(const Source& from, int row, int column) {
  const std::uint32_t at =
      static_cast<std::uint32_t>(2 * from.stride) * static_cast<std::uint32_t>(row) +
      2u * static_cast<std::uint32_t>(column);
  return column < from.columns ? at : kBeyondBuffer;
}

// Rows anywhere, number by number.
struct Scattered {
  Source from;

  TESSERA_DEVICE explicit Scattered(const Source& source) : from(source) {}

  template <int kNumbers>
  TESSERA_DEVICE Words<kNumbers / 2> load(int row, int column) const {
    Words<kNumbers / 2> words = 0;
    if (row < from.begin || row >= from.end || column >= from.columns) return words;
    const std::uint16_t* const data = from.first + row * from.stride + column;
    TESSERA_UNROLL
    for (int i = 0; i < kNumbers; ++i)
      words[i / 2] |= static_cast<std::uint32_t>(data[i]) << (16 * (i % 2));
    keep_order();
    return words;
  }
};

}  // namespace tessera::hip::matrix
