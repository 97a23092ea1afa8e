#pragma once
// What runs before a packed batch's kernel: as kernel::build_block_prefix, by one block of threads.

#include "core/kernel/work_order.hpp"

namespace tessera::cuda::hopper {

inline constexpr int kPrepareThreads = 1024;

// prefix[s] = blocks of `rows` rows of the segments before s, s in [0, batch]. `counter` becomes 0.
__global__ void __launch_bounds__(kPrepareThreads)
    prepare_packed(const kernel::ForwardArguments a, kernel::Index rows, kernel::Index* prefix,
                   int* counter) {
  using kernel::Index;
  __shared__ Index sums[kPrepareThreads];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    *counter = 0;
    prefix[0] = 0;
  }
  Index before = 0;
  for (Index first = 0; first < a.batch; first += kPrepareThreads) {
    const Index segment = first + thread;
    Index sum =
        segment < a.batch ? kernel::count_blocks(kernel::sequence(a, segment).rows, rows) : 0;
    sums[thread] = sum;
    for (int distance = 1; distance < kPrepareThreads; distance *= 2) {
      __syncthreads();
      const Index other = thread >= distance ? sums[thread - distance] : 0;
      __syncthreads();
      sum += other;
      sums[thread] = sum;
    }
    __syncthreads();
    if (segment < a.batch) prefix[segment + 1] = before + sum;
    before += sums[kPrepareThreads - 1];
    __syncthreads();
  }
}

}  // namespace tessera::cuda::hopper
