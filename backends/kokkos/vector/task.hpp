#pragma once
// What the units of the vector path are given, and how a thread's scratch memory is laid out.
// Shared by all units and their caller: nothing here depends on an instruction set.

#include "core/kernel/arguments.hpp"
#include "core/kernel/sequence.hpp"

namespace tessera::kokkos::vector {

using kernel::Index;

// Shape of the work of a task. One head of one sequence, up to `panels` panels of rows; keys in
// blocks of `keys`.
struct Blocking {
  Index panel = 0;   // rows a panel: the unit's
  Index panels = 0;  // panels a task at most
  Index keys = 0;    // keys a block: a multiple of 8
};

// Rows [row_first, row_last) of head `head` of one sequence.
struct ForwardTask {
  const kernel::ForwardArguments* arguments = nullptr;
  const kernel::Sequence* sequence = nullptr;
  Index batch = 0;  // packed: the segment
  Index head = 0;
  Index row_first = 0;
  Index row_last = 0;
  Blocking blocking;
  float* scratch = nullptr;
};

// A thread's scratch memory, in floats; every part is a multiple of a cache line long. [x] is x
// numbers.
//
//     query   panels x [dim][panel]       scaled queries, one a lane
//     out     panels x [dim_v][panel]     unnormalised outputs
//     max     panels x [panel]            softmax states
//     sum     panels x [panel]
//     key     [keys / group][dim][group]  the current block
//     value   [dim_v / group][keys][group]
//     score   [keys][panel]               scores, then weights of the current panel
//     bias    [keys][panel]               general flavour only
//     mask    [keys][panel]
struct Scratch {
  Index query = 0, out = 0, max = 0, sum = 0, key = 0, value = 0, score = 0, bias = 0, mask = 0,
        size = 0;
};

TESSERA_FN constexpr Scratch layout(const Blocking& b, Index dim, Index dim_v, bool general) {
  constexpr Index kLine = 32;  // floats: two cache lines, what the adjacent-line prefetcher fetches
  Index next = 0;
  const auto take = [&next](Index floats) {
    const Index at = next;
    next += (floats + kLine - 1) / kLine * kLine;
    return at;
  };
  Scratch s;
  s.query = take(b.panels * b.panel * dim);
  s.out = take(b.panels * b.panel * dim_v);
  s.max = take(b.panels * b.panel);
  s.sum = take(b.panels * b.panel);
  s.key = take(b.keys * dim);
  s.value = take(b.keys * dim_v);
  s.score = take((b.keys + 8) * b.panel);  // score tiles are written whole
  s.bias = take(general ? b.keys * b.panel : 0);
  s.mask = take(general ? b.keys * b.panel : 0);
  s.size = next;
  return s;
}

enum class Element { fp32, fp16, bf16 };
enum class Flavour { Plain, General };

// One instruction set's kernels: the only symbol of its object.
struct Unit {
  const char* name;                                // "avx2"
  Index panel;                                     // rows of a full panel
  void (*forward[3][2])(const ForwardTask& task);  // [Element][Flavour]
};

}  // namespace tessera::kokkos::vector

extern "C" {
extern const tessera::kokkos::vector::Unit tessera_vector_portable;
#if defined(TESSERA_VECTOR_X86)
extern const tessera::kokkos::vector::Unit tessera_vector_avx2;
extern const tessera::kokkos::vector::Unit tessera_vector_avx512;
#endif
}
