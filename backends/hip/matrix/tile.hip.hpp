#pragma once
// Tiles of a 16-bit operand on their way from memory through registers to LDS: while a block of
// keys is multiplied, the next one's numbers are on their way.

#include <cstdint>

#include "backends/hip/common/gcn.hip.hpp"
#include "backends/hip/matrix/config.hpp"
#include "core/kernel/arguments.hpp"

namespace tessera::hip::matrix {

using kernel::Index;

// Where a tile's rows come from: `first` is row 0 of the tile, rows [begin, end) of the tile exist.
struct Source {
  const std::uint16_t* first;
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
        stride(static_cast<std::uint32_t>(2 * from.stride)),
        begin(from.begin),
        rows(static_cast<std::uint32_t>(from.end - from.begin)),
        columns(from.columns) {}

  // Eight numbers of a row from `column` on, a multiple of 8.
  TESSERA_DEVICE Words4 load8(int row, int column) const {
    const bool there = static_cast<std::uint32_t>(row - begin) < rows && column < columns;
    const std::uint32_t at =
        static_cast<std::uint32_t>(row) * stride + 2u * static_cast<std::uint32_t>(column);
    return load_words4(resource, there ? at : kBeyondBuffer);
  }
};

// Rows anywhere, number by number.
struct Scattered {
  Source from;

  TESSERA_DEVICE explicit Scattered(const Source& source) : from(source) {}

  TESSERA_DEVICE Words4 load8(int row, int column) const {
    Words4 words = 0;
    if (row < from.begin || row >= from.end || column >= from.columns) return words;
    const std::uint16_t* const data = from.first + row * from.stride + column;
    TESSERA_UNROLL
    for (int i = 0; i < 8; ++i)
      words[i / 2] |= static_cast<std::uint32_t>(data[i]) << (16 * (i % 2));
    keep_order();
    return words;
  }
};

// Keys: rows as they are.
template <class S>
struct KeyTile {
  static constexpr int kDim = S::kDim, kKeys = S::kKeys;
  static constexpr int kChunks = kDim / 8;
  static constexpr int kRowStep = kThreads / kChunks;  // rows that all threads load at a time
  static constexpr int kSteps = (kKeys + kRowStep - 1) / kRowStep;
  static constexpr bool kExact = kThreads % kChunks == 0 && kKeys % kRowStep == 0;

  struct Registers {
    Words4 words[kSteps];
  };

  template <class From>
  TESSERA_DEVICE static void load(Registers& to, const From& from) {
    TESSERA_UNROLL
    for (int i = 0; i < kSteps; ++i) {
      const int row = row_of(i);
      if (kExact || there(row)) to.words[i] = from.load8(row, 8 * chunk());
    }
  }
  TESSERA_DEVICE static void store(const Registers& from, std::uint16_t* tile) {
    TESSERA_UNROLL
    for (int i = 0; i < kSteps; ++i) {
      const int row = row_of(i);
      if (kExact || there(row))
        *reinterpret_cast<Words4*>(tile + place(row, chunk())) = from.words[i];
    }
  }
  // Numbers [8·chunk, 8·chunk + 8) of a row.
  TESSERA_DEVICE static Words4 read(const std::uint16_t* tile, int row, int chunk) {
    return *reinterpret_cast<const Words4*>(tile + place(row, chunk));
  }

 private:
  TESSERA_DEVICE static int chunk() { return thread() % kChunks; }
  TESSERA_DEVICE static int row_of(int i) { return thread() / kChunks + i * kRowStep; }
  TESSERA_DEVICE static bool there(int row) { return row < kKeys && thread() < kRowStep * kChunks; }
  TESSERA_DEVICE static int place(int row, int chunk) { return row * S::kKeyPitch + 8 * chunk; }
};

// Values: transposed on their way, so that a lane reads four keys of one column at once. A thread
// has patches of 4 keys × 8 columns.
template <class S>
struct ValueTile {
  static constexpr int kDimV = S::kDimV, kKeys = S::kKeys;
  static constexpr int kGroups = kKeys / 4;
  static constexpr int kPatches = kGroups * kDimV / 8;
  static constexpr int kSteps = (kPatches + kThreads - 1) / kThreads;

  struct Registers {
    Words4 words[kSteps][4];
  };

  template <class From>
  TESSERA_DEVICE static void load(Registers& to, const From& from) {
    TESSERA_UNROLL
    for (int p = 0; p < kSteps; ++p) {
      const int patch = thread() + p * kThreads;
      if (kPatches % kThreads != 0 && patch >= kPatches) continue;
      TESSERA_UNROLL
      for (int key = 0; key < 4; ++key)
        to.words[p][key] = from.load8(4 * (patch % kGroups) + key, 8 * (patch / kGroups));
    }
  }
  TESSERA_DEVICE static void store(const Registers& from, std::uint16_t* tile) {
    TESSERA_UNROLL
    for (int p = 0; p < kSteps; ++p) {
      const int patch = thread() + p * kThreads;
      if (kPatches % kThreads != 0 && patch >= kPatches) continue;
      TESSERA_UNROLL
      for (int column = 0; column < 8; ++column) {
        const auto pair = [&](int key) {
          const std::uint32_t a = from.words[p][key][column / 2];
          const std::uint32_t b = from.words[p][key + 1][column / 2];
          return __builtin_amdgcn_perm(b, a, column % 2 == 0 ? 0x05040100u : 0x07060302u);
        };
        *reinterpret_cast<Words2*>(tile + place(8 * (patch / kGroups) + column, patch % kGroups)) =
            Words2{pair(0), pair(2)};
      }
    }
  }
  // Keys [4·group, 4·group + 4) of a column.
  TESSERA_DEVICE static Words2 read(const std::uint16_t* tile, int column, int group) {
    return *reinterpret_cast<const Words2*>(tile + place(column, group));
  }

 private:
  TESSERA_DEVICE static int place(int column, int group) {
    return column * S::kValuePitch + 4 * group;
  }
};

}  // namespace tessera::hip::matrix
