#pragma once
// What a kernel of this family is launched with, and where it is.

#include "core/kernel/arguments.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::cuda::mma {

using kernel::Index;

struct Parameters {
  kernel::ForwardArguments arguments;
  kernel::WorkOrder order;
  Index tasks;      // of which each has the rows of one block
  int value_parts;  // blocks that share a task's rows, each with its columns of values
  bool aligned_q, aligned_k, aligned_v, aligned_out;  // rows, to 16 bytes
};

// The kernel's handle. Each instantiation is a file of its own.
template <class Element, class S, bool kGeneral>
const void* kernel_of();

}  // namespace tessera::cuda::mma
