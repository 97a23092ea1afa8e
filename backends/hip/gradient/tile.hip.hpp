#pragma once
// 16-bit operands on their way from memory: through registers to LDS, as they are and transposed,
// while the tile of before is multiplied; or to the lanes that own their rows.

#include <cstdint>
#include <type_traits>

#include "backends/hip/common/gcn.hip.hpp"
#include "backends/hip/common/matrix.hip.hpp"
#include "backends/hip/common/opaque.hip.hpp"
#include "backends/hip/gradient/config.hpp"
#include "core/kernel/arguments.hpp"
#include "core/kernel/mask.hpp"

namespace tessera::hip::gradient {

using kernel::Index;

// RDNA's waves have 256 registers a lane, CDNA's up to 512.
inline constexpr bool kFewRegisters = kWave == 32;

// Rows `there` from `first` on exist; what is beyond them, and beyond `columns`, is 0.
struct Source {
  const std::uint16_t* first;
  Index stride;
  kernel::Interval<int> there;
  int columns;
  bool fast;         // every row is aligned to 16 bytes, and offsets fit 31 bits
  bool one = false;  // a row is one number, which all its columns have; not `fast` then
};

// The same in the words of a buffer.
struct Buffer {
  __amdgpu_buffer_rsrc_t resource;
  std::uint32_t stride;  // bytes
  int begin;
  std::uint32_t rows;
  int columns;

  TESSERA_DEVICE explicit Buffer(const Source& from)
      : resource(buffer_of(from.first)),
        stride(static_cast<std::uint32_t>(2 * from.stride)),
        begin(from.there.begin),
        rows(static_cast<std::uint32_t>(from.there.end - from.there.begin)),
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
    if (row < from.there.begin || row >= from.there.end || column >= from.columns) return words;
    const std::uint16_t* const data = from.first + anew(row) * from.stride;
    if (from.one) return 0x10001u * data[0];
    TESSERA_UNROLL
    for (int i = 0; i < 8; ++i)
      words[i / 2] |= static_cast<std::uint32_t>(data[column + i]) << (16 * (i % 2));
    keep_order();
    return words;
  }
};

TESSERA_DEVICE void put(Matrix::Operand& operand, int piece, Words4 words) {
  TESSERA_UNROLL
  for (int w = 0; w < 4; ++w) operand.word[4 * piece + w] = words[w];
}

// --- Tiles -----------------------------------------------------------------------------------

// kTile rows of kColumns numbers. A thread moves a patch of 4 rows × 8 columns; the first that
// does is `first_thread`, so that two tiles keep different waves busy.
template <int kColumns>
class Tile {
  using Space = TileSpace<kColumns>;
  static constexpr int kPatchRows = kTile / 4;
  static constexpr int kPatches = kPatchRows * kColumns / 8;
  static_assert(kPatches <= kThreads && kThreads % kPatchRows == 0);

 public:
  TESSERA_DEVICE explicit Tile(int first_thread)
      : patch_((thread() + kThreads - first_thread % kThreads) % kThreads) {}

  TESSERA_DEVICE void load(const Source& from) {
    if (kPatches < kThreads && patch_ >= kPatches) return;
    if (from.fast) {
      load(Buffer(from));
    } else {
      load(Scattered(from));
    }
  }
  TESSERA_DEVICE void store_rows(std::uint16_t* tile) const {
    if (kPatches < kThreads && patch_ >= kPatches) return;
    TESSERA_UNROLL
    for (int i = 0; i < 4; ++i)
      *reinterpret_cast<Words4*>(tile + (row() + i) * Space::kRowPitch + column()) = words_[i];
  }
  TESSERA_DEVICE void store_columns(std::uint16_t* tile) const {
    if (kPatches < kThreads && patch_ >= kPatches) return;
    TESSERA_UNROLL
    for (int i = 0; i < 8; ++i) {
      const auto pair = [&](int first) {
        const std::uint32_t a = words_[first][i / 2], b = words_[first + 1][i / 2];
        return __builtin_amdgcn_perm(b, a, i % 2 == 0 ? 0x05040100u : 0x07060302u);
      };
      *reinterpret_cast<Words2*>(tile + (column() + i) * Space::kColumnPitch + row()) =
          Words2{pair(0), pair(2)};
    }
  }

