#pragma once
// The three orders in which waves run, as test parameters.

#include <array>
#include <string>

#include "tests/amdgpu/lanes/work_group.hpp"

namespace tessera::amdgpu::lanes {

inline constexpr std::array kOrders{Order::Forward, Order::Reverse, Order::Random};

inline std::string name_of(Order order) {
  return order == Order::Forward ? "forward" : order == Order::Reverse ? "reverse" : "random";
}

}  // namespace tessera::amdgpu::lanes
