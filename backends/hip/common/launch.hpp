#pragma once
// What launches of row-block kernels have in common.

#include <algorithm>

#include "backends/gpu_common/problem.hpp"
#include "backends/hip/common/parameters.hpp"
#include "backends/hip/host.hpp"

namespace tessera::hip {

// Is every row aligned to 16 bytes, and every offset in a block of rows below 2^31 bytes?
inline bool is_fast(const TensorSpec& spec, Index rows) {
  const auto size = static_cast<Index>(size_of(spec.dtype));
  return gpu::rows_aligned(spec) && spec.stride.seq >= 0 &&
         spec.stride.seq < (Index{1} << 31) / (size * rows) - spec.extent.dim;
}

// XCDs, each with an L2 of its own, to which work-groups are dealt in turn.
inline Index dies_of(const Device& device) {
  const bool several =
      device.generation == Generation::Cdna3 || device.generation == Generation::Cdna4;
  return several ? 8 : 1;
}

// Of a launch whose tasks have `rows` rows each and walk over `keys` keys at a time; `each`: tasks
// that share a block of rows.
inline ForwardParameters forward_parameters(const Launch& launch, Index rows, Index keys,
                                            unsigned threads, Index each,
                                            std::int64_t aligned_out) {
  const Problem& problem = launch.problem;
  kernel::WorkOrder order = kernel::work_order(launch.arguments, rows, nullptr);
  order.prefix = nullptr;  // packed: as many blocks as the longest segment has
  // A launch has fewer than 2^32 threads: a work-group takes up what is beyond in turn.
  const Index most = (Index{1} << 32) / threads - 1, tasks = order.size() * each;
  const bool together = order.heaviest == kernel::Heaviest::None;
  return {.arguments = launch.arguments,
          .order = order,
          .tasks = tasks,
          .groups = std::min(most, tasks),
          .dies = together ? dies_of(launch.device) : 1,
          .fast_q = is_fast(problem.query, rows),
          .fast_k = is_fast(problem.key, keys),
          .fast_v = is_fast(problem.value, keys),
          .aligned_out = gpu::rows_aligned(*problem.out, aligned_out)};
}

}  // namespace tessera::hip
