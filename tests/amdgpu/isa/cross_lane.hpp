#pragma once

#include "tests/amdgpu/isa/state.hpp"

namespace tessera::amdgpu {

// Prepares a DPP instruction: the first source as its lanes will see it, and the lanes it writes.
void select_lanes(Wave& w, const Instruction& in);

}  // namespace tessera::amdgpu
