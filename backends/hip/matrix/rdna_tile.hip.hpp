#pragma once
// Tiles of a 16-bit operand on their way from memory through registers to LDS: while a block of
// keys is multiplied, the next one's numbers are on their way.

#include <cstdint>

#include "backends/hip/common/gcn.hip.hpp"
#include "backends/hip/matrix/block.hip.hpp"

namespace tessera::hip::matrix {

// LDS   keys      [kKeys, kDim]      rows padded by 8 numbers
//       values    [kDimV, kKeys]     transposed, padded by 4
//
// Padded so, lanes that read one column of neighbouring rows meet no bank twice, and every place is
// a constant away from one address a lane.
template <class T>
struct Padded {
  static constexpr int kKeyPitch = T::kDim + 8;  // numbers
  static constexpr int kValuePitch = T::kKeys + 4;
  static constexpr int kKeyNumbers = T::kKeys * kKeyPitch;
  static constexpr int kNumbers = kKeyNumbers + T::kDimV * kValuePitch;
};

// Keys: rows as they are.
template <class T>
struct KeyTile {
  static constexpr int kDim = T::kDim, kKeys = T::kKeys;
  static constexpr int kChunks = kDim / 8;
  static constexpr int kRowStep = T::kThreads / kChunks;  // rows that all threads load at a time
  static constexpr int kSteps = (kKeys + kRowStep - 1) / kRowStep;
  static constexpr bool kExact = T::kThreads % kChunks == 0 && kKeys % kRowStep == 0;

  struct Registers {
    Words4 words[kSteps];
  };

  template <class From>
  TESSERA_DEVICE static void load(Registers& to, const From& from) {
    TESSERA_UNROLL
    for (int i = 0; i < kSteps; ++i) {
      const int row = row_of(i);
      if (kExact || there(row)) to.words[i] = from.template load<8>(row, 8 * chunk());
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
  TESSERA_DEVICE static int place(int row, int chunk) {
    return row * Padded<T>::kKeyPitch + 8 * chunk;
  }
};

// Values: transposed on their way, so that a lane reads four keys of one column at once. A thread
// has patches of 4 keys × 8 columns.
template <class T>
struct ValueTile {
  static constexpr int kDimV = T::kDimV, kKeys = T::kKeys;
  static constexpr int kGroups = kKeys / 4;
  static constexpr int kPatches = kGroups * kDimV / 8;
  static constexpr int kSteps = (kPatches + T::kThreads - 1) / T::kThreads;

  struct Registers {
    Words4 words[kSteps][4];
  };

  template <class From>
  TESSERA_DEVICE static void load(Registers& to, const From& from) {
    TESSERA_UNROLL
    for (int p = 0; p < kSteps; ++p) {
      const int patch = thread() + p * T::kThreads;
      if (kPatches % T::kThreads != 0 && patch >= kPatches) continue;
      TESSERA_UNROLL
      for (int key = 0; key < 4; ++key)
        to.words[p][key] =
            from.template load<8>(4 * (patch % kGroups) + key, 8 * (patch / kGroups));
    }
  }
  TESSERA_DEVICE static void store(const Registers& from, std::uint16_t* tile) {
    TESSERA_UNROLL
    for (int p = 0; p < kSteps; ++p) {
      const int patch = thread() + p * T::kThreads;
      if (kPatches % T::kThreads != 0 && patch >= kPatches) continue;
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
    return column * Padded<T>::kValuePitch + 4 * group;
  }
};

}  // namespace tessera::hip::matrix
