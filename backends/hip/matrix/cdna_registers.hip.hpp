#pragma once
// gfx90a, gfx942: how keys and values get to LDS, by registers, and lie there. A direct load brings
// 4 bytes a lane there, cannot transpose, and takes four times the instructions: for a tile of keys
// alone eight and as many moves to m0, against two loads and two stores.
//
// LDS holds operands as lanes read them: cells of 32 rows (of keys, or of Vᵀ, which are columns of
// V) by 16 numbers of the contraction. Of a row a cell has two pieces of 8 numbers, one a half of
// the wave. A lane's piece has the same place in every cell, so all of a tile is a constant away
// from one address a lane.
//
//     keys     [kDim / 16][kKeys / 32] cells, piece h of row k: numbers 8·h … 8·h + 7
//     values   [kKeys / 16][kDimV / 32] cells, piece h of column c: keys 4·h … 4·h + 3 and the four
//              from 8 + 4·h on, in the order of weights

#include "backends/hip/matrix/block.hip.hpp"

namespace tessera::hip::matrix {

inline constexpr int kCell = 32 * 16 * 2;  // bytes, as all places are

// Where in a cell the piece begins. Swizzled by the row so that no bank is met twice: by a read (8
// lanes: rows that follow one another), by a store of keys (8 lanes: 4 rows, both pieces) and by
// one of values (16 lanes that store half a piece each: 4 rows that are 4 apart, or 4 pairs). 16
// rows on everything repeats.
TESSERA_DEVICE int place_in_cell(int row, int piece) {
  const int four = row / 4;
  const int swizzle = four % 4 * 2 + four % 2;
  return 16 * (8 * four + ((row % 4 * 2 + piece) ^ swizzle));
}

template <class T>
TESSERA_DEVICE T& at_byte(std::uint16_t* lds, int place) {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(lds) + place);
}

// A tile's work comes in units, of which waves have kSteps each, or some one fewer.
template <int kUnits, int kWaves>
struct Share {
  static constexpr int kSteps = (kUnits + kWaves - 1) / kWaves;
  TESSERA_DEVICE static bool has(int step, int wave) {
    return kUnits % kWaves == 0 || step * kWaves + wave < kUnits;
  }
};

// Keys as they are. A group of 8 lanes brings 4 rows × 16 numbers; the groups after it what follows
// in these rows.
template <class T>
class KeyRegisters {
 public:
  TESSERA_DEVICE explicit KeyRegisters(const Source& from)
      : offset_(anew(lane_offset(from, row(0), 8 * chunk(0)))), place_(anew(place(0))) {}

  template <class From>
  TESSERA_DEVICE void load(const From& from) {
    const int own = anew(0);
    TESSERA_UNROLL
    for (int i = 0; i < Work::kSteps; ++i)
      if (has(i)) words_[i] = from.template load<8>(row(i) + own, 8 * chunk(i));
  }
  // All of whose rows exist.
  TESSERA_DEVICE void load_whole(const Source& from) {
    const __amdgpu_buffer_rsrc_t buffer = buffer_of(from.first);
    TESSERA_UNROLL
    for (int i = 0; i < Work::kSteps; ++i) {
      if (!has(i)) continue;
      if constexpr (kRowStep != 0) {
        words_[i] = load_words<4>(buffer, offset_,
                                  static_cast<std::uint32_t>(i * kRowStep * 2 * from.stride));
      } else {
        words_[i] = load_words<4>(buffer, lane_offset(from, row(i), 8 * chunk(i)), 0);
      }
    }
  }
  TESSERA_DEVICE void store(std::uint16_t* lds, int tile) const {
    TESSERA_UNROLL
    for (int i = 0; i < Work::kSteps; ++i) {
      if (!has(i)) continue;
      constexpr int kPlaceStep = kRowStep / 32 * kCell + kRowStep % 32 * 32;
      const int at = kRowStep % 16 == 0 && kRowStep != 0 ? place_ + i * kPlaceStep : place(i);
      at_byte<Words4>(lds, tile + at) = words_[i];
    }
  }