  // Of rows from `first` on, one a lane of a half: numbers [16·u, 16·u + 16) as an operand.
  TESSERA_DEVICE static Matrix::Operand row_operand(const std::uint16_t* tile, int first, int u) {
    const std::uint16_t* const line = tile + (first + Matrix::column()) * Space::kRowPitch;
    Matrix::Operand made;
    TESSERA_UNROLL
    for (int i = 0; i < Matrix::kPieces; ++i)
      put(made, i, *reinterpret_cast<const Words4*>(line + 16 * u + Matrix::piece(i)));
    return made;
  }
  // Of columns from `first` on likewise: rows [16·t, 16·t + 16), in the order in which sums become
  // the other operand.
  TESSERA_DEVICE static Matrix::Operand column_operand(const std::uint16_t* tile, int first,
                                                       int t) {
    const std::uint16_t* const line = tile + (first + Matrix::column()) * Space::kColumnPitch;
    Matrix::Operand made;
    TESSERA_UNROLL
    for (int c = 0; c < Matrix::kWords / 2; ++c) {
      const Words2 words =
          *reinterpret_cast<const Words2*>(line + 4 * (4 * t + Matrix::value_chunk(c)));
      made.word[2 * c] = words[0];
      made.word[2 * c + 1] = words[1];
    }
    return made;
  }

 private:
  template <class From>
  TESSERA_DEVICE void load(const From& from) {
    TESSERA_UNROLL
    for (int i = 0; i < 4; ++i) words_[i] = from.load8(row() + i, column());
  }
  TESSERA_DEVICE int row() const { return 4 * (patch_ % kPatchRows); }
  TESSERA_DEVICE int column() const { return 8 * (patch_ / kPatchRows); }

  const int patch_;
  Words4 words_[4];
};

// --- Owned rows ------------------------------------------------------------------------------

// Which of the work-group's rows or keys the lane owns; the same in both halves of a wave.
TESSERA_DEVICE int owned() { return wave() * Matrix::kSide + Matrix::column(); }
static_assert(kThreads / kWave * Matrix::kSide == kOwned);

// The lane's row as the operands of a product, in registers.
template <int kColumns>
class Resident {
 public:
  TESSERA_DEVICE void open(const Source& from) {
    if (from.fast) {
      load(Buffer(from));
    } else {
      load(Scattered(from));
    }
  }

  // Sums += rows of the tile from `first` on · the lane's.
  template <class Element>
  TESSERA_DEVICE void multiply(Matrix::Sums& sums, const std::uint16_t* tile, int first) const {
    TESSERA_UNROLL
    for (int u = 0; u < kColumns / 16; ++u) {
      Matrix::multiply<Element>(sums, Tile<kColumns>::row_operand(tile, first, u), row_[u]);
      if (kFewRegisters) keep_order();
    }
  }

 private:
  template <class From>
  TESSERA_DEVICE void load(const From& from) {
    const int mine = anew(owned());
    TESSERA_UNROLL
    for (int u = 0; u < kColumns / 16; ++u) {
      TESSERA_UNROLL
      for (int i = 0; i < Matrix::kPieces; ++i)
        put(row_[u], i, from.load8(mine, 16 * u + anew(Matrix::piece(i))));
    }
  }

  Matrix::Operand row_[kColumns / 16];
};

// The same where registers are short: read anew for every product.
template <int kColumns>
class Fetched {
 public:
  TESSERA_DEVICE void open(const Source& from) { from_ = from; }

  template <class Element>
  TESSERA_DEVICE void multiply(Matrix::Sums& sums, const std::uint16_t* tile, int first) const {
    if (from_.fast) {
      multiply<Element>(sums, tile, first, Buffer(from_));
    } else {
      multiply<Element>(sums, tile, first, Scattered(from_));
    }
  }

 private:
  template <class Element, class From>
  TESSERA_DEVICE static void multiply(Matrix::Sums& sums, const std::uint16_t* tile, int first,
                                      const From& from) {
#pragma clang loop unroll(disable)
    for (int u = 0; u < kColumns / 16; ++u) {
      Matrix::Operand row;
      TESSERA_UNROLL
      for (int i = 0; i < Matrix::kPieces; ++i)
        put(row, i, from.load8(owned(), 16 * u + Matrix::piece(i)));
      Matrix::multiply<Element>(sums, Tile<kColumns>::row_operand(tile, first, u), row);
    }
  }

  Source from_;
};

// Registers of a lane that owned rows and sums may take beside everything else.
constexpr int lane_words(bool general) {
  if (kFewRegisters) return general ? 80 : Matrix::kPieces == 2 ? 96 : 128;
  return general ? 320 : 384;
}

// `kOwnedColumns` and `kSumColumns` are those of all that the kernel's lanes hold.
template <int kColumns, int kOwnedColumns, int kSumColumns, bool kGeneral>
using Owned = std::conditional_t<kOwnedColumns / 16 * Matrix::kWords + kSumColumns / 2 <=
                                     lane_words(kGeneral),
                                 Resident<kColumns>, Fetched<kColumns>>;

}  // namespace tessera::hip::gradient
