#pragma once
// The units of this build, and what every operation's dispatch needs to know of a problem.

#include <span>
#include <string>
#include <string_view>

#include <tessera/problem.hpp>

#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/vector/task.hpp"
#include "core/src/backend.hpp"

namespace tessera::kokkos::vector {

// The units of an instruction set, and whether the processor runs them. One that has forward alone
// has no others.
struct Choice {
  const Unit* unit;
  const BackwardUnit* backward;
  const DecodeUnit* decode;
  std::string_view forward_kernel;
  std::string_view backward_kernel;
  std::string_view decode_kernel;
  bool available;
};

// Best first.
std::span<const Choice> choices() noexcept;

// Why this processor or this build cannot run it; empty if it can.
std::string reject(const Choice& choice, const Problem& problem);

// Does the problem ask for the general flavour?
bool general(const Problem& problem);
Flavour flavour(const Problem& problem);
Element element(DType dtype);

// Rows and keys of the longest sequence, and how many sequences there are.
Index most_rows(const Problem& problem);
Index most_keys(const Problem& problem);
// Are some rows' keys more than a stretch, and does that show?
bool by_stretches(const Problem& problem);
Index sequences(const Problem& problem);

// The table's row for these head dimensions: panels and keys at most. The table counts panels of 48
// rows; units of fewer rows take as many more.
template <class Tuning, std::size_t kRows>
constexpr Blocking widest_blocking(const Tuning (&table)[kRows], Index dim, Index dim_v,
                                   Index panel) {
  for (const Tuning& row : table) {
    if (kernel::larger(dim, dim_v) <= row.head_dim)
      return {panel, row.panels48 * 48 / panel, row.keys};
  }
  return {};
}

// Throws DeviceError if a caller's workspace, as large as the plan said, is too small by now.
void check_workspace(const void* workspace, std::size_t needed,
                     const backend::Candidate& candidate);

// Bytes of the block prefix sums of a packed batch.
std::size_t prefix_bytes(const Problem& problem);

// Is the work so little that waking threads would take longer? About 20 us of one.
bool tiny(double flops);

// Calls body(task, thread) for every task; if serial, on this thread alone.
template <class Body>
void run(Index tasks, bool serial, const Stream& stream, Body body) {
  if (serial) {
    for (Index task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  run_tasks(
      tasks, stream,
      [](void* context, Index task, int thread) { (*static_cast<Body*>(context))(task, thread); },
      &body);
}

}  // namespace tessera::kokkos::vector
