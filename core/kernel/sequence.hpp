#pragma once
// One batch entry, or one segment of a packed batch: where its rows and keys lie and what its rows
// may see.

#include "core/kernel/arguments.hpp"
#include "core/kernel/mask.hpp"

namespace tessera::kernel {

struct Sequence {
  Index batch = 0;      // index along the operands' batch axis: 0 if packed
  Index query = 0;      // index of row 0 along the operands' seq axis: 0 unless packed
  Index key = 0;        // index of key 0 likewise
  Index rows = 0;       // rows that have an output
  Index query_end = 0;  // rows from it on see nothing, output 0 and lse -infinity
  Index keys = 0;       // keys that exist, end of the sequence: no slot at or beyond may be read
  Index diagonal = 0;   // row i's diagonal is key i + diagonal
  Band band;            // of the rows [0, query_end)
};

TESSERA_FN constexpr Index clamp_index(Index x, Index low, Index high) {
  return larger(low, smaller(high, x));
}

// Reads prefix sums and ranges, which are not to be trusted: whatever they hold, everything stays
// inside the extents.
TESSERA_FN Sequence sequence(const ForwardArguments& a, Index b) {
  Sequence s{};
  Index begin = 0;
  if (a.packed()) {
    s.query = clamp_index(a.cu_seqlens_q[b], 0, a.total_q);
    s.key = clamp_index(a.cu_seqlens_k[b], 0, a.total_k);
    s.rows = clamp_index(clamp_index(a.cu_seqlens_q[b + 1], 0, a.total_q) - s.query, 0, a.seq_q);
    s.keys = clamp_index(clamp_index(a.cu_seqlens_k[b + 1], 0, a.total_k) - s.key, 0, a.seq_k);
    s.query_end = s.rows;
  } else {
    s.batch = b;
    s.rows = a.seq_q;
    s.query_end = a.query_end ? clamp_index(a.query_end[b], 0, a.seq_q) : a.seq_q;
    s.keys = a.key_end ? clamp_index(a.key_end[b], 0, a.seq_k) : a.seq_k;
    begin = a.key_begin ? clamp_index(a.key_begin[b], 0, a.seq_k) : 0;
  }
  s.diagonal = a.bottom_right ? s.keys - s.query_end : 0;
  s.band.low = a.left >= kUnbounded ? -kUnbounded : s.diagonal - a.left;
  s.band.high = a.right >= kUnbounded ? kUnbounded : s.diagonal + a.right;
  s.band.begin = begin;
  s.band.end = s.keys;
  return s;
}

// Head of key and value that query head `head` reads.
TESSERA_FN constexpr Index key_head(const ForwardArguments& a, Index head) {
  return head / (a.head_q / a.head_k);
}

}  // namespace tessera::kernel
