#pragma once
// The second kernel of decode: the parts of a row become its output, in their order. A work-group
// has a row.

#include "backends/hip/common/lds.hip.hpp"
#include "backends/hip/decode/result.hip.hpp"

namespace tessera::hip::decode {

struct MergeMemory {
  State state[kernel::kMaxParts];
  float factor[kernel::kMaxParts];
};
static_assert(kThreads >= kernel::kMaxParts, "a thread a part");

template <class Element>
struct MergeKernel {
  static constexpr int kAtOnce = 4;

  TESSERA_DEVICE static void run() {
    TESSERA_HIP_LDS(MergeMemory, shared, alignof(MergeMemory));
    const auto& p = kernel_argument<Parameters>();
    const kernel::ForwardArguments& a = p.arguments;
    const Place place(p, group() / kRows);
    const kernel::Sequence s = uniform(kernel::sequence(a, place.batch));
    const QueryRow row(p, place.key_head, place.row_first + static_cast<int>(group() % kRows));
    if (row.position >= s.rows) return;
    const auto columns = static_cast<int>(a.dim_v);
    const Index first = memory_row(a, s, row) * p.parts;
    if (thread() < p.parts) shared.state[thread()] = p.state[first + thread()];
    barrier();
    const State all = kernel::merge_parts<GcnLanes>(shared.state, p.parts);
    const Finished f = conclude(a, all, row.head, row.position < s.query_end);
    if (thread() < p.parts)
      shared.factor[thread()] =
          f.factor * kernel::part_factor<GcnLanes>(all, shared.state[thread()]);
    barrier();
    const Line line(a, s, row);
    for (int d = thread(); d < columns; d += kThreads) {
      const float* const part = p.out + first * columns + d;
      float sum = 0;
#pragma unroll 8
      for (int k = 0; k < p.parts; ++k) sum += shared.factor[k] * part[k * columns];
      line.put<Element>(d, f.seen ? sum : 0.0f);
    }
    if (thread() == 0) line.put_lse(f.lse);
  }
};

}  // namespace tessera::hip::decode
