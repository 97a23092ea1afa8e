#pragma once
// What runs now, for messages and checks.

#include <string>

namespace tessera::amdgpu::lanes {

int current_wave();
unsigned current_group();

// Function and line of a call's return address, and in what they were inlined.
std::string place_of(const void* site);

}  // namespace tessera::amdgpu::lanes
