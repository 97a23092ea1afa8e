#pragma once
// What a forward kernel whose work-groups each have a block of rows is launched with.

#include <cstdint>

#include "core/kernel/arguments.hpp"
#include "core/kernel/macros.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::hip {

using kernel::Index;

struct ForwardParameters {
  kernel::ForwardArguments arguments;
  kernel::WorkOrder order;
  Index tasks = 0;   // of which each has the rows of one block
  Index groups = 0;  // work-groups launched
  Index dies = 1;    // to which the device deals work-groups in turn, each with a cache of its own
  // Are rows aligned to 16 bytes, and a tile's offsets below 2^31 bytes?
  std::uint32_t fast_q = 0, fast_k = 0, fast_v = 0;
  std::uint32_t aligned_out = 0;  // rows, to what the kernel writes at once

  // Task of the i-th work-group. Work-groups are dealt to dies in turn: each die gets tasks that
  // follow one another, and so read the same keys.
  TESSERA_FN constexpr Index task(Index i) const {
    if (dies == 1) return i;
    const Index a_die = tasks / dies;
    return i < a_die * dies ? i % dies * a_die + i / dies : i;
  }
  // Divides faster where tasks fit 32 bits. Packed: of as many blocks as the longest segment has,
  // of which a shorter one lacks some; there is no prefix, as the compiler sees here.
  TESSERA_FN constexpr kernel::WorkItem item(Index task) const {
    kernel::WorkOrder all = order;
    all.prefix = nullptr;
    return task < (Index{1} << 32) ? all.item(static_cast<std::uint32_t>(task)) : all.item(task);
  }
};

}  // namespace tessera::hip
