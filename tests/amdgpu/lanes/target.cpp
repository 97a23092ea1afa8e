#include "tests/amdgpu/lanes/kernels.hpp"

const char* const tessera_lanes_target = TESSERA_LANES_TARGET;
