#pragma once
// Where a kernel finds its operands, and the rows' statistics.

#include "backends/hip/gradient/parameters.hpp"
#include "backends/hip/gradient/tile.hip.hpp"
#include "backends/hip/gradient/weigh.hip.hpp"
#include "core/kernel/sequence.hpp"

namespace tessera::hip::gradient {

class Operands {
 public:
  TESSERA_DEVICE Operands(const Parameters& p, const kernel::Sequence& s)
      : p_(p), a_(p.arguments.forward), s_(s) {}

  // `count` rows of a query head, or keys of a key head, from `first` on. Rows outside of `there`,
  // and padding beside the sequence's keys, are 0.
  TESSERA_DEVICE Source query(Index head, Index first, int count,
                              const kernel::Interval<Index>& there) const {
    return {at(a_.query, head, s_.query + first), a_.query.seq, part(there, first, count),
            static_cast<int>(a_.dim), p_.fast_q != 0};
  }
  TESSERA_DEVICE Source dout(Index head, Index first, int count,
                             const kernel::Interval<Index>& there) const {
    const kernel::BackwardArguments& b = p_.arguments;
    return {at(b.dout, head, s_.query + first), b.dout.seq,        part(there, first, count),
            static_cast<int>(a_.dim_v),         p_.fast_dout != 0, b.dout_column == 0};
  }
  TESSERA_DEVICE Source key(Index head, Index first, int count) const {
    return {at(a_.key, head, s_.key + first), a_.key.seq,
            part({s_.band.begin, s_.band.end}, first, count), static_cast<int>(a_.dim),
            p_.fast_k != 0};
  }
  TESSERA_DEVICE Source value(Index head, Index first, int count) const {
    return {at(a_.value, head, s_.key + first), a_.value.seq,
            part({s_.band.begin, s_.band.end}, first, count), static_cast<int>(a_.dim_v),
            p_.fast_v != 0};
  }

  // Of one row, which exists where it is below `end`.
  TESSERA_DEVICE RowOfLane statistics(Index head, Index row, Index end) const {
    RowOfLane r;
    if (row >= end) return r;
    const Index at = statistics_at(a_, s_, head) + row;
    r.lse = p_.statistics.lse[at];
    r.delta = r.lse == -kernel::kMinusInfinity ? 0.0f : p_.statistics.delta[at];
    return r;
  }

 private:
  TESSERA_DEVICE const std::uint16_t* at(const kernel::Operand<const void>& o, Index head,
                                         Index seq) const {
    return static_cast<const std::uint16_t*>(o.data) + s_.batch * o.batch + head * o.head +
           seq * o.seq;
  }
  TESSERA_DEVICE static kernel::Interval<int> part(const kernel::Interval<Index>& there,
                                                   Index first, int count) {
    const kernel::Interval<Index> in = kernel::within(there, first, count);
    return {static_cast<int>(in.begin), static_cast<int>(in.end)};
  }

  const Parameters& p_;
  const kernel::ForwardArguments& a_;
  const kernel::Sequence& s_;
};

// The lane's row of a gradient.
TESSERA_DEVICE std::uint16_t* row_of(const kernel::Operand<void>& o, Index batch, Index head,
                                     Index seq) {
  return static_cast<std::uint16_t*>(o.data) + batch * o.batch + head * o.head + seq * o.seq;
}

TESSERA_DEVICE kernel::WorkItem item_of(const kernel::WorkOrder& order, Index task) {
  return uniform(task < (Index{1} << 32) ? order.item(static_cast<std::uint32_t>(task))
                                         : order.item(task));
}

}  // namespace tessera::hip::gradient
