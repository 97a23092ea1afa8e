#pragma once
// Which decode kernels there are.

#include "core/kernel/arguments.hpp"

namespace tessera::hip::decode {

using kernel::Index;

inline constexpr int kWaves = 4;  // of a work-group

// More rows of one query head fill matrix.rows' tiles better: it reads keys once a head, this
// family once a tile of rows.
inline constexpr Index kMostRows = 32;

// Keys of a part are a multiple of this, but the last's: a tile a wave, of either wave size.
inline constexpr Index kPartTile = 128;

// Head dimensions, of queries and of values.
template <int kDim_>
struct Shape {
  static constexpr int kDim = kDim_;
};

using Shape64 = Shape<64>;
using Shape128 = Shape<128>;
using Shape256 = Shape<256>;

}  // namespace tessera::hip::decode
