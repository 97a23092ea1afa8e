#pragma once
// Operands as TMA sees them.

#include <string>

#include <tessera/problem.hpp>

#include "backends/cuda/hopper/launch.hpp"

namespace tessera::cuda::hopper {

// Why TMA cannot read the operand called `name`; empty if it can.
std::string reject_operand(const char* name, const TensorSpec& spec);

// Boxes of `rows` rows and 64 columns of an operand [batch, heads, seq, dim], which is not
// rejected.
Map make_map(const kernel::Operand<const void>& operand, DType dtype, Index batch, Index heads,
             Index seq, Index dim, int rows);

}  // namespace tessera::cuda::hopper
