#pragma once
// gfx950: how keys and values get to LDS, straight from memory, 16 bytes a lane, and lie there: as
// in memory, row after row, values transposed when they are read. Three buffers, so that a step's
// loads have one more step to arrive.
//
// What a wave loads lies in LDS as it comes; a row's pieces of 8 numbers are swizzled by loading
// them in another order. Lanes that read a piece of rows that follow one another then meet no bank
// twice, nor do those that read four rows of four pieces to transpose.

#include "backends/hip/common/lds.hip.hpp"
#include "backends/hip/matrix/block.hip.hpp"

namespace tessera::hip::matrix {

template <class T>
TESSERA_DEVICE T& at_byte(std::uint16_t* lds, int place) {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(lds) + place);
}

// Rows of kPieces pieces of 16 bytes, which is also the unit of places in them.
template <int kPieces>
struct Swizzle {
  // Pieces that change places: what of a row lies in all 64 banks, or of two in a half each.
  static constexpr int kAmong = kPieces % 16 == 0 ? 16 : 8;
  // The part of a place in which row and piece are mixed.
  TESSERA_DEVICE static int of(int row) {
    return kAmong == 16 ? row % 4 * 4 + row / 4 % 4 : row / 2 % 2 * 4 + row / 4 % 4;
  }
};

// A tile of kRows rows × 8·kPieces numbers on its way to LDS, by loads of 64 pieces.
template <int kRows, int kPieces, int kWaves>
class DirectTile {
 public:
  static constexpr int kBytes = kRows * kPieces * 16;
  static constexpr int kLoads = kRows * kPieces / 64;
  // Of a wave, at least.
  static constexpr int kFewest = kLoads / kWaves;

  TESSERA_DEVICE explicit DirectTile(const Source& from)
      : wave_(wave()), offset_(anew(lane_offset(from, row(0), 8 * piece(0)))) {}

  TESSERA_DEVICE void load(const Buffer& from, std::uint32_t lds) const {
    const int own = anew(0);
    each([&](int i) {
      load_to_lds<false>(lds + first(i), from.resource, from.offset(row(i) + own, 8 * piece(i)), 0);
    });
  }
  TESSERA_DEVICE void load_whole(const Source& from, std::uint32_t lds) const {
    const __amdgpu_buffer_rsrc_t buffer = buffer_of(from.first);
    each([&](int i) {
      if constexpr (kSame) {
        load_to_lds<true>(lds + first(i), buffer, offset_,
                          static_cast<std::uint32_t>(i * kRowStep * 2 * from.stride));
      } else {
        load_to_lds<true>(lds + first(i), buffer, lane_offset(from, row(i), 8 * piece(i)), 0);
      }
    });
  }
  // Where rows are not aligned: through registers.
  TESSERA_DEVICE void load(const Scattered& from, std::uint16_t* shared, int place) const {
    const int own = anew(0);
    each([&](int i) {
      at_byte<Words4>(shared, place + static_cast<int>(first(i)) + lane() * 16) =
          from.template load<8>(row(i) + own, 8 * piece(i));
    });
  }

 private:
  // From load to load; the same pieces if the swizzle repeats.
  static constexpr int kRowStep = kWaves * 64 / kPieces;
  static constexpr bool kSame = kWaves * 64 % kPieces == 0 && kRowStep % 16 == 0;

  template <class Do>
  TESSERA_DEVICE void each(Do load) const {
    TESSERA_UNROLL
    for (int i = 0; i < (kLoads + kWaves - 1) / kWaves; ++i)
      if (kLoads % kWaves == 0 || i * kWaves + wave_ < kLoads) load(i);
  }
  TESSERA_DEVICE std::uint32_t first(int i) const {
    return static_cast<std::uint32_t>((i * kWaves + wave_) * 64 * 16);
  }
  TESSERA_DEVICE int number(int i) const { return (i * kWaves + wave_) * 64 + lane(); }
  TESSERA_DEVICE int row(int i) const { return number(i) / kPieces; }
  TESSERA_DEVICE int piece(int i) const {
    return number(i) % kPieces ^ Swizzle<kPieces>::of(row(i));
  }

  const int wave_;
  const std::uint32_t offset_;  // of the first load
};

// Buffers of LDS, each for the keys of a tile and the values of the tile walked before it.
template <class T>
class Staging {
  using Keys = DirectTile<T::kKeys, T::kDim / 8, T::kWaves>;
  using Values = DirectTile<T::kKeys, T::kDimV / 8, T::kWaves>;

 public:
  static constexpr int kBuffers = 3;
  static constexpr int kKeyBytes = Keys::kBytes;
  static constexpr int kBuffer = kKeyBytes + Values::kBytes;

