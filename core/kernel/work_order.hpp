#pragma once
// The order in which a machine takes up its tasks, one a (batch, head, block of rows): a task's
// number says which it is.
//
//     blocks equal      batch, key head, block, query head of the group:
//                       what reads the same keys runs together
//     blocks unequal    block (heaviest first), batch, query head:
//                       short tasks last, so that threads end together
//
// A packed batch has tasks only for blocks that exist, found through prefix sums of its segments'
// block counts; its segments follow one another, each in the order above.

#include "core/kernel/arguments.hpp"
#include "core/kernel/macros.hpp"
#include "core/kernel/sequence.hpp"

namespace tessera::kernel {

struct WorkItem {
  Index batch = 0;  // packed: the segment
  Index head = 0;   // of query; of key in an order of keys
  Index block = 0;  // of rows, or of keys, inside the sequence
};

// Which blocks of rows have most keys to read.
enum class Heaviest { None, Last, First };

// Causal masks make the last rows heaviest, masks open only to the right the first. A window of
// both sides is even.
TESSERA_FN constexpr Heaviest heaviest(Index left, Index right) {
  const bool open_left = left >= kUnbounded, open_right = right >= kUnbounded;
  if (open_left == open_right) return Heaviest::None;
  return open_left ? Heaviest::Last : Heaviest::First;
}

TESSERA_FN constexpr Index count_blocks(Index rows, Index block) {
  return rows / block + (rows % block != 0);
}

// prefix[s] = blocks of `block` rows of the segments before s; prefix has batch + 1 entries.
// Segments without rows have no block. Rows of `group` query heads that share a key head may be
// blocked together.
TESSERA_FN void build_block_prefix(const ForwardArguments& a, Index block, Index* prefix,
                                   Index group = 1) {
  prefix[0] = 0;
  for (Index s = 0; s < a.batch; ++s)
    prefix[s + 1] = prefix[s] + count_blocks(group * sequence(a, s).rows, block);
}

// Likewise of keys.
TESSERA_FN void build_key_block_prefix(const ForwardArguments& a, Index block, Index* prefix) {
  prefix[0] = 0;
  for (Index s = 0; s < a.batch; ++s)
    prefix[s + 1] = prefix[s] + count_blocks(sequence(a, s).keys, block);
}

// The segment s with prefix[s] <= x < prefix[s + 1], for x in [0, prefix[segments]).
TESSERA_FN constexpr Index find_segment(const Index* prefix, Index segments, Index x) {
  Index low = 0, high = segments;  // prefix[low] <= x < prefix[high]
  while (high - low > 1) {
    const Index middle = low + (high - low) / 2;
    if (prefix[middle] <= x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

struct WorkOrder {
  Index batch = 0;
  Index head_q = 0;
  Index head_k = 0;
  Index blocks = 0;  // a sequence; packed: unused
  Heaviest heaviest = Heaviest::None;
  const Index* prefix = nullptr;  // [batch + 1]; packed only
  bool heads_together = false;    // even where blocks are unequal

  TESSERA_FN constexpr Index size() const {
    return (prefix ? prefix[batch] : batch * blocks) * head_q;
  }

  // The item of task `task` of [0, size()). Where the size, and that of a prefix, fits a narrower
  // I, that divides faster.
  template <class I = Index>
  TESSERA_FN constexpr WorkItem item(I task) const {
    const bool together = heads_together || heaviest == Heaviest::None;
    const I heads = static_cast<I>(head_q);
    if (!prefix) {
      const I count = static_cast<I>(blocks);
      return together ? by_head<I>(0, task, count)
                      : by_weight<I>(0, task, static_cast<I>(batch), count);
    }
    const Index segment = find_segment(prefix, batch, static_cast<Index>(task / heads));
    const I first = static_cast<I>(prefix[segment]);
    const I count = static_cast<I>(prefix[segment + 1]) - first;
    task -= first * heads;
    return together ? by_head<I>(segment, task, count) : by_weight<I>(segment, task, 1, count);
  }

 private:
  template <class I>
  TESSERA_FN constexpr WorkItem by_head(Index first_batch, I task, I count) const {
    const I heads = static_cast<I>(head_k), group = static_cast<I>(head_q) / heads;
    const I member = task % group, shared = task / group;
    const I keys = shared / count;  // batch and key head
    return {first_batch + static_cast<Index>(keys / heads),
            static_cast<Index>(keys % heads * group + member),
            ranked(static_cast<Index>(shared % count), static_cast<Index>(count))};
  }
  template <class I>
  TESSERA_FN constexpr WorkItem by_weight(Index first_batch, I task, I batches, I count) const {
    const I heads = static_cast<I>(head_q), rest = task / heads;
    return {first_batch + static_cast<Index>(rest % batches), static_cast<Index>(task % heads),
            ranked(static_cast<Index>(rest / batches), static_cast<Index>(count))};
  }
  // The block that is heavier than all but `rank` others.
  TESSERA_FN constexpr Index ranked(Index rank, Index count) const {
    return heaviest == Heaviest::Last ? count - 1 - rank : rank;
  }
};

TESSERA_FN WorkOrder work_order(const ForwardArguments& a, Index block, const Index* prefix) {
  return {a.batch,
          a.head_q,
          a.head_k,
          count_blocks(a.seq_q, block),
          heaviest(a.left, a.right),
          a.packed() ? prefix : nullptr};
}

// Tasks of backward, one a (batch, key head, block of keys). The keys that most rows see are at the
// other end than the rows that see most keys.
TESSERA_FN WorkOrder key_work_order(const ForwardArguments& a, Index block, const Index* prefix) {
  return {a.batch,
          a.head_k,
          a.head_k,
          count_blocks(a.seq_k, block),
          heaviest(a.right, a.left),
          a.packed() ? prefix : nullptr};
}

}  // namespace tessera::kernel
