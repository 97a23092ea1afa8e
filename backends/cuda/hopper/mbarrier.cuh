#pragma once
// mbarrier: a barrier in shared memory that waits for arrivals and for the bytes that TMA brings.

#include <cstdint>

#include "backends/cuda/hopper/ptx.cuh"

namespace tessera::cuda::hopper {

// A phase ends when `count` arrivals and all expected bytes have come; phases are waited for by
// their parity, the first is 0.
struct Barrier {
  std::uint64_t state;

  __device__ __forceinline__ std::uint32_t address() const { return shared_address(&state); }

  __device__ __forceinline__ void init(std::uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(count) : "memory");
  }
  __device__ __forceinline__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
  }
  __device__ __forceinline__ void arrive_expecting(std::uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()),
                 "r"(bytes)
                 : "memory");
  }
  // The wait has a time limit of the machine's, after which it says false.
  __device__ __forceinline__ bool try_wait(std::uint32_t parity) const {
    std::uint32_t done;
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(address()), "r"(parity)
        : "memory");
    return done != 0;
  }
  __device__ __forceinline__ void wait(std::uint32_t parity) const {
    while (!try_wait(parity)) {
    }
  }
};

// The initialised barriers become visible to TMA.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// A place in a ring of buffers and the parity of the phase that is waited for there; who waits for
// a buffer to be empty waits for the other parity.
template <int kStages>
struct Ring {
  int stage = 0;
  std::uint32_t phase = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

}  // namespace tessera::cuda::hopper
