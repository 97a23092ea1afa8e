#pragma once
// Tiles of a 16-bit operand in shared memory: rows of kDim numbers, whose 16-byte chunks are
// permuted within each eight by the row, so that neither copies nor ldmatrix meet bank conflicts.

#include <cstdint>

#include "backends/cuda/common/fragment.cuh"
#include "backends/cuda/mma/ptx.cuh"

namespace tessera::cuda::mma {

template <int kDim>
struct Tile {
  static_assert(kDim % 64 == 0);
  static constexpr int kRowBytes = 2 * kDim;

  std::uint32_t base;  // address in shared memory, a multiple of 128

  // Address of the chunk that `at` starts from: `chunk` in [0, 8).
  __device__ __forceinline__ std::uint32_t address(int row, int chunk) const {
    return base + static_cast<std::uint32_t>(row * kRowBytes + 16 * (chunk ^ (row & 7)));
  }
  // `row` rows, a multiple of 8, and `chunk` chunks on, neither of which carries into the other's
  // bits: an immediate offset and an exclusive or.
  __device__ __forceinline__ static std::uint32_t at(std::uint32_t address, int row, int chunk) {
    return (address ^ static_cast<std::uint32_t>(16 * (chunk % 8))) +
           static_cast<std::uint32_t>(row * kRowBytes + chunk / 8 * 128);
  }
};

// Where a tile's rows come from: `first` is row 0 of the tile, rows [begin, end) of the tile exist.
struct Source {
  const std::uint16_t* first;
  Index stride;
  int begin, end;
  int columns;   // that exist from `first` on; what is beyond, and rows that do not exist, are 0
  bool aligned;  // every row, to 16 bytes
};

__device__ __forceinline__ void store_zero_or(std::uint32_t to, const std::uint16_t* from,
                                              bool there) {
  std::uint32_t word[4] = {0, 0, 0, 0};
  if (there) {
    TESSERA_UNROLL
    for (int k = 0; k < 8; ++k)
      word[k / 2] |= static_cast<std::uint32_t>(from[k]) << (16 * (k % 2));
  }
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(word[0]), "r"(word[1]),
               "r"(word[2]), "r"(word[3])
               : "memory");
}

// Starts copying; rows that are not aligned are there on return, the others once waited for. Eight
// threads copy 128 bytes of a row; a thread's rows are a multiple of eight apart, so that all of
// its chunks lie at constant distances.
template <int kDim, int kRows, int kThreads>
__device__ __forceinline__ void load(const Tile<kDim>& tile, const Source& from) {
  constexpr int kRowStep = kThreads / 8;
  static_assert(kRowStep % 8 == 0 && kRows % kRowStep == 0);
  const int first_row = static_cast<int>(threadIdx.x) / 8;
  const int first_chunk = static_cast<int>(threadIdx.x) % 8;
  const std::uint32_t to = tile.address(first_row, first_chunk);
  const std::uint16_t* data = from.first + first_row * from.stride + 8 * first_chunk;
  const int columns = from.columns - 8 * first_chunk;
  if (from.aligned) {
    TESSERA_UNROLL
    for (int row = 0; row < kRows; row += kRowStep) {
      const bool there = first_row + row >= from.begin && first_row + row < from.end;
      TESSERA_UNROLL
      for (int c = 0; c < kDim; c += 64)
        copy_async(to + static_cast<std::uint32_t>(2 * (row * kDim + c)), data + c,
                   there && c < columns);
      data += kRowStep * from.stride;
    }
  } else {
    for (int row = 0; row < kRows; row += kRowStep) {
      const bool there = first_row + row >= from.begin && first_row + row < from.end;
      for (int c = 0; c < kDim; c += 64)
        store_zero_or(to + static_cast<std::uint32_t>(2 * (row * kDim + c)), data + c,
                      there && c < columns);
      data += kRowStep * from.stride;
    }
  }
}

}  // namespace tessera::cuda::mma
