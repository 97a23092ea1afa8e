#pragma once
// Attention by the definition, in double, one row at a time: what the generic kernel is compared
// with here. The large comparison, with the tolerance rule, is tests/conformance.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <tessera/args.hpp>
#include <tessera/options.hpp>

#include "core/kernel/convert.hpp"
#include "core/kernel/philox.hpp"

namespace tessera::testing {

inline double element(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t s,
                      std::int64_t d) {
  const auto step = [](std::int64_t index, std::int64_t extent, std::int64_t stride) {
    return extent == 1 ? 0 : index * stride;
  };
  const std::int64_t at = step(b, t.extent.batch, t.stride.batch) +
                          step(h, t.extent.head, t.stride.head) +
                          step(s, t.extent.seq, t.stride.seq) + step(d, t.extent.dim, t.stride.dim);
  switch (t.dtype) {
    case DType::fp16:
      return static_cast<double>(
          kernel::fp16_to_float(static_cast<const std::uint16_t*>(t.data)[at]));
    case DType::bf16:
      return static_cast<double>(
          kernel::bf16_to_float(static_cast<const std::uint16_t*>(t.data)[at]));
    case DType::uint8:
      return static_cast<double>(static_cast<const std::uint8_t*>(t.data)[at]);
    default:
      return static_cast<double>(static_cast<const float*>(t.data)[at]);
  }
}

// Where a sequence lies: batch entry b, or segment b of a packed batch.
struct NaiveSequence {
  std::int64_t batch = 0, query = 0, key = 0, rows = 0, query_end = 0, key_begin = 0, key_end = 0;
};

inline NaiveSequence naive_sequence(const Args& a, std::int64_t b) {
  const auto range = [b](const ConstVector& v, std::int64_t fallback) {
    return v.data ? std::int64_t{static_cast<const std::int32_t*>(v.data)[b]} : fallback;
  };
  if (a.cu_seqlens_q.data) {
    const auto* q = static_cast<const std::int32_t*>(a.cu_seqlens_q.data);
    const auto* k = static_cast<const std::int32_t*>(a.cu_seqlens_k.data);
    return {0, q[b], k[b], q[b + 1] - q[b], q[b + 1] - q[b], 0, k[b + 1] - k[b]};
  }
  return {b,
          0,
          0,
          a.query.extent.seq,
          range(a.query_end, a.query.extent.seq),
          range(a.key_begin, 0),
          range(a.key_end, a.key.extent.seq)};
}

struct NaiveRow {
  std::vector<double> out;
  double lse = -std::numeric_limits<double>::infinity();
};

inline bool naive_kept(const Args& a, const Options& o, std::int64_t b, std::int64_t h,
                       std::int64_t i, std::int64_t j) {
  if (o.dropout == 0) return true;
  const kernel::Dropout dropout{
      .threshold = static_cast<std::uint32_t>(std::lrint(o.dropout * 65536)),
      .seed = a.seed,
      .offset = a.offset};
  const kernel::DropoutStream stream = kernel::dropout_stream(dropout, a.query.extent.head, b, h);
  std::uint32_t words[4];
  kernel::draw<kernel::ScalarLanes>(stream, static_cast<std::uint32_t>(i),
                                    static_cast<std::uint32_t>(j / 8), words);
  return kernel::kept<kernel::ScalarLanes>(stream, words, static_cast<std::uint32_t>(j));
}

// Row i of the sequence, query head h.
inline NaiveRow naive_row(const Args& a, const Options& o, std::int64_t b, std::int64_t h,
                          std::int64_t i) {
  const NaiveSequence s = naive_sequence(a, b);
  NaiveRow row;
  row.out.assign(static_cast<std::size_t>(a.value.extent.dim), 0.0);
  if (i >= s.query_end) return row;
  const std::int64_t head_k = h / (a.query.extent.head / a.key.extent.head);
  const std::int64_t diagonal =
      o.mask.alignment() == Alignment::TopLeft ? 0 : s.key_end - s.query_end;
  const double scale = a.scale ? static_cast<double>(*a.scale)
                               : 1 / std::sqrt(static_cast<double>(a.query.extent.dim));

  std::vector<double> score;
  std::vector<std::int64_t> column;
  for (std::int64_t j = s.key_begin; j < s.key_end; ++j) {
    if (o.mask.left() && j < i + diagonal - *o.mask.left()) continue;
    if (o.mask.right() && j > i + diagonal + *o.mask.right()) continue;
    if (a.boolean_mask.data && element(a.boolean_mask, b, h, i, j) == 0) continue;
    double x = 0;
    for (std::int64_t d = 0; d < a.query.extent.dim; ++d) {
      x += element(a.query, s.batch, h, s.query + i, d) *
           element(a.key, s.batch, head_k, s.key + j, d);
    }
    x *= scale;
    if (a.softcap > 0)
      x = static_cast<double>(a.softcap) * std::tanh(x / static_cast<double>(a.softcap));
    if (a.alibi_slopes.data)
      x -= element(a.alibi_slopes, b, h, 0, 0) * static_cast<double>(std::abs(i + diagonal - j));
    if (a.bias.data) x += element(a.bias, b, h, i, j);
    score.push_back(x);
    column.push_back(j);
  }
  double max = -std::numeric_limits<double>::infinity();
  for (const double x : score) max = std::max(max, x);
  if (a.sinks.data) max = std::max(max, element(a.sinks, 0, h, 0, 0));
  if (max == -std::numeric_limits<double>::infinity()) return row;
  double sum = a.sinks.data ? std::exp(element(a.sinks, 0, h, 0, 0) - max) : 0;
  for (double& x : score) sum += x = std::exp(x - max);
  row.lse = max + std::log(sum);
  const double keep = 1 - static_cast<double>(std::lrint(o.dropout * 65536)) / 65536;
  for (std::size_t n = 0; n < score.size(); ++n) {
    if (!naive_kept(a, o, b, h, i, column[n])) continue;
    for (std::size_t d = 0; d < row.out.size(); ++d) {
      row.out[d] +=
          score[n] / sum / keep *
          element(a.value, s.batch, head_k, s.key + column[n], static_cast<std::int64_t>(d));
    }
  }
  return row;
}

}  // namespace tessera::testing
