#pragma once
// Which gradient kernels there are for matrix instructions, and what each keeps where.
//
// None needs another's sums, so that every gradient is written once, by one work-group, in a fixed
// order:
//
//     kernel      a work-group's lanes own         walks over                      gives
//     rows        some rows                                                        lse, δ of each
//     dq          kOwned rows of a query head      tiles of keys                   dQ
//     dk, dv      kOwned keys of a key head        query heads, tiles of rows      dK, dV
//     dkv         likewise                         likewise                        both
//     dbias       kOwned rows of the bias          what it is broadcast over       dbias
//     dsink       a query head                     its rows                        dsink

namespace tessera::hip::gradient {

inline constexpr int kThreads = 256;
inline constexpr int kOwned = 128;  // rows or keys of a work-group, one a lane of a half wave
inline constexpr int kTile = 32;    // keys or rows that it walks over at a time

template <int kDim_, int kDimV_>
struct Shape {
  static constexpr int kDim = kDim_;
  static constexpr int kDimV = kDimV_;
};

using Shape64 = Shape<64, 64>;
using Shape128 = Shape<128, 128>;
using Shape192x128 = Shape<192, 128>;
using Shape192 = Shape<192, 192>;
using Shape256 = Shape<256, 256>;

// A tile of a 16-bit operand in LDS:
//
//     rows       [kTile, kColumns]    padded by 8 numbers: lanes that read one column of
//                                     neighbouring rows meet no bank twice
//     columns    [kColumns, kTile]    transposed, padded by 4
template <int kColumns>
struct TileSpace {
  static constexpr int kRowPitch = kColumns + 8;  // numbers
  static constexpr int kColumnPitch = kTile + 4;
  static constexpr int kRowNumbers = kTile * kRowPitch;
  static constexpr int kColumnNumbers = kColumns * kColumnPitch;
};

}  // namespace tessera::hip::gradient
