#pragma once
// Where things lie in the workspace of the generic kernels, without Kokkos.

#include <algorithm>
#include <cstddef>

#include <tessera/problem.hpp>

#include "backends/kokkos/generic/config.hpp"
#include "backends/kokkos/parallel.hpp"
#include "core/kernel/arguments.hpp"

namespace tessera::kokkos::generic {

// Packed: where each segment's blocks begin among all of them.
inline std::size_t prefix_bytes(const Problem& p) {
  return p.packed ? (static_cast<std::size_t>(p.packed->segments) + 1) * sizeof(kernel::Index) : 0;
}

// Of all teams that run at once, where it is not Kokkos that provides their memory: see
// run_teams().
inline double team_memory(const Problem& p) {
  if (!host_space()) return 0;
  const Index dim = p.query.extent.dim, dim_v = p.value.extent.dim;
  std::size_t most = Scratch::of(dim, dim_v).bytes();
  if (p.operation == Operation::backward) {
    // The most that a kernel sums up: dK and dV of a block, or a block of dbias.
    const Index sums = std::max<Index>(Index{kKeys} * (dim + dim_v), Index{kRows} * kKeys);
    most = std::max(most, GradientScratch::of(dim, dim_v, sums).bytes());
  }
  return static_cast<double>(team_stride(most)) * threads();
}

// Offsets in bytes. Forward and decode have row_prefix and teams alone.
struct Workspace {
  std::size_t lse = 0;  // statistics of every row, fp32
  std::size_t delta = 0;
  std::size_t out = 0;        // what forward gave, where the caller did not keep it
  std::size_t lse_given = 0;  // likewise
  std::size_t row_prefix = 0;
  std::size_t key_prefix = 0;
  std::size_t teams = 0;
  std::size_t size = 0;

  static Workspace of(const Problem& p) {
    const double rows = static_cast<double>(p.query.extent.batch) *
                        static_cast<double>(p.query.extent.head) *
                        static_cast<double>(p.query.extent.seq);
    Workspace w;
    w.row_prefix = w.take(static_cast<double>(prefix_bytes(p)));
    w.teams = w.take(team_memory(p));
    if (p.operation != Operation::backward) return w;
    w.key_prefix = w.take(static_cast<double>(prefix_bytes(p)));
    w.lse = w.take(rows * sizeof(float));
    w.delta = w.take(rows * sizeof(float));
    if (!p.out) {
      w.out = w.take(rows * static_cast<double>(p.value.extent.dim * size_of(p.query.dtype)));
      if (!p.lse) w.lse_given = w.take(rows * sizeof(float));
    }
    return w;
  }

 private:
  // Sizes come from problems that nobody has allocated yet: what does not fit in memory saturates.
  std::size_t take(double bytes) {
    constexpr double kMost = 9e15;
    constexpr std::size_t kStep = 128;
    const std::size_t at = size;
    const double total = static_cast<double>(size) + (bytes < kMost ? bytes : kMost);
    size = (static_cast<std::size_t>(total < kMost ? total : kMost) + kStep - 1) / kStep * kStep;
    return at;
  }
};

}  // namespace tessera::kokkos::generic
