#pragma once
// Blocking of the vector path's backward by head dimension: a chunk of rows (queries and their
// gradients, twice) and a block of keys in the second-level cache, a panel's weights in the first.

#include "core/kernel/arguments.hpp"

namespace tessera::kokkos::vector {

// Up to this bucket of max(dim, dim_v): panels a chunk and keys a block for units of 48 rows a
// panel; units of fewer rows take as many more panels.
struct BackwardTuning {
  kernel::Index head_dim;
  kernel::Index panels48;
  kernel::Index keys;
};

inline constexpr BackwardTuning kBackwardTuning[] = {
    {64, 22, 128},
    {128, 16, 128},
    {256, 8, 64},
};

}  // namespace tessera::kokkos::vector
