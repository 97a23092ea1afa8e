#pragma once
// RDNA's instructions whose operand comes from another lane. clang folds a move between lanes into
// the instruction that uses it only where they are a few instructions apart.

#include "backends/hip/common/gcn.hip.hpp"

namespace tessera::hip {

// sum += a · b, a of lane kLane of the 16 lanes that the lane is among. gfx11: none of them may
// come straight from an exponential or the like: clang, which makes its users wait, does not look
// in here.
template <int kLane>
TESSERA_DEVICE void add_product_of_lane(float& sum, float a, float b) {
  asm("v_fmac_f32_dpp %0, %1, %2 row_share:%3 row_mask:0xf bank_mask:0xf"
      : "+v"(sum)
      : "v"(a), "v"(b), "n"(kLane));
}

}  // namespace tessera::hip