  TESSERA_DEVICE Staging(std::uint16_t* shared, const Source& keys, const Source& values)
      : shared_(shared), keys_(keys), values_(values) {}

  // The first keys, to the last buffer.
  TESSERA_DEVICE void first(const Buffer& keys) { keys_.load(keys, lds()); }
  TESSERA_DEVICE void first(const Scattered& keys) { keys_.load(keys, shared_, to_); }

  // Keys and values on their way to the next buffer; what was started before has arrived.
  template <class From>
  TESSERA_DEVICE void start(const From& keys, const From& values) {
    turn(keys, values);
  }
  TESSERA_DEVICE void turn(const Buffer& keys, const Buffer& values) {
    to_next();
    keys_.load(keys, lds());
    values_.load(values, lds() + kKeyBytes);
    wait_for_others();
  }
  TESSERA_DEVICE void turn(const Scattered& keys, const Scattered& values) {
    to_next();
    keys_.load(keys, shared_, to_);
    values_.load(values, shared_, to_ + kKeyBytes);
  }
  TESSERA_DEVICE void turn_whole(const Source& keys, const Source& values) {
    to_next();
    keys_.load_whole(keys, lds());
    values_.load_whole(values, lds() + kKeyBytes);
    wait_for_others();
  }
  TESSERA_DEVICE void finish() { wait_for_loads<0>(); }

 private:
  TESSERA_DEVICE void wait_for_others() { wait_for_loads<Keys::kFewest + Values::kFewest>(); }
  TESSERA_DEVICE void to_next() { to_ = to_ == (kBuffers - 1) * kBuffer ? 0 : to_ + kBuffer; }
  TESSERA_DEVICE std::uint32_t lds() const {
    return lds_address(shared_) + static_cast<std::uint32_t>(to_);
  }

  std::uint16_t* const shared_;
  int to_ = static_cast<int>(uniform_anew((kBuffers - 1) * kBuffer));
  const Keys keys_;
  const Values values_;
};

// Operands from a buffer.
template <class T>
class Operands {
 public:
  TESSERA_DEVICE explicit Operands(std::uint16_t* shared)
      : shared_(shared),
        key_(anew(key_place(Matrix::column(), half()))),
        value_(anew(value_place())) {}

  TESSERA_DEVICE void go_to(int buffer) { buffer_ = buffer; }

  // Of the n-th 32 keys the u-th 16 numbers.
  TESSERA_DEVICE Matrix::Operand key(int n, int u) const {
    constexpr int kMixed = KeySwizzle::kAmong;
    const int place = (key_ ^ 2 * u % kMixed * 16) + buffer_;
    const int further = (32 * n * kKeyPieces + 2 * u / kMixed * kMixed) * 16;
    return __builtin_bit_cast(Matrix::Operand, at_byte<Words4>(shared_, place + further));
  }
  // Of the m-th 32 columns the t-th 16 keys.
  TESSERA_DEVICE Matrix::Operand value(int m, int t) const {
    constexpr int kMixed = ValueSwizzle::kAmong;
    Matrix::Operand made;
    TESSERA_UNROLL
    for (int c = 0; c < 2; ++c) {
      const int place = (value_ ^ (4 * m % kMixed ^ 2 * c) * 16) + buffer_;
      const int further = ((16 * t + 8 * c) * kValuePieces + 4 * m / kMixed * kMixed) * 16;
      const Words2 words = read_transposed(
          &at_byte<std::uint16_t>(shared_, place + Staging<T>::kKeyBytes + further));
      made.word[2 * c] = words[0];
      made.word[2 * c + 1] = words[1];
    }
    return made;
  }

 private:
  static constexpr int kKeyPieces = T::kDim / 8, kValuePieces = T::kDimV / 8;
  using KeySwizzle = Swizzle<kKeyPieces>;
  using ValueSwizzle = Swizzle<kValuePieces>;

  TESSERA_DEVICE static int key_place(int row, int piece) {
    return (row * kKeyPieces + (piece ^ KeySwizzle::of(row))) * 16;
  }
  // Of each 16 lanes, four read a row each: of 16 columns those of four keys.
  TESSERA_DEVICE static int value_place() {
    const int sixteen = lane() / 16, own = lane() % 16;
    const int row = sixteen / 2 * 4 + own / 4;
    const int piece = sixteen % 2 * 2 + own % 4 / 2;
    return (row * kValuePieces + (piece ^ ValueSwizzle::of(row))) * 16 + own % 2 * 8;
  }

  std::uint16_t* const shared_;
  const int key_, value_;  // of the lane in any tile
  int buffer_ = 0;
};

}  // namespace tessera::hip::matrix
