#pragma once
// In the place of backends/hip/common/opaque.hip.hpp, which is for the compiler's eyes only.

#include <cstdint>

#include "backends/hip/common/gcn.hip.hpp"

namespace tessera::hip {

TESSERA_DEVICE int anew(int x) { return x; }
TESSERA_DEVICE std::uint32_t anew(std::uint32_t x) { return x; }
TESSERA_DEVICE std::int64_t uniform_anew(std::int64_t x) { return x; }
TESSERA_DEVICE float opaque(float x) { return x; }

template <class Parameters>
TESSERA_DEVICE const Parameters& argument_anew() {
  return kernel_argument<Parameters>();
}

}  // namespace tessera::hip