 private:
  static constexpr int kAcross = T::kDim / 16;  // groups
  using Work = Share<T::kKeys / 4 * kAcross / 8, T::kWaves>;
  // From step to step, of the same columns; 0 if they are not the same.
  static constexpr int kRowStep = 8 * T::kWaves % kAcross == 0 ? 8 * T::kWaves / kAcross * 4 : 0;

  TESSERA_DEVICE static bool has(int i) { return Work::has(i, wave()); }
  TESSERA_DEVICE static int group(int i) { return thread() / 8 + i * 8 * T::kWaves; }
  TESSERA_DEVICE static int row(int i) { return group(i) / kAcross * 4 + thread() / 2 % 4; }
  TESSERA_DEVICE static int chunk(int i) { return group(i) % kAcross * 2 + thread() % 2; }
  TESSERA_DEVICE static int place(int i) {
    const int cell = chunk(i) / 2 * (T::kKeys / 32) + row(i) / 32;
    return cell * kCell + place_in_cell(row(i) % 32, chunk(i) % 2);
  }

  Words4 words_[Work::kSteps];
  const std::uint32_t offset_;  // of the first step, in memory
  const int place_;             // and in LDS
};

// Values are transposed on their way: a thread has patches of 4 keys × kWidth columns, a wave 16
// keys × 16 patches at a time.
template <class T>
class ValueRegisters {
 public:
  TESSERA_DEVICE explicit ValueRegisters(const Source& from)
      : wave_(wave()), offset_(anew(lane_offset(from, 4 * quad(), column(0)))) {
    TESSERA_UNROLL
    for (int c = 0; c < kWidth; ++c) place_[c] = anew(place(c));
  }

  template <class From>
  TESSERA_DEVICE void load(const From& from) {
    const int own = anew(0);
    TESSERA_UNROLL
    for (int i = 0; i < Work::kSteps; ++i) {
      if (!has(i)) continue;
      TESSERA_UNROLL
      for (int key = 0; key < 4; ++key)
        words_[i][key] =
            from.template load<kWidth>(16 * deep(i) + 4 * quad() + key + own, column(i));
    }
  }
  TESSERA_DEVICE void load_whole(const Source& from) {
    const __amdgpu_buffer_rsrc_t buffer = buffer_of(from.first);
    TESSERA_UNROLL
    for (int i = 0; i < Work::kSteps; ++i) {
      if (!has(i)) continue;
      TESSERA_UNROLL
      for (int key = 0; key < 4; ++key) {
        const auto further = static_cast<std::uint32_t>((16 * deep(i) + key) * 2 * from.stride);
        words_[i][key] = load_words<kWidth / 2>(
            buffer, kSameColumns ? offset_ : lane_offset(from, 4 * quad(), column(i)), further);
      }
    }
  }
  TESSERA_DEVICE void store(std::uint16_t* lds, int tile) const {
    TESSERA_UNROLL
    for (int i = 0; i < Work::kSteps; ++i) {
      if (!has(i)) continue;
      const int cell = deep(i) * (T::kDimV / 32) + across(i) * kWidth / 2;
      TESSERA_UNROLL
      for (int c = 0; c < kWidth; ++c) {
        const auto pair = [&](int key) {
          const std::uint32_t a = words_[i][key][c / 2], b = words_[i][key + 1][c / 2];
          return __builtin_amdgcn_perm(b, a, c % 2 == 0 ? 0x05040100u : 0x07060302u);
        };
        at_byte<Words2>(lds, tile + cell * kCell + place_[c]) = Words2{pair(0), pair(2)};
      }
    }
  }

 private:
  static constexpr int kWidth = T::kKeys / 16 * (T::kDimV / 64) < T::kWaves ? 2 : 4;
  static constexpr int kAcross = T::kDimV / (16 * kWidth);  // a wave's share, in a row
  using Work = Share<T::kKeys / 16 * kAcross, T::kWaves>;
  static constexpr bool kSameColumns = T::kWaves % kAcross == 0;  // in all steps

