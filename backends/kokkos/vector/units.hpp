#pragma once
// The units of this build, and what every operation's dispatch needs to know of a problem.

#include <span>
#include <string>
#include <string_view>

#include <tessera/problem.hpp>

#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/vector/task.hpp"

namespace tessera::kokkos::vector {

// The units of an instruction set, and whether the processor runs them.
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

constexpr Index round_up(Index x, Index multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

// Rows of the longest sequence, and how many sequences there are.
Index most_rows(const Problem& problem);
Index sequences(const Problem& problem);

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
