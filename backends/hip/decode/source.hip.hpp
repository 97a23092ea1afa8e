#pragma once
// Numbers of a tile's rows in memory, for lanes that each take their own: whole words of a buffer,
// or number by number where rows lie anywhere.

#include <cstdint>

#include "backends/hip/common/gcn.hip.hpp"
#include "backends/hip/common/opaque.hip.hpp"
#include "core/kernel/arguments.hpp"

namespace tessera::hip::decode {

using kernel::Index;

// Registers that go together from memory to an instruction.
template <int kWords>
using Words = std::uint32_t __attribute__((ext_vector_type(kWords)));

template <int kWords>
TESSERA_DEVICE Words<kWords> load_words(__amdgpu_buffer_rsrc_t buffer, std::uint32_t offset) {
  static_assert(kWords == 1 || kWords == 2 || kWords == 4);
  const int at = static_cast<int>(offset);
  if constexpr (kWords == 1) return __builtin_amdgcn_raw_buffer_load_b32(buffer, at, 0, 0);
  if constexpr (kWords == 2) return __builtin_amdgcn_raw_buffer_load_b64(buffer, at, 0, 0);
  if constexpr (kWords == 4) return __builtin_amdgcn_raw_buffer_load_b128(buffer, at, 0, 0);
}

// `first` is row 0 of the tile, rows [begin, end) of the tile exist.
struct Source {
  const std::uint16_t* first;
  Index stride;
  int begin, end;
  int columns;  // that exist; what is beyond, and rows that do not exist, are 0
};

// Words of a buffer, for rows that are aligned to 16 bytes and offsets that fit 31 bits: what lies
// beyond its end is 0.
class Buffer {
 public:
  static constexpr bool kNeedsRow = false;

  TESSERA_DEVICE explicit Buffer(const Source& from)
      : resource_(buffer_of(from.first)),
        stride_(static_cast<std::uint32_t>(2 * from.stride)),
        begin_(from.begin),
        rows_(static_cast<std::uint32_t>(from.end - from.begin)),
        columns_(from.columns) {}

  // 2·kWords numbers of a row from `column` on, a multiple of as many; all or none exist.
  template <int kWords>
  TESSERA_DEVICE Words<kWords> load(int row, int column) const {
    const bool there = static_cast<std::uint32_t>(row - begin_) < rows_ && column < columns_;
    const std::uint32_t in_row = 2u * static_cast<std::uint32_t>(column);
    const std::uint32_t at = static_cast<std::uint32_t>(row) * stride_ + in_row;
    return load_words<kWords>(resource_, there ? at : kBeyondBuffer);
  }

 private:
  const __amdgpu_buffer_rsrc_t resource_;
  const std::uint32_t stride_;  // bytes
  const int begin_;
  const std::uint32_t rows_;
  const int columns_;
};

// Rows anywhere, of a tile that has one at least. What does not exist is a number that does, made
// 0: without branches the registers of a tile stay where they are.
class Scattered {
 public:
  static constexpr bool kNeedsRow = true;

  TESSERA_DEVICE explicit Scattered(const Source& from) : from_(from) {}

  template <int kWords>
  TESSERA_DEVICE Words<kWords> load(int row, int column) const {
    const bool there = row >= from_.begin && row < from_.end && column < from_.columns;
    const std::uint16_t* const data =
        from_.first + (there ? row : from_.begin) * from_.stride + (there ? column : 0);
    Words<kWords> words;
    TESSERA_UNROLL
    for (int w = 0; w < kWords; ++w) {
      const std::uint32_t word = static_cast<std::uint32_t>(data[2 * w + 1]) << 16 | data[2 * w];
      words[w] = there ? word : 0;
    }
    keep_order();
    return words;
  }

 private:
  const Source from_;
};

}  // namespace tessera::hip::decode
