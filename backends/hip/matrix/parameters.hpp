#pragma once
// What a kernel of this family is launched with.

#include <cstdint>

#include "core/kernel/arguments.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::hip::matrix {

using kernel::Index;

struct Parameters {
  kernel::ForwardArguments arguments;
  kernel::WorkOrder order;
  Index tasks = 0;   // of which each has the rows of one block
  Index groups = 0;  // work-groups launched
  Index dies = 1;    // to which the device deals work-groups in turn, each with a cache of its own
  // Are rows aligned to 16 bytes, and a tile's offsets below 2^31 bytes?
  std::uint32_t fast_q = 0, fast_k = 0, fast_v = 0;
  std::uint32_t aligned_out = 0;  // rows, to 8 bytes
};

}  // namespace tessera::hip::matrix
