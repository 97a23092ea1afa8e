#pragma once
// What a kernel of this family is launched with.

#include <cstdint>

#include "backends/hip/decode/config.hpp"
#include "core/kernel/arguments.hpp"
#include "core/kernel/softmax.hpp"

namespace tessera::hip::decode {

// A task is a block of rows of a (batch, key head): a row is one of a query head of the group,
// number position · group + head of the group. Rows in memory have the number (batch · head_q +
// head) · total_q + row; each has `parts` states and unnormalised outputs.
struct Parameters {
  kernel::ForwardArguments arguments;
  float* out = nullptr;                          // [rows][parts][dim_v]; null: one part
  kernel::SoftmaxState<float>* state = nullptr;  // [rows][parts]
  std::int32_t parts = 1;
  std::int32_t row_blocks = 1;  // of a (batch, key head)
  std::int32_t group = 1;       // query heads of a key head
  // Are rows aligned to 16 bytes, and a tile's offsets below 2^31 bytes?
  std::uint32_t fast_q = 0, fast_k = 0, fast_v = 0;
};

}  // namespace tessera::hip::decode
