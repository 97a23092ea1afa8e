#pragma once
// Sizes of the generic kernels, without Kokkos.

#include <cstddef>

#include "core/kernel/arguments.hpp"
#include "core/kernel/macros.hpp"

namespace tessera::kokkos::generic {

using kernel::Index;

// Query rows of a team, or of a step.
inline constexpr int kRows = 32;
// Keys of a step, or of a team; a multiple of 8, so that dropout's groups of columns fit.
inline constexpr int kKeys = 32;
// Query rows that a thread computes at a time.
inline constexpr int kGroup = 4;
// Dims that are summed apart: long sums of fp32 lose less in short runs.
inline constexpr int kRun = 16;
// Of the team's scratch memory, in bytes.
inline constexpr int kAlign = 64;
// From one team's to the next's where they lie side by side.
TESSERA_FN constexpr std::size_t team_stride(std::size_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

// Forward's scratch memory of a team, offsets in floats:
//
//     query   [kRows][dim]                      the block's rows
//     out     [kRows][dim_v]                    O, not yet divided by the sum
//     score   [kRows][kKeys]                    Q·Kᵀ of the step, then the weights P
//     max, sum, factor   [kRows]                softmax state; what scales O before P·V is added
//     sum_rest, rest     [kRows], [kRows][dim_v]  what rounding took from the sum and from O
//     tile    [dim][kKeys], then [kKeys][dim_v] the step's keys, transposed, then its values
struct Scratch {
  Index query = 0;
  Index out = 0;
  Index score = 0;
  Index max = 0;
  Index sum = 0;
  Index factor = 0;
  Index sum_rest = 0;
  Index rest = 0;
  Index tile = 0;
  Index size = 0;

  TESSERA_FN static constexpr Scratch of(Index dim, Index dim_v) {
    Scratch s;
    s.out = s.query + kRows * dim;
    s.score = s.out + kRows * dim_v;
    s.max = s.score + kRows * kKeys;
    s.sum = s.max + kRows;
    s.factor = s.sum + kRows;
    s.sum_rest = s.factor + kRows;
    s.rest = s.sum_rest + kRows;
    s.tile = s.rest + kRows * dim_v;
    s.size = s.tile + kKeys * (dim > dim_v ? dim : dim_v);
    return s;
  }
  TESSERA_FN constexpr std::size_t bytes() const {
    return static_cast<std::size_t>(size) * sizeof(float);
  }
};

// Backward's, the same for all its kernels but for what they sum:
//
//     query    [kRows][dim]      the rows of the tile, and their gradients of O
//     dout     [kRows][dim_v]
//     key      [dim][kKeys]      the keys of the tile, transposed, and their values
//     value    [dim_v][kKeys]
//     weight   [kRows][kKeys]    Q·Kᵀ, then what dropout left of the weights P
//     gradient [kRows][kKeys]    dO·Vᵀ, then dS
//     lse, delta   [kRows]       the rows' statistics
//     kept     [kRows]           which weights dropout keeps: a bit a key
//     sum                        what the kernel adds up
//     rest                       what rounding took from it
struct GradientScratch {
  Index query = 0;
  Index dout = 0;
  Index key = 0;
  Index value = 0;
  Index weight = 0;
  Index gradient = 0;
  Index lse = 0;
  Index delta = 0;
  Index kept = 0;
  Index sum = 0;
  Index rest = 0;
  Index size = 0;

  TESSERA_FN static constexpr GradientScratch of(Index dim, Index dim_v, Index sums) {
    GradientScratch s;
    s.dout = s.query + kRows * dim;
    s.key = s.dout + kRows * dim_v;
    s.value = s.key + dim * kKeys;
    s.weight = s.value + dim_v * kKeys;
    s.gradient = s.weight + kRows * kKeys;
    s.lse = s.gradient + kRows * kKeys;
    s.delta = s.lse + kRows;
    s.kept = s.delta + kRows;
    s.sum = s.kept + kRows * kKeys / 32;
    s.rest = s.sum + sums;
    s.size = s.rest + sums;
    return s;
  }
  TESSERA_FN constexpr std::size_t bytes() const {
    return static_cast<std::size_t>(size) * sizeof(float);
  }
};

// Neighbouring numbers that one lane computes at once: a float on a device, a vector register on a
// host, spelled out because host compilers else vectorise along the wrong loop.
template <int kWidth>
struct Pack {
  using Part = float __attribute__((vector_size(16)));
  static constexpr int kPart = 4;
  static_assert(kWidth % kPart == 0);
};
template <>
struct Pack<1> {
  using Part = float;
  static constexpr int kPart = 1;
};

}  // namespace tessera::kokkos::generic
