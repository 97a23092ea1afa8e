#pragma once
// What the units of the vector path are given, and how a thread's scratch memory is laid out.
// Shared by all units and their caller: nothing here depends on an instruction set.

#include "core/kernel/arguments.hpp"
#include "core/kernel/sequence.hpp"

namespace tessera::kokkos::vector {

using kernel::Index;

template <class Integer>
TESSERA_FN constexpr Integer round_up(Integer x, Integer multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

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
  bool by_stretches = false;  // O is summed by stretches of keys
  float* scratch = nullptr;
};

// Keys whose values are summed apart in fp32, whole blocks: see forward.hpp. Types of two bytes
// show no error of so long a sum.
inline constexpr Index kStretchKeys = 2048;

// A thread's scratch memory, in floats; every part is a multiple of a cache line long. [x] is x
// numbers.
//
//     query   panels x [dim][panel]       queries, one a lane
//     out     panels x [dim_v][panel]     unnormalised outputs
//     max     panels x [panel]            softmax states
//     sum     panels x [panel]
//     rest    panels x [panel]            what rounding took from the sums
//     earlier, earlier_max                as out and max, of earlier stretches of keys; if there
//                                         may be some
//     key     [keys / group][dim][group]  the current block
//     value   [dim_v / group][keys][group]
//     score   [keys][panel]               scores, then weights of the current panel
//     bias    [keys][panel]               general flavour only
//     mask    [keys][panel]
//
// Units that multiply pairs (products.hpp) leave half of query, key and value unused.
struct Scratch {
  Index query = 0, out = 0, max = 0, sum = 0, rest = 0, earlier = 0, earlier_max = 0, key = 0,
        value = 0, score = 0, bias = 0, mask = 0, size = 0;
};

// Deals out floats, part after part.
class Floats {
 public:
  TESSERA_FN constexpr Index take(Index floats) {
    constexpr Index kLine = 32;  // two cache lines, what the adjacent-line prefetcher fetches
    const Index at = size_;
    size_ += round_up(floats, kLine);
    return at;
  }
  TESSERA_FN constexpr Index size() const { return size_; }

