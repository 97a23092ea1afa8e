#pragma once
// The loop over tasks around every kernel that has them.

#include "backends/hip/common/lds.hip.hpp"
#include "backends/hip/gradient/bias.hip.hpp"
#include "backends/hip/gradient/key.hip.hpp"
#include "backends/hip/gradient/query.hip.hpp"
#include "backends/hip/gradient/rows.hip.hpp"

namespace tessera::hip::gradient {

// The kernel's one argument, where the hardware finds it.
TESSERA_DEVICE const Parameters& parameters() {
  return *(const Parameters*)__builtin_amdgcn_kernarg_segment_ptr();
}

template <class Kernel>
TESSERA_DEVICE void run_tasks(const Parameters&) {
  using Numbers = std::uint16_t[Kernel::kNumbers];
  TESSERA_HIP_LDS(Numbers, shared, 16);
  const Parameters& p = parameters();
  const auto count = static_cast<Index>(p.groups);
  for (Index task = group(); task < p.tasks; task += count) {
    Kernel::run(p, task, shared);
    barrier();  // nobody reads LDS of the task of before any more
  }
}

}  // namespace tessera::hip::gradient
