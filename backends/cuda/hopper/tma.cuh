#pragma once
// TMA: boxes of a tensor from global to shared memory.

#include <cuda.h>

#include <cstdint>

#include "backends/cuda/hopper/mbarrier.cuh"

namespace tessera::cuda::hopper {

// What the L2 cache does with what is read. (volatile: made anew for each use, without a register
// between.)
__device__ __forceinline__ std::uint64_t keep_in_l2() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ std::uint64_t stream_through_l2() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// The box at (dim, seq, head, batch); its bytes arrive at the barrier. What lies outside of the
// tensor is 0.
__device__ __forceinline__ void load_box(void* to, const CUtensorMap& map, const Barrier& barrier,
                                         int dim, int seq, int head, int batch,
                                         std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared_address(to)),
      "l"(&map), "r"(barrier.address()), "r"(dim), "r"(seq), "r"(head), "r"(batch), "l"(policy)
      : "memory");
}

}  // namespace tessera::cuda::hopper
