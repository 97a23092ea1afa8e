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

inline Case packed(const char* label, DType dtype, const std::vector<std::int64_t>& q,
                   const std::vector<std::int64_t>& k, std::int64_t dim, const Mask& mask = {}) {
  return {.label = label,
          .dtype = dtype,
          .dim = dim,
          .dim_v = dim,
          .mask = mask,
          .layout = Layout::bshd,
          .packed = true,
          .lengths_q = q,
          .lengths_k = k,
          .operation = Operation::backward};
}

}  // namespace tessera::testing
