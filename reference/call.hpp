#pragma once
// A call in the terms of its definition: sequences (batch entries or packed segments), what each
// row may see, scale and dropout. Shared by forward and backward of either precision.

#include <cstdint>
#include <functional>
#include <vector>

#include <tessera/args.hpp>
#include <tessera/options.hpp>

#include "reference/philox.hpp"

namespace tessera::reference {

// Keys [begin, end) of a sequence; begin ≤ end.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool empty() const { return begin >= end; }
};

// One batch entry, or one segment of packed tensors. Rows and keys count from the sequence's own
// beginning.
struct Sequence {
  std::int64_t index = 0;      // of per-sequence data: bias, mask, slopes, dropout
  std::int64_t batch = 0;      // of query, key, value, out: 0 when packed
  std::int64_t first_row = 0;  // along their seq axes
  std::int64_t first_key = 0;
  std::int64_t rows = 0;
  std::int64_t keys = 0;
  std::int64_t key_begin = 0;  // in [0, keys]
  std::int64_t key_end = 0;    // in [0, keys]
  std::int64_t query_end = 0;  // in [0, rows]
  std::int64_t diagonal = 0;   // of mask and ALiBi
};

struct Call {
  Call(const Args& args, const Options& options);

  // What the mask and the ranges let row `row` see.
  Interval visible(const Sequence& sequence, std::int64_t row) const;

  // Sequences that have rows: what the others add to any result is nothing. (Packed segments
  // without rows times heads without rows may be more than there are elements.)
  std::vector<Sequence> with_rows() const;

  const Args& args;
  std::int64_t head_q = 0;
  std::int64_t head_k = 0;
  std::int64_t group = 0;  // query heads a key head
  std::int64_t dim = 0;
  std::int64_t dim_v = 0;
  DType input = DType::fp32;
  DType output = DType::fp32;
  double scale = 1;
  bool half_products = false;  // Accumulate::fp16
  Dropout dropout;
  std::vector<Sequence> sequences;

 private:
  std::int64_t left_ = 0;
  std::int64_t right_ = 0;
};

// Calls body(i) for i in [0, count), spread over threads if `work` (multiplications) pays for them.
// What body(i) does must not depend on the order. An exception thrown by a body is thrown here.
void parallel(std::int64_t count, double work, const std::function<void(std::int64_t)>& body);

}  // namespace tessera::reference