  TESSERA_DEVICE bool has(int i) const { return Work::has(i, wave_); }
  TESSERA_DEVICE static int quad() { return lane() % 4; }
  TESSERA_DEVICE int deep(int i) const { return (wave_ + i * T::kWaves) / kAcross; }
  TESSERA_DEVICE int across(int i) const { return (wave_ + i * T::kWaves) % kAcross; }
  TESSERA_DEVICE int column(int i) const { return (across(i) * 16 + lane() / 4) * kWidth; }
  TESSERA_DEVICE static int place(int c) {
    const int column = lane() / 4 * kWidth + c;
    return column / 32 * kCell + place_in_cell(column % 32, quad() % 2) + quad() / 2 * 8;
  }

  Words<kWidth / 2> words_[Work::kSteps][4];
  const int wave_;
  const std::uint32_t offset_;
  int place_[kWidth];  // of a column, in LDS
};

// Buffers of LDS, each for the keys of a tile and the values of the tile walked before it.
template <class T>
class Staging {
 public:
  static constexpr int kBuffers = 2;
  static constexpr int kKeyBytes = 2 * T::kKeys * T::kDim;
  static constexpr int kBuffer = kKeyBytes + 2 * T::kKeys * T::kDimV;  // bytes

  TESSERA_DEVICE Staging(std::uint16_t* shared, const Source& keys, const Source& values)
      : shared_(shared), keys_(keys), values_(values) {}

  // The first keys, to the last buffer.
  template <class From>
  TESSERA_DEVICE void first(const From& keys) {
    keys_.load(keys);
    keys_.store(shared_, to_);
    to_ = 0;
  }
  // Keys and values on their way.
  template <class From>
  TESSERA_DEVICE void start(const From& keys, const From& values) {
    keys_.load(keys);
    values_.load(values);
  }
  // What was started before will be in the next buffer after the next barrier.
  TESSERA_DEVICE void finish() {
    keys_.store(shared_, to_);
    values_.store(shared_, to_ + kKeyBytes);
    to_ = kBuffer - to_;
  }
  template <class From>
  TESSERA_DEVICE void turn(const From& keys, const From& values) {
    finish();
    start(keys, values);
  }
  // Of whole tiles. Whatever is waited for, something else is still coming.
  TESSERA_DEVICE void turn_whole(const Source& keys, const Source& values) {
    keys_.store(shared_, to_);
    keep_order();
    keys_.load_whole(keys);
    keep_order();
    values_.store(shared_, to_ + kKeyBytes);
    keep_order();
    values_.load_whole(values);
    keep_order();
    to_ = kBuffer - to_;
  }

 private:
  std::uint16_t* const shared_;
  int to_ = static_cast<int>(uniform_anew((kBuffers - 1) * kBuffer));
  KeyRegisters<T> keys_;
  ValueRegisters<T> values_;
};

// Operands from a buffer.
template <class T>
class Operands {
 public:
  TESSERA_DEVICE explicit Operands(std::uint16_t* shared)
      : shared_(shared), own_(anew(place_in_cell(Matrix::column(), half()))) {}

  TESSERA_DEVICE void go_to(int buffer) { at_ = own_ + buffer; }
  // Of the n-th 32 keys the u-th 16 numbers.
  TESSERA_DEVICE Matrix::Operand key(int n, int u) const { return read(u * (T::kKeys / 32) + n); }
  // Of the m-th 32 columns the t-th 16 keys.
  TESSERA_DEVICE Matrix::Operand value(int m, int t) const {
    return read(Staging<T>::kKeyBytes / kCell + t * (T::kDimV / 32) + m);
  }

 private:
  TESSERA_DEVICE Matrix::Operand read(int cell) const {
    return __builtin_bit_cast(Matrix::Operand, at_byte<Words4>(shared_, at_ + cell * kCell));
  }
  std::uint16_t* const shared_;
  const int own_;
  int at_ = 0;
};

}  // namespace tessera::hip::matrix
