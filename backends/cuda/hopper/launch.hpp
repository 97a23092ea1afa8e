#pragma once
// What a kernel of this family is launched with, and where it is.

#include <cuda.h>

#include "core/kernel/arguments.hpp"
#include "core/kernel/modifiers.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::cuda::hopper {

using kernel::Index;

// An operand as TMA sees it: dim, seq, head, batch. An axis along which it is repeated has extent 1
// there.
struct Map {
  CUtensorMap tensor;
  bool repeats_head;
  bool repeats_batch;
};

struct Parameters {
  Map query, key, value;
  kernel::ForwardArguments arguments;
  kernel::WorkOrder order;

  int group;     // query heads that share a key head
  int section;   // heads whose keys and values stay in L2 together; 0: `order` stands
  int tasks;     // packed: the order's size is known on the device alone
  int* counter;  // of tasks beyond a block's first, 0 at the start; null: dealt in equal steps
  float scale;   // of products, in base 2; plain flavour alone
  // The general flavour's alone. In constant memory, where they cost no register.
  kernel::ScoreModifiers modifiers;  // but for the slope of ALiBi, which is a head's
  float keep_scale;                  // of weights that dropout keeps

  bool clean_keys;  // may keys outside of the sequence hold something?
};

// The kernel's handle, and what a block of it asks for. Each instantiation is a file of its own.
struct Kernel {
  const void* function = nullptr;
  std::size_t shared = 0;
};
template <class Element, class S, bool kGeneral>
Kernel kernel_of();

}  // namespace tessera::cuda::hopper
