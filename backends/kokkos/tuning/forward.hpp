#pragma once
// Blocking of the vector path's forward by head dimension. Smaller than a cache level each: score
// tile and query panel (L1), panels and blocks (L2). Every row fits 1 MiB a thread, checked where
// it is used.

#include "core/kernel/arguments.hpp"

namespace tessera::kokkos::vector {

// Up to this bucket of max(dim, dim_v): panels a task and keys a block for units of 48 rows a
// panel; units of fewer rows take as many more panels.
struct ForwardTuning {
  kernel::Index head_dim;
  kernel::Index panels48;
  kernel::Index keys;
};

inline constexpr ForwardTuning kForwardTuning[] = {
    {64, 8, 64},
    {128, 8, 64},
    {256, 4, 64},
    {512, 1, 64},
};

}  // namespace tessera::kokkos::vector