 private:
  Index size_ = 0;
};

TESSERA_FN constexpr Scratch layout(const Blocking& b, Index dim, Index dim_v, bool general,
                                    bool by_stretches) {
  Floats floats;
  Scratch s;
  s.query = floats.take(b.panels * b.panel * dim);
  s.out = floats.take(b.panels * b.panel * dim_v);
  s.max = floats.take(b.panels * b.panel);
  s.sum = floats.take(b.panels * b.panel);
  s.rest = floats.take(b.panels * b.panel);
  s.earlier = floats.take(by_stretches ? b.panels * b.panel * dim_v : 0);
  s.earlier_max = floats.take(by_stretches ? b.panels * b.panel : 0);
  s.key = floats.take(b.keys * dim);
  s.value = floats.take(b.keys * dim_v);
  s.score = floats.take((b.keys + 8) * b.panel);  // score tiles are written whole
  s.bias = floats.take(general ? b.keys * b.panel : 0);
  s.mask = floats.take(general ? b.keys * b.panel : 0);
  s.size = floats.size();
  return s;
}

// Rows of one key head: those of all its query heads, in chunks of up to blocking.panels panels;
// the task takes every parts-th chunk of each, from `part` on. Adds to dK and dV sums of its own.
struct BackwardTask {
  const kernel::BackwardArguments* arguments = nullptr;
  const kernel::Sequence* sequence = nullptr;
  Index batch = 0;  // packed: the segment
  Index key_head = 0;
  Index part = 0;
  Index parts = 1;
  Blocking blocking;
  const float* lse = nullptr;    // [batch, head_q, total_q]: see RowsTask
  const float* delta = nullptr;  // likewise
  bool by_stretches = false;     // dQ is summed by stretches of keys
  float* sums = nullptr;         // dK [keys][columns], then dV [keys][columns_v], fp32
  float* scratch = nullptr;
};

// Row statistics that gradients need, of rows [row_first, row_last) of one head of one sequence.
struct RowsTask {
  const kernel::BackwardArguments* arguments = nullptr;
  const kernel::Sequence* sequence = nullptr;
  Index head = 0;
  Index row_first = 0;
  Index row_last = 0;
  float* lse = nullptr;    // [row]: base 2; +infinity where the row sees nothing
  float* delta = nullptr;  // [row]: rowsum(dO∘O) − dlse
};

// Keys [key_first, key_last) of one key head of one sequence: sums of `parts` tasks become dK and
// dV.
struct KeysTask {
  const kernel::BackwardArguments* arguments = nullptr;
  const kernel::Sequence* sequence = nullptr;
  Index key_head = 0;
  Index key_first = 0;
  Index key_last = 0;
  const float* sums = nullptr;  // of the first part
  Index stride = 0;             // from one part's to the next's, in floats
  Index parts = 1;
};

// One block of the bias's gradient, [row_first, row_last) x [key_first, key_last), of the bias's
// own (batch, head): everything that the bias is shared by is summed.
struct BiasTask {
  const kernel::BackwardArguments* arguments = nullptr;
  Index batch = 0;
  Index head = 0;
  Index row_first = 0;
  Index row_last = 0;
  Index key_first = 0;
  Index key_last = 0;
  Blocking blocking;
  const float* lse = nullptr;
  const float* delta = nullptr;
  float* scratch = nullptr;
};

// Rows [row_first, row_last) of one key head, counted through its query heads, against some of the
// sequence's keys.
struct DecodeTask {
  const kernel::ForwardArguments* arguments = nullptr;
  const kernel::Sequence* sequence = nullptr;
  Index batch = 0;  // packed: the segment
  Index key_head = 0;
  Index row_first = 0;
  Index row_last = 0;
  kernel::Interval<Index> keys;
  float* partial = nullptr;  // softmax states and unnormalised outputs: see decode_layout
  float* scratch = nullptr;
};

// Row `group_row` of one key head, `row` of a block of `rows`, whose keys were cut into parts.
struct DecodeMerge {
  const kernel::ForwardArguments* arguments = nullptr;
  const kernel::Sequence* sequence = nullptr;
  Index key_head = 0;
  Index group_row = 0;
  Index row = 0;
  Index rows = 0;
  const float* partial = nullptr;  // of the first part
  Index stride = 0;                // from one part's to the next's, in floats
  Index parts = 1;
};

// Keys whose scores are weighed together, at most: two blocks of keys and one of values stay in the
// caches of a core.
inline constexpr Index kDecodeBlock = 64;

// Memory of a decode task in floats: [rows][columns] outputs and states of a part; [rows][columns]
// queries, [rows][kDecodeBlock] scores, [rows] factors and what sums by stretches take (as the
// outputs, and two numbers a row) of a thread.
struct DecodeScratch {
  Index out = 0, max = 0, sum = 0, partial = 0;
  Index query = 0, score = 0, factor = 0, rest = 0, stretch = 0, out_max = 0, scratch = 0;
};

TESSERA_FN constexpr Index decode_columns(Index dim) { return round_up(dim, Index{16}); }

TESSERA_FN constexpr DecodeScratch decode_layout(Index rows, Index dim, Index dim_v) {
  DecodeScratch s;
  Floats partial, scratch;
  s.out = partial.take(rows * decode_columns(dim_v));
  s.max = partial.take(rows);
  s.sum = partial.take(rows);
  s.partial = partial.size();
  s.query = scratch.take(rows * decode_columns(dim));
  s.score = scratch.take(rows * kDecodeBlock);
  s.factor = scratch.take(rows);
  s.rest = scratch.take(rows);
  s.stretch = scratch.take(rows * decode_columns(dim_v));
  s.out_max = scratch.take(rows);
  s.scratch = scratch.size();
  return s;
}

// Scratch memory of a thread for gradients, in floats.
//
//     query, dout     panels x [dim][panel]          one row a lane
//     rows, rows_v    panels x [panel][columns]      Q and dO in rows, by strips of columns
//     lse, delta      panels x [panel]
//     dq              panels x [dim][panel]
//     key, value      [keys / group][dim][group]     the current block, for S and dP
//     columns         [dim / group][keys][group]     the current block of keys, for dQ
//     weight, gradient                               kRowsTogether / panel x [keys][panel]
//     bias, mask                                     [keys][panel]
//     sum, rest       [keys][panel]                  the bias's gradient, and what rounding took
//     earlier         panels x [dim][panel]          dq of earlier stretches of keys; if there may
//                                                    be some
struct GradientScratch {
  Index query = 0, dout = 0, rows = 0, rows_v = 0, lse = 0, delta = 0, dq = 0, key = 0, value = 0,
        columns = 0, weight = 0, gradient = 0, bias = 0, mask = 0, sum = 0, rest = 0, earlier = 0,
        size = 0;
};

// Rows whose weights and gradients wait for one another, see backward_task.hpp.
inline constexpr Index kRowsTogether = 144;

// Columns are padded to whole vectors of the widest unit, for all.
inline constexpr Index kGradientColumns = 16;
TESSERA_FN constexpr Index gradient_columns(Index dim) { return round_up(dim, kGradientColumns); }
// Floats that a task's sums take.
TESSERA_FN constexpr Index gradient_sums(Index keys, Index dim, Index dim_v) {
  return (keys + 8) * (gradient_columns(dim) + gradient_columns(dim_v));
}

TESSERA_FN constexpr GradientScratch gradient_layout(const Blocking& b, Index dim, Index dim_v,
                                                     bool general, bool by_stretches) {
  Floats floats;
  const Index rows = b.panels * b.panel, scores = (b.keys + 8) * b.panel;
  GradientScratch s;
  s.query = floats.take(rows * dim);
  s.dout = floats.take(rows * dim_v);
  s.rows = floats.take(rows * gradient_columns(dim));
  s.rows_v = floats.take(rows * gradient_columns(dim_v));
  s.lse = floats.take(rows);
  s.delta = floats.take(rows);
  s.dq = floats.take(rows * dim);
  s.key = floats.take(b.keys * dim);
  s.value = floats.take(b.keys * dim_v);
  s.columns = floats.take(b.keys * dim);
  s.weight = floats.take(scores * (kRowsTogether / b.panel));
  s.gradient = floats.take(scores * (kRowsTogether / b.panel));
  s.bias = floats.take(general ? scores : 0);
  s.mask = floats.take(general ? scores : 0);
  s.sum = floats.take(general ? scores : 0);
  s.rest = floats.take(general ? scores : 0);
  s.earlier = floats.take(by_stretches ? rows * dim : 0);
  s.size = floats.size();
  return s;
}

enum class Element { fp32, fp16, bf16 };
enum class Flavour { Plain, General };

// One instruction set's kernels: the only symbols of its objects. [Element], [Element][Flavour];
// null for an element that it does not compute.
struct Unit {
  const char* name;  // "avx2"
  Index panel;       // rows of a full panel
  Index columns;     // head dimensions are padded to a multiple of it
  Index key_blocks;  // of the tuning table, that it takes as one
  void (*forward[3][2])(const ForwardTask& task);
};
struct BackwardUnit {
  void (*rows[3])(const RowsTask& task);
  void (*backward[3][2])(const BackwardTask& task);
  void (*keys[3])(const KeysTask& task);
  void (*bias[3])(const BiasTask& task);
};
struct DecodeUnit {
  void (*decode[3])(const DecodeTask& task);
  void (*merge[3])(const DecodeMerge& task);
};

}  // namespace tessera::kokkos::vector

