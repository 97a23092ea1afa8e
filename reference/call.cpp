#include "reference/call.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <thread>

#include "reference/number.hpp"
#include "reference/threads.hpp"

namespace tessera::reference {
namespace {

// Beyond every position; sums of a few do not overflow.
constexpr std::int64_t kFar = std::int64_t{1} << 60;

std::int64_t entry(const ConstVector& vector, std::int64_t index, std::int64_t otherwise) {
  if (vector.data == nullptr) return otherwise;
  return static_cast<std::int64_t>(load(vector.dtype, vector.data, index));
}

// A boundary of a packed segment, inside the tensor and not before the one before.
std::int64_t boundary(const ConstVector& cu_seqlens, std::int64_t index, std::int64_t total) {
  return std::clamp<std::int64_t>(entry(cu_seqlens, index, 0), 0, total);
}

}  // namespace

Call::Call(const Args& a, const Options& options)
    : args(a),
      head_q(a.query.extent.head),
      head_k(a.key.extent.head),
      group(head_k > 0 ? head_q / head_k : 0),
      dim(a.query.extent.dim),
      dim_v(a.value.extent.dim),
      input(a.query.dtype),
      output(a.out.data != nullptr ? a.out.dtype : a.query.dtype),
      scale(a.scale ? static_cast<double>(*a.scale) : 1 / std::sqrt(static_cast<double>(dim))),
      half_products(options.accumulate == Accumulate::fp16),
      dropout(Dropout::make(options.dropout, a.seed_device != nullptr ? *a.seed_device : a.seed,
                            a.offset_device != nullptr ? *a.offset_device : a.offset)),
      left_(std::min(options.mask.left().value_or(kFar), kFar)),
      right_(std::min(options.mask.right().value_or(kFar), kFar)) {
  const bool packed = a.cu_seqlens_q.data != nullptr;
  const bool bottom_right =
      options.mask.alignment().value_or(Alignment::BottomRight) == Alignment::BottomRight;
  const bool no_rows = head_q == 0 || a.query.extent.seq == 0;  // and then of any batch none
  const std::int64_t count = packed    ? std::max<std::int64_t>(a.cu_seqlens_q.size - 1, 0)
                             : no_rows ? 0
                                       : a.query.extent.batch;
  for (std::int64_t i = 0; i < count; ++i) {
    Sequence s{
        .index = i, .batch = packed ? 0 : i, .rows = a.query.extent.seq, .keys = a.key.extent.seq};
    if (packed) {
      s.first_row = boundary(a.cu_seqlens_q, i, a.query.extent.seq);
      s.first_key = boundary(a.cu_seqlens_k, i, a.key.extent.seq);
      s.rows = std::max<std::int64_t>(
          boundary(a.cu_seqlens_q, i + 1, a.query.extent.seq) - s.first_row, 0);
      s.keys = std::max<std::int64_t>(
          boundary(a.cu_seqlens_k, i + 1, a.key.extent.seq) - s.first_key, 0);
    }
    s.key_begin = std::clamp<std::int64_t>(entry(a.key_begin, i, 0), 0, s.keys);
    s.key_end = std::clamp<std::int64_t>(entry(a.key_end, i, s.keys), 0, s.keys);
    s.query_end = std::clamp<std::int64_t>(entry(a.query_end, i, s.rows), 0, s.rows);
    s.diagonal = bottom_right ? s.key_end - s.query_end : 0;
    sequences.push_back(s);
  }
}

std::vector<Sequence> Call::with_rows() const {
  std::vector<Sequence> result;
  std::ranges::copy_if(sequences, std::back_inserter(result),
                       [](const Sequence& s) { return s.rows > 0; });
  return result;
}

Interval Call::visible(const Sequence& s, std::int64_t row) const {
  if (row >= s.query_end) return {};
  const std::int64_t begin = std::max(s.key_begin, row + s.diagonal - left_);
  const std::int64_t end = std::min(s.key_end, row + s.diagonal + right_ + 1);
  return begin < end ? Interval{begin, end} : Interval{};
}

void parallel(std::int64_t count, double work, const std::function<void(std::int64_t)>& body) {
  constexpr double kWorthThreads = 3e7;  // some 5 ms
  constexpr std::int64_t kMaxThreads = 16;
  const std::int64_t threads = work < kWorthThreads
                                   ? 1
                                   : std::clamp<std::int64_t>(std::thread::hardware_concurrency(),
                                                              1, std::min(kMaxThreads, count));
  if (threads <= 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<std::int64_t> next{0};
  on_threads(threads, [&] {
    for (std::int64_t i = next++; i < count; i = next++) body(i);
  });
}

}  // namespace tessera::reference
