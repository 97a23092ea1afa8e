#pragma once
// In the place of backends/hip/common/dpp.hip.hpp, which is assembly.

#include "backends/hip/common/gcn.hip.hpp"

namespace tessera::hip {

template <int kLane>
TESSERA_DEVICE void add_product_of_lane(float& sum, float a, float b) {
  using namespace amdgpu::lanes;
  sum = __builtin_fmaf(meet<float>(kShareInRow, FromLane{kLane, a}), b, sum);
}

}  // namespace tessera::hip
