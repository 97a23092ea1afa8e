#pragma once
// The launch of one instance; an instance's file instantiates `run`.

#include <algorithm>

#include "backends/cuda/host.hpp"
#include "backends/cuda/simt/kernel.cuh"

namespace tessera::cuda::simt {

template <class Element, int kDim, Lines kLines>
void run(const Work& work, Index tasks, const char* name, void* stream) {
  using T = Traits<Element, kDim, kLines>;
  // Kernels stride over what a grid cannot hold.
  const auto launch = [&](void (*kernel)(Work), Index blocks, std::size_t shared) {
    cudaLaunchConfig_t config{};
    config.gridDim = static_cast<unsigned>(std::clamp<Index>(blocks, 1, Index{1} << 30));
    config.blockDim = kThreads;
    config.dynamicSmemBytes = shared;
    config.stream = static_cast<cudaStream_t>(stream);
    check(cudaLaunchKernelEx(&config, kernel, work), name);
  };
  constexpr std::size_t kShared = sizeof(typename T::Shared);
  check(cudaFuncSetAttribute(attend_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(kShared)),
        name);
  launch(attend_kernel<T>, tasks * work.partials.parts, kShared);
  if constexpr (kLines == Lines::OfGroup) {
    if (work.partials.parts > 1) launch(merge_kernel<T>, tasks * T::kRows, 0);
  }
}

}  // namespace tessera::cuda::simt