extern "C" {
extern const tessera::kokkos::vector::Unit tessera_vector_portable;
extern const tessera::kokkos::vector::BackwardUnit tessera_vector_backward_portable;
extern const tessera::kokkos::vector::DecodeUnit tessera_vector_decode_portable;
#if defined(TESSERA_VECTOR_X86)
extern const tessera::kokkos::vector::Unit tessera_vector_avx2;
extern const tessera::kokkos::vector::Unit tessera_vector_avx512;
#if defined(TESSERA_EMULATED_ISA)
extern const tessera::kokkos::vector::Unit tessera_vector_avx512_bf16_emulated;
extern const tessera::kokkos::vector::Unit tessera_vector_amx_bf16_emulated;
#else
extern const tessera::kokkos::vector::Unit tessera_vector_avx512_bf16;
extern const tessera::kokkos::vector::Unit tessera_vector_amx_bf16;
#endif
extern const tessera::kokkos::vector::BackwardUnit tessera_vector_backward_avx2;
extern const tessera::kokkos::vector::DecodeUnit tessera_vector_decode_avx2;
extern const tessera::kokkos::vector::BackwardUnit tessera_vector_backward_avx512;
extern const tessera::kokkos::vector::DecodeUnit tessera_vector_decode_avx512;
#endif
}
