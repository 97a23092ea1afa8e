#pragma once
// A task, the rows of one block of a (batch, head), as the loader describes it to the block's other
// warps; and what the block keeps in shared memory.

#include "backends/cuda/hopper/config.hpp"
#include "backends/cuda/hopper/launch.hpp"
#include "backends/cuda/hopper/mbarrier.cuh"
#include "core/kernel/mask.hpp"
#include "core/kernel/sequence.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::cuda::hopper {

// Blocks of keys that some rows see. None: first = last.
using KeyBlocks = kernel::BasicLoopSplit<int>;

template <class S>
struct Task {
  kernel::NarrowBand band;
  int diagonal;
  int query;      // index along seq of the sequence's row 0
  int key;        // likewise
  int row_first;  // of the sequence
  int batch;      // index along the operands' batch axis
  int segment;    // the same unless packed
  int head;       // of queries
  int rows;       // that have an output
  int live;       // of these, before query_end

  KeyBlocks all;                  // that some row sees; last < 0: there are no more tasks
  KeyBlocks own[S::kWarpgroups];  // that some row of a warpgroup's sees

  // The place in the block of a key of the sequence, or the end of the block that is nearer.
  __device__ __forceinline__ int slot_of(int key, int block) const {
    return max(0, min(S::kKeys, key - block * S::kKeys));
  }
  // Does the block of keys stick out of the sequence?
  __device__ __forceinline__ bool sticks_out(int block) const {
    return slot_of(band.begin, block) > 0 || slot_of(band.end, block) < S::kKeys;
  }
};

// barrier                 ends when                     is waited for by
// opened    [queries]     the loader has written task   the cleaner
// q_full    [queries]     rows (and task) are there     consumers
// q_empty   [queries]     they and cleaner are through  the loader
// k_full    [stages]      keys are there                consumers
// k_empty   [stages]      consumers are through         the loader
// v_full, v_empty         likewise values
// v_landed                values must be cleaned        the cleaner, which completes v_full then
template <class S>
struct alignas(1024) Shared {
  unsigned char query[S::kQueryStages][S::kQueryBytes];
  unsigned char key[S::kStages][S::kKeyBytes];
  unsigned char value[S::kStages][S::kValueBytes];
  Barrier opened[S::kQueryStages], q_full[S::kQueryStages], q_empty[S::kQueryStages];
  Barrier k_full[S::kStages], k_empty[S::kStages];
  Barrier v_full[S::kStages], v_empty[S::kStages], v_landed[S::kStages];
  // The loader writes a task before it waits for room for its rows, while the task before the one
  // that leaves them is still being stored.
  static constexpr int kTasks = S::kQueryStages + 2;
  Task<S> task[kTasks];
};

template <class S>
inline constexpr std::size_t kSharedBytes = sizeof(Shared<S>);

__device__ __forceinline__ kernel::WorkItem item_of(const Parameters& p, int task) {
  const kernel::WorkOrder& order = p.order;
  if (p.section == 0) return order.item(task);
  // Heaviest first, but only among heads whose keys and values fit L2 together.
  const int blocks = static_cast<int>(order.blocks), a_section = p.section * blocks;
  const int section = task / a_section, first = section * p.section;
  const int heads_q = static_cast<int>(order.head_q);
  const int heads = min(p.section, static_cast<int>(order.batch) * heads_q - first);
  const kernel::WorkOrder part{1, heads, heads, blocks, order.heaviest};
  const kernel::WorkItem item = part.item(task - section * a_section);
  const int head = first + static_cast<int>(item.head);
  return {head / heads_q, head % heads_q, item.block};
}

// What has been computed is in memory and leaves its registers, of which the loader has few.
__device__ __forceinline__ void forget_registers() { asm volatile("" ::: "memory"); }

// Blocks of keys that the rows [from, to) of the task see.
template <class S>
__device__ __forceinline__ KeyBlocks blocks_of(const Task<S>& t, int from, int to) {
  return kernel::split_loop(t.band, t.row_first + from, t.row_first + to, S::kKeys);
}

// All but `own`.
template <class S>
__device__ __forceinline__ void describe(const Parameters& p, int task, Task<S>& t) {
  const kernel::WorkItem item = item_of(p, task);
  t.segment = static_cast<int>(item.batch);
  t.head = static_cast<int>(item.head);
  t.row_first = static_cast<int>(item.block) * S::kRows;
  forget_registers();
  const kernel::Sequence s = kernel::sequence(p.arguments, t.segment);
  t.band = kernel::narrow(s.band);
  t.diagonal = kernel::narrow(s.diagonal);
  t.query = static_cast<int>(s.query);
  t.key = static_cast<int>(s.key);
  t.batch = static_cast<int>(s.batch);
  t.rows = kernel::between(static_cast<int>(s.rows) - t.row_first, 0, S::kRows);
  t.live = kernel::between(static_cast<int>(s.query_end) - t.row_first, 0, t.rows);
  t.all = blocks_of(t, 0, t.live);
  forget_registers();
}

template <class S>
__device__ __forceinline__ void describe_own(Task<S>& t) {
#pragma unroll 1
  for (int w = 0; w < S::kWarpgroups; ++w)
    t.own[w] = blocks_of(t, 64 * w, min(64 * w + 64, t.live));
  forget_registers();
}

}  // namespace tessera::cuda::hopper
