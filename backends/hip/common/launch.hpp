#pragma once
// What launches of row-block kernels have in common.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "backends/gpu_common/head_dims.hpp"
#include "backends/gpu_common/problem.hpp"
#include "backends/hip/common/parameters.hpp"
#include "backends/hip/host.hpp"

namespace tessera::hip {

// A family's kernels for head dimensions up to some.
struct Choice {
  std::int64_t dim = 0;      // largest of queries
  std::int64_t dim_v = 0;    // largest of values
  std::string_view shape{};  // in the names of instances
  Index rows = 0, keys = 0;  // of a tile, where one kernel has both
};

// 0 and 0, which hold nothing, where the build lacks the bucket.
template <class S>
constexpr Choice make_choice(std::string_view shape) {
  if (!gpu::is_built(S::kDim)) return {};
  Choice choice{S::kDim, S::kDimV, shape};
  if constexpr (requires { S::kRows + S::kKeys; }) {
    choice.rows = S::kRows;
    choice.keys = S::kKeys;
  }
  return choice;
}

// The first that holds the problem's dimensions; -1 if none does.
template <std::size_t kCount>
int find_choice(const std::array<Choice, kCount>& choices, const Problem& p) {
  for (std::size_t i = 0; i < kCount; ++i)
    if (p.query.extent.dim <= choices[i].dim && p.value.extent.dim <= choices[i].dim_v)
      return static_cast<int>(i);
  return -1;
}

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
