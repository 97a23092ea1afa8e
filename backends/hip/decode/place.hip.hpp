#pragma once
// Who computes what: a work-group has a block of rows and a part of their keys, a lane one of the
// rows.

#include <cstdint>

#include "backends/hip/common/fragment.hip.hpp"
#include "backends/hip/decode/parameters.hpp"
#include "core/kernel/sequence.hpp"
#include "core/kernel/split.hpp"

namespace tessera::hip::decode {

inline constexpr int kThreads = kWaves * kWave;
inline constexpr int kRows = Matrix::kSide;  // of a block
static_assert(kPartTile % (kWaves * Matrix::kSide) == 0);

// A query row, by its number among the (position, query head of the group) of a key head.
struct QueryRow {
  int position;  // in the sequence; may lie beyond it
  Index head;

  TESSERA_DEVICE QueryRow(const Parameters& p, int key_head, int number) {
    const auto group = static_cast<std::uint32_t>(p.group);
    const auto at = static_cast<std::uint32_t>(number);
    position = static_cast<int>(at / group);
    head = Index{key_head} * p.group + at % group;
  }
};

// Where the rows of a task are.
struct Place {
  int batch, key_head, row_first;

  TESSERA_DEVICE Place(const Parameters& p, std::uint32_t task) {
    const auto blocks = static_cast<std::uint32_t>(p.row_blocks), item = task / blocks;
    const auto heads = static_cast<std::uint32_t>(p.arguments.head_k);
    batch = static_cast<int>(item / heads);
    key_head = static_cast<int>(item % heads);
    row_first = static_cast<int>(task % blocks) * kRows;
  }
};

// What a work-group works on, in LDS: found by one lane, and read where it is needed.
struct Task {
  kernel::Sequence sequence;
  kernel::Interval<Index> keys;  // of the part, that some row sees
  Index key, value;              // where slot 0 of the sequence is, in numbers
  int batch, key_head, row_first;
  int part;
  bool rows;  // are there any? Packed: a segment may be shorter than the longest
};

// Keys of a part that some row of the block sees.
TESSERA_DEVICE kernel::Interval<Index> keys_of(const Parameters& p, const kernel::Sequence& s,
                                               int row_first, Index part) {
  const Index first = row_first / p.group;
  const Index end = kernel::smaller((row_first + kRows - 1) / p.group + 1, s.query_end);
  if (first >= end) return {0, 0};
  const kernel::Interval<Index> mine = kernel::KeySplit{s.keys, kPartTile, p.parts}.part(part);
  const kernel::Interval<Index> any = s.band.any_of(first, end);
  const kernel::Interval<Index> keys{kernel::larger(mine.begin, any.begin),
                                     kernel::smaller(mine.end, any.end)};
  return {keys.begin, kernel::larger(keys.begin, keys.end)};
}

TESSERA_DEVICE void describe(const Parameters& p, std::uint32_t item, Task& t) {
  const kernel::ForwardArguments& a = p.arguments;
  const auto parts = static_cast<std::uint32_t>(p.parts);
  const Place place(p, item / parts);
  const kernel::Sequence s = kernel::sequence(a, place.batch);
  t.sequence = s;
  t.batch = place.batch;
  t.key_head = place.key_head;
  t.row_first = place.row_first;
  t.part = static_cast<int>(item % parts);
  t.rows = place.row_first < s.rows * p.group;
  t.keys = keys_of(p, s, t.row_first, t.part);
  t.key = s.batch * a.key.batch + place.key_head * a.key.head + s.key * a.key.seq;
  t.value = s.batch * a.value.batch + place.key_head * a.value.head + s.key * a.value.seq;
}

// Number of a row among those in memory.
TESSERA_DEVICE Index memory_row(const kernel::ForwardArguments& a, const kernel::Sequence& s,
                                const QueryRow& row) {
  return (s.batch * a.head_q + row.head) * a.total_q + s.query + row.position;
}

}  // namespace tessera::hip::decode
