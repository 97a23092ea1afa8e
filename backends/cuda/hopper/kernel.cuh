#pragma once
// FlashAttention forward (Dao 2023, arXiv:2307.08691; Shah et al. 2024, arXiv:2407.08608) for
// sm_90a: a block stays on its multiprocessor and takes one task after another; one warpgroup loads
// by TMA, the others multiply by wgmma and weigh. O never leaves registers before it is done.

#include "backends/cuda/common/element.cuh"
#include "backends/cuda/hopper/consumer.cuh"
#include "backends/cuda/hopper/loader.cuh"

namespace tessera::cuda::hopper {

template <class S>
__device__ __forceinline__ void init_barriers(Shared<S>& s, bool cleaner) {
  constexpr int kConsumerWarps = 4 * S::kWarpgroups;
  for (int i = 0; i < S::kQueryStages; ++i) {
    s.opened[i].init(1);
    s.q_full[i].init(1);
    s.q_empty[i].init(kConsumerWarps + (cleaner ? 1 : 0));
  }
  for (int i = 0; i < S::kStages; ++i) {
    s.k_full[i].init(1);
    s.k_empty[i].init(kConsumerWarps);
    s.v_full[i].init(1);
    s.v_empty[i].init(kConsumerWarps);
    s.v_landed[i].init(1);
  }
  fence_barrier_init();
}

template <class Element, class S, bool kGeneral>
__global__ void __launch_bounds__(S::kThreads, 1) forward(const __grid_constant__ Parameters p) {
  extern __shared__ __align__(1024) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<S>*>(memory);
  if (threadIdx.x == 0) init_barriers<S>(shared, p.clean_keys);
  __syncthreads();
  const int warpgroup = uniform(static_cast<int>(threadIdx.x) / 128);
  if (warpgroup == 0) {
    give_registers<S::kLoaderRegisters>();
    const int warp = uniform(static_cast<int>(threadIdx.x) / 32);
    if (warp == 0) {
      if (elect_one()) Loader<S>(shared, p).run();
    } else if (warp == 1 && p.clean_keys) {
      Cleaner<S>(shared, p, static_cast<int>(threadIdx.x) % 32).run();
    }
  } else {
    take_registers<S::kConsumerRegisters>();
    Consumer<Element, S, kGeneral>(shared, p, warpgroup - 1).run();
  }
}

}  // namespace tessera::cuda::hopper
