#pragma once
// Tiles of fp32 numbers on their way from memory through registers to LDS.

#include <cstdint>

#include "backends/hip/common/gcn.hip.hpp"
#include "backends/hip/common/opaque.hip.hpp"
#include "backends/hip/fp32/config.hpp"

namespace tessera::hip::fp32 {

using kernel::Index;

// Where a tile's rows come from: `first` is row 0 of the tile, rows [begin, end) of the tile exist.
struct Source {
  const float* first;
  Index stride;
  int begin, end;
  int columns;  // that exist from `first` on; what is beyond, and rows that do not exist, are 0
  bool fast;    // every row is aligned to 16 bytes, and the tile's offsets fit 31 bits
};

// The same in the words of a buffer: what lies beyond its end is 0.
struct Buffer {
  __amdgpu_buffer_rsrc_t resource;
  std::uint32_t stride;  // bytes
  int begin;
  std::uint32_t rows;
  int columns;

  TESSERA_DEVICE explicit Buffer(const Source& from)
      : resource(buffer_of(from.first)),
        stride(static_cast<std::uint32_t>(4 * from.stride)),
        begin(from.begin),
        rows(static_cast<std::uint32_t>(from.end - from.begin)),
        columns(from.columns) {}

  // Four numbers of a row from `column` on, a multiple of 4.
  TESSERA_DEVICE Words4 load4(int row, int column) const {
    const bool there = static_cast<std::uint32_t>(row - begin) < rows && column < columns;
    const std::uint32_t at =
        static_cast<std::uint32_t>(row) * stride + 4u * static_cast<std::uint32_t>(column);
    return load_words4(resource, there ? at : kBeyondBuffer);
  }
};

// Rows anywhere, number by number. In place of what does not exist the first that does is read: a
// tile has at least one row and one column.
struct Scattered {
  Source from;

  TESSERA_DEVICE explicit Scattered(const Source& source) : from(source) {}

  TESSERA_DEVICE Words4 load4(int row, int column) const {
    const bool there = row >= from.begin && row < from.end && column < from.columns;
    const auto* const data = reinterpret_cast<const std::uint32_t*>(
        from.first + (there ? row : from.begin) * from.stride + (there ? column : 0));
    Words4 words;
    TESSERA_UNROLL
    for (int i = 0; i < 4; ++i) words[i] = data[i];
    keep_order();
    return there ? words : Words4{0, 0, 0, 0};
  }
};

// kKeys rows of kColumns numbers, kPitch apart.
template <int kKeys, int kColumns, int kPitch>
struct Tile {
  static constexpr unsigned kChunks = kColumns / 4;
  static constexpr unsigned kSteps = kKeys * kChunks / kThreads;
  static_assert(kKeys * kChunks % kThreads == 0 && kPitch % 4 == 0);

  struct Registers {
    Words4 words[kSteps];
  };

  template <class From>
  TESSERA_DEVICE static void load(Registers& to, const From& from) {
    const auto first = static_cast<unsigned>(anew(thread()));
    TESSERA_UNROLL
    for (unsigned i = 0; i < kSteps; ++i) {
      to.words[i] = from.load4(row_of(first, i), column_of(first, i));
      keep_order();
    }
  }
  TESSERA_DEVICE static void store(const Registers& from, float* tile) {
    const auto first = static_cast<unsigned>(anew(thread()));
    TESSERA_UNROLL
    for (unsigned i = 0; i < kSteps; ++i)
      *reinterpret_cast<Words4*>(tile + row_of(first, i) * kPitch + column_of(first, i)) =
          from.words[i];
  }

 private:
  TESSERA_DEVICE static int row_of(unsigned thread, unsigned i) {
    return static_cast<int>((thread + i * kThreads) / kChunks);
  }
  TESSERA_DEVICE static int column_of(unsigned thread, unsigned i) {
    return static_cast<int>((thread + i * kThreads) % kChunks * 4);
  }
};

}  // namespace tessera::hip::fp32
