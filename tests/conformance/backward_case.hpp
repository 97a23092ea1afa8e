#pragma once
/// Cases of backward.

#include <array>
#include <string>
#include <vector>

#include "tests/conformance/support.hpp"

namespace tessera::testing {

inline constexpr std::array kKeeps{Keep::both, Keep::lse, Keep::nothing};

inline Case gradients(Case c) {
  c.operation = Operation::backward;
  return c;
}

}  // namespace tessera::testing
