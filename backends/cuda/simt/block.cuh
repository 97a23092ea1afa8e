#pragma once
// Which lines a thread block has, where they lie, and the end of each: what the kernel and the
// merging of parts share.

#include "backends/cuda/simt/tile.cuh"
#include "core/kernel/split.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::cuda::simt {

// Line i of a block.
struct Line {
  Index head = 0;       // of query
  int row = 0;          // from the block's row_first on
  bool exists = false;  // does it have an output?
  bool live = false;    // is it before query_end?
};

template <class T>
__device__ __forceinline__ Line line_of(const Block& b, int i) {
  Line line;
  line.exists = i < b.lines;
  if constexpr (T::kLines == Lines::OfHead) {
    line.head = b.head;
    line.row = i;
  } else {
    // Lines::OfGroup is for few rows: 32 bits hold them.
    const auto at = static_cast<std::uint32_t>(b.line_first) + static_cast<std::uint32_t>(i);
    const auto rows = static_cast<std::uint32_t>(b.sequence.rows);
    const std::uint32_t member = line.exists ? at / rows : 0;
    line.head = b.head + member;
    line.row = static_cast<int>(at - member * rows);
  }
  line.live = line.exists && b.row_first + line.row < b.sequence.query_end;
  return line;
}

// Finds the block of a task; without lines if there is nothing to do.
template <class T>
__device__ __forceinline__ void open(const Work& work, Index task, Block& block) {
  const kernel::ForwardArguments& a = work.arguments;
  const kernel::WorkItem item = work.order.item(task / work.partials.parts);
  constexpr bool kGroup = T::kLines == Lines::OfGroup;
  const Index group = kGroup ? a.head_q / a.head_k : 1;
  Block b;
  b.sequence = kernel::sequence(a, item.batch);
  b.batch = item.batch;
  b.head = item.head * group;
  b.key_head = kGroup ? item.head : kernel::key_head(a, item.head);
  b.line_first = item.block * T::kRows;
  b.row_first = kGroup ? 0 : b.line_first;
  b.part = task % work.partials.parts;
  const Index rows = b.sequence.rows, end = b.line_first + T::kRows;
  b.lines = static_cast<int>(kernel::clamp_index(group * rows - b.line_first, 0, T::kRows));
  b.rows = {b.line_first, end};
  if (kGroup && b.lines > 0) {
    const Index first = b.line_first % rows;
    b.rows = first + b.lines <= rows ? kernel::Interval<Index>{first, first + b.lines}
                                     : kernel::Interval<Index>{0, rows};
  }
  b.rows.end = kernel::smaller(b.rows.end, b.sequence.query_end);
  if (work.partials.parts > 1) {
    const kernel::KeySplit split{b.sequence.keys, kKeys, work.partials.parts};
    const kernel::Interval<Index> keys = split.part(b.part);
    b.sequence.band.begin = kernel::larger(b.sequence.band.begin, keys.begin);
    b.sequence.band.end = kernel::smaller(b.sequence.band.end, keys.end);
  }
  if (b.rows.begin < b.rows.end) {
    b.any = b.sequence.band.any_of(b.rows.begin, b.rows.end);
    b.all = b.sequence.band.all_of(b.rows.begin, b.rows.end);
  }
  block = b;
}

// Where a line is along the operands' seq axis.
__device__ __forceinline__ Index seq_of(const Block& b, const Line& line) {
  return b.sequence.query + b.row_first + line.row;
}

// Its first part in Partials.
__device__ __forceinline__ Index slot_of(const Work& work, const Block& b, const Line& line) {
  const kernel::ForwardArguments& a = work.arguments;
  return ((b.sequence.batch * a.total_q + seq_of(b, line)) * a.head_q + line.head) *
         work.partials.parts;
}

// What a line's O is multiplied by; its lse.
struct Ending {
  float factor = 0;
  bool seen = false;  // else its output is 0, whatever its O
  float lse = kernel::kMinusInfinity;
};

template <class L>
__device__ __forceinline__ Ending end_of(const kernel::ForwardArguments& a, const Line& line,
                                         kernel::SoftmaxState<float> state) {
  if (!line.live) return {};
  Ending end;
  end.seen = state.sum != 0.0f && a.dropout.threshold < 65536u;
  end.factor = a.dropout.keep_scale();
  if (a.sinks != nullptr)
    end.factor *=
        kernel::add_sink<L>(state, kernel::to_base2<L>(a.sinks[line.head * a.sinks_head]));
  end.factor *= kernel::inverse_sum<L>(state);
  end.lse = kernel::log_sum_exp(state.max, state.sum);
  return end;
}

__device__ __forceinline__ void store_lse(const kernel::ForwardArguments& a, const Block& b,
                                          const Line& line, float lse) {
  if (a.lse.data != nullptr)
    a.lse.data[b.sequence.batch * a.lse.batch + line.head * a.lse.head +
               seq_of(b, line) * a.lse.seq] = lse;
}

template <class T>
__device__ __forceinline__ typename T::Type* out_row(const kernel::ForwardArguments& a,
                                                     const Block& b, const Line& line) {
  return static_cast<typename T::Type*>(a.out.data) + b.sequence.batch * a.out.batch +
         line.head * a.out.head + seq_of(b, line) * a.out.seq;
}

}  // namespace tessera::cuda::simt
