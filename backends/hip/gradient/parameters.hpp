#pragma once
// What a kernel of this family is launched with.

#include <cstdint>

#include "core/kernel/arguments.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::hip::gradient {

using kernel::Index;

// Of every row, [batch][head_q][total_q] as the rows lie in memory.
struct Statistics {
  float* lse = nullptr;    // base 2; +∞: the row sees nothing
  float* delta = nullptr;  // rowsum(dO∘O) − dlse
};

struct Parameters {
  kernel::BackwardArguments arguments;
  Statistics statistics;
  kernel::WorkOrder order;  // dq, dk, dv: of blocks of kOwned rows or keys
  Index tasks = 0;
  Index groups = 0;  // work-groups launched
  // Are rows aligned to 16 bytes, and offsets in a block of kOwned of them below 2^31 bytes?
  std::uint32_t fast_q = 0, fast_k = 0, fast_v = 0, fast_dout = 0;
  std::uint32_t fast_out = 0;                                    // likewise
  std::uint32_t aligned_dq = 0, aligned_dk = 0, aligned_dv = 0;  // rows, to 8 bytes
};

}  // namespace tessera::hip::gradient
