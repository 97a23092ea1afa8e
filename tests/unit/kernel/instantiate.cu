// core/kernel as nvcc sees it, for the device and for the host.

#include "tests/unit/kernel/instantiate.hpp"

namespace tessera::testing {

__global__ void compute_on_device(kernel::ForwardArguments a, kernel::Index* prefix,
                                  float* result) {
  float out[2] = {0, 0};
  kernel::compute_task<kernel::ScalarLanes>(a, blockIdx.x, prefix, static_cast<int>(threadIdx.x),
                                            out);
  result[0] = out[0];
  result[1] = out[1];
}

void compute_on_host(const kernel::ForwardArguments& a, kernel::Index* prefix, float (&out)[2]) {
  kernel::compute_task<kernel::ScalarLanes>(a, 0, prefix, 0, out);
}

}  // namespace tessera::testing
