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

// Xeon (Ice Lake) 2.8 GHz, one thread, seq 2048, best of 20 rounds, share of the FMA peak,
// 2026-11-29, beside other work: the best rounds, not the medians.
inline constexpr ForwardTuning kForwardTuning[] = {
    {64, 22, 128},   // avx512 79 % full, 75 % causal; 8 x 64: 76 %, 74 %
    {128, 11, 128},  // avx512 81 %, 77 %; avx2 83 %, 75 %; 8 x 64: 78 %, 77 %
    {256, 4, 64},    // not measured
    {512, 3, 32},    // not measured
};

}  // namespace tessera::kokkos::vector
