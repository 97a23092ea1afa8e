#include "tests/unit/reference/sample.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/fill.hpp"
#include "reference/number.hpp"

namespace tessera::testing {

using reference::load;
using reference::store;

namespace {

std::int64_t elements(const Extents& e) { return e.batch * e.head * e.seq * e.dim; }

// What a sample's operands measure: in memory, and as score modifiers see it.
struct Shape {
  std::int64_t batch = 0, rows = 0, keys = 0;               // of query and key in memory
  std::int64_t segments = 0, longest_q = 0, longest_k = 0;  // batch entries and their lengths
};

Shape shape_of(const Traits& t) {
  if (t.packed == 0) return {t.batch, t.seq_q, t.seq_k, t.batch, t.seq_q, t.seq_k};
  // Lengths: seq_q, 0, 1, seq_q + 3 and seq_k, 2, 0, seq_k − 1.
  return {1, 2 * t.seq_q + 4, 2 * t.seq_k + 1, 4, t.seq_q + 3, t.seq_k};
}

ConstVector integers(Sample& sample, DType dtype, const std::vector<std::int64_t>& values) {
  const auto size = static_cast<std::int64_t>(values.size());
  void* data = sample.allocate(size * size_of(dtype));
  for (std::int64_t i = 0; i < size; ++i)
    store(dtype, data, i, static_cast<double>(values[static_cast<std::size_t>(i)]));
  return {data, dtype, size};
}

void set_prefix_sums(Sample& sample, const Traits& t, const Shape& shape) {
  const DType type = t.packed == 64 ? DType::int64 : DType::int32;
  sample.args.cu_seqlens_q = integers(sample, type, {0, t.seq_q, t.seq_q, t.seq_q + 1, shape.rows});
  sample.args.cu_seqlens_k =
      integers(sample, type, {0, t.seq_k, t.seq_k + 2, t.seq_k + 2, shape.keys});
}

void set_tensors(Sample& sample, const Traits& t, const Shape& shape) {
  const bool strided = t.transposed || t.packed != 0;
  const Extents query{shape.batch, t.head_q, shape.rows, t.dim};
  const Extents key{shape.batch, t.head_k, shape.keys, t.dim};
  const Extents value{shape.batch, t.head_k, shape.keys, t.dim_v};
  const Extents out{shape.batch, t.head_q, shape.rows, t.dim_v};
  const Extents lse{shape.batch, t.head_q, shape.rows, 1};
  sample.args.query = sample.random(t.dtype, query, strided, t.seed * 100 + 1);
  sample.args.key = sample.random(t.dtype, key, strided, t.seed * 100 + 2);
  sample.args.value = sample.random(t.dtype, value, t.transposed, t.seed * 100 + 3);
  sample.args.out = sample.out = sample.random(t.dtype, out, t.transposed, 0);
  sample.dout = sample.random(t.dtype, out, strided, t.seed * 100 + 4);
  sample.args.lse = sample.lse = sample.random(DType::fp32, lse, false, 0);
  sample.dlse = sample.random(DType::fp32, lse, false, t.seed * 100 + 5);
}

// Broadcasts by extent 1 or by stride 0; if by extent, it has a −∞.
Tensor random_bias(Sample& sample, const Traits& t, const Shape& shape) {
  const auto broadcast = [&](int bit, std::int64_t extent) {
    return (t.bias & bit) != 0 ? std::int64_t{1} : extent;
  };
  Tensor bias = sample.random(t.bias_fp32 ? DType::fp32 : t.dtype,
                              {broadcast(2, shape.segments), broadcast(4, t.head_q),
                               broadcast(8, shape.longest_q), broadcast(16, shape.longest_k)},
                              false, t.seed * 100 + 7);
  if ((t.bias & 32) != 0) {
    const Extents own = bias.extent;
    bias.extent = {shape.segments, t.head_q, shape.longest_q, shape.longest_k};
    if (own.batch == 1) bias.stride.batch = 0;
    if (own.head == 1) bias.stride.head = 0;
    if (own.seq == 1) bias.stride.seq = 0;
    if (own.dim == 1) bias.stride.dim = 0;
  } else if (elements(bias.extent) > 2) {
    store(bias.dtype, bias.data, 1, -INFINITY);
  }
  return bias;
}

// Row 2 of the first head sees nothing.
Tensor random_boolean_mask(Sample& sample, const Traits& t, const Shape& shape) {
  const Extents extent{1, t.head_q, shape.longest_q, shape.longest_k};
  const Tensor mask = Tensor::bhsd(sample.allocate(elements(extent)), DType::uint8, extent);
  reference::fill_integers(mask, t.seed * 100 + 8, 0, 2);
  for (std::int64_t j = 0; j < shape.longest_k; ++j)
    store(DType::uint8, mask.data, 2 * shape.longest_k + j, 0);
  return mask;
}

void set_modifiers(Sample& sample, const Traits& t, const Shape& shape) {
  Args& args = sample.args;
  if (t.scale != 0 || t.zero_scale) args.scale = static_cast<float>(t.scale);
  args.softcap = static_cast<float>(t.softcap);
  if (t.alibi != 0) {
    args.alibi_slopes = sample.random(
        DType::fp32, {t.alibi == 2 ? shape.segments : 1, t.head_q, 1, 1}, false, t.seed * 100 + 6);
  }
  if (t.bias != 0) args.bias = random_bias(sample, t, shape);
  if (t.boolean_mask) args.boolean_mask = random_boolean_mask(sample, t, shape);
  if (t.sinks)
    args.sinks = sample.random(DType::fp32, {1, t.head_q, 1, 1}, false, t.seed * 100 + 9);
}

// Inside of what there is and beyond it.
void set_ranges(Sample& sample, const Shape& shape) {
  std::vector<std::int64_t> begin, end, rows_end;
  for (std::int64_t i = 0; i < shape.segments; ++i) {
    begin.push_back(i % 3);
    end.push_back(i % 2 == 0 ? shape.longest_k + 5 : shape.longest_k - 2);
    rows_end.push_back(i % 2 == 0 ? shape.longest_q - 1 : shape.longest_q + 7);
  }
  sample.args.key_begin = integers(sample, DType::int32, begin);
  sample.args.key_end = integers(sample, DType::int32, end);
  sample.args.query_end = integers(sample, DType::int32, rows_end);
}

}  // namespace

void* Sample::allocate(std::int64_t bytes) {
  memory.emplace_back(static_cast<std::size_t>(bytes) + 1, '\xff');
  return memory.back().data();
}

Tensor Sample::random(DType dtype, const Extents& e, bool transposed, std::uint64_t seed) {
  Tensor t{nullptr, dtype, e, bhsd_strides(e)};
  std::int64_t size = elements(e);
  if (transposed) {
    const Extents padded{e.batch, e.head + 1, e.seq, e.dim + 3};
    t.stride = bshd_strides(padded);
    size = elements(padded);
  }
  t.data = allocate(size * size_of(dtype));
  reference::fill_gaussian(t, seed);
  const auto values = reference::to_doubles(t);
  auto rounded = values;
  for (double& x : rounded) x = std::nearbyint(x * 256) / 256;
  reference::from_doubles(rounded, t);
  return t;
}

Sample::Sample(const Traits& t) {
  const Shape shape = shape_of(t);
  if (t.packed != 0) set_prefix_sums(*this, t, shape);
  set_tensors(*this, t, shape);
  set_modifiers(*this, t, shape);
  if (t.ranges) set_ranges(*this, shape);
  args.seed = 0x123456789abcdef0u + t.seed;
  args.offset = 0xfedcba9876543210u;
  options.mask = t.mask;
  options.dropout = t.dropout;
}

std::vector<Traits> all_traits() {
  using enum Alignment;
  const auto window = [](std::int64_t l, std::int64_t r, Alignment a) {
    return Mask::window(l, r, a);
  };
  std::vector<Traits> all{
      {.name = "plain"},
      {.name = "causal_tl", .mask = Mask::causal(TopLeft)},
      {.name = "causal_br", .mask = Mask::causal(BottomRight)},
      {.name = "causal_br_more_rows", .mask = Mask::causal(BottomRight), .seq_q = 9, .seq_k = 4},
      {.name = "window_tl", .mask = window(2, 1, TopLeft)},
      {.name = "window_br", .mask = window(0, 3, BottomRight)},
      {.name = "window_left", .mask = Mask::window(1, {}, BottomRight)},
      {.name = "mha", .head_k = 4},
      {.name = "mqa", .head_q = 5, .head_k = 1},
      {.name = "dims", .dim = 5, .dim_v = 19},
      {.name = "long",
       .mask = Mask::causal(BottomRight),
       .batch = 1,
       .head_q = 2,
       .seq_q = 70,
       .seq_k = 83,
       .dim = 16},
      {.name = "transposed", .transposed = true},
      {.name = "ranges", .ranges = true},
      {.name = "ranges_causal", .mask = Mask::causal(BottomRight), .ranges = true},
      {.name = "packed32", .mask = Mask::causal(TopLeft), .packed = 32},
      {.name = "packed64", .mask = Mask::causal(BottomRight), .packed = 64},
      {.name = "scale", .scale = -1.5},
      {.name = "zero_scale", .zero_scale = true},
      {.name = "softcap", .scale = 2, .softcap = 1.5},
      {.name = "alibi", .alibi = 1},
      {.name = "alibi_batch_causal_tl", .mask = Mask::causal(TopLeft), .alibi = 2},
      {.name = "bias", .bias = 1},
      {.name = "bias_batch", .bias = 1 | 2},
      {.name = "bias_head", .bias = 1 | 4},
      {.name = "bias_rows", .bias = 1 | 8},
      {.name = "bias_columns", .bias = 1 | 16},
      {.name = "bias_all", .bias = 1 | 2 | 4 | 8 | 16},
      {.name = "bias_stride0", .bias = 1 | 2 | 8 | 32},
      {.name = "boolean_mask", .boolean_mask = true},
      {.name = "sinks", .sinks = true},
      {.name = "sinks_boolean_mask", .boolean_mask = true, .sinks = true},
      {.name = "dropout", .dropout = 0.3},
      {.name = "dropout_all", .dropout = 1},
      {.name = "dropout_packed", .packed = 32, .dropout = 0.5},
      {.name = "everything",
       .mask = window(5, 4, BottomRight),
       .ranges = true,
       .scale = 1.25,
       .softcap = 3,
       .alibi = 2,
       .bias = 1 | 4,
       .boolean_mask = true,
       .sinks = true,
       .dropout = 0.25},
      {.name = "everything_packed",
       .mask = Mask::causal(BottomRight),
       .packed = 64,
       .softcap = 3,
       .alibi = 2,
       .bias = 1 | 2,
       .boolean_mask = true,
       .sinks = true,
       .dropout = 0.25},
      {.name = "no_rows", .seq_q = 0},
      {.name = "no_keys", .seq_k = 0},
      {.name = "no_keys_sinks", .seq_k = 0, .sinks = true},
      {.name = "no_batch", .batch = 0},
  };
  const std::size_t count = all.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (DType type : {DType::fp16, DType::bf16}) {
      Traits t = all[i];
      t.dtype = type;
      t.bias_fp32 = i % 2 == 0;
      t.seed = i + 2;
      t.name += type == DType::fp16 ? "_fp16" : "_bf16";
      all.push_back(t);
    }
  }
  return all;
}

namespace {

double at(const ConstTensor& t, std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
  const auto clip = [](std::int64_t i, std::int64_t extent) { return i < extent ? i : extent - 1; };
  return load(t.dtype, t.data,
              clip(b, t.extent.batch) * t.stride.batch + clip(h, t.extent.head) * t.stride.head +
                  clip(s, t.extent.seq) * t.stride.seq + clip(d, t.extent.dim) * t.stride.dim);
}

std::int64_t integer(const ConstVector& v, std::int64_t i, std::int64_t otherwise) {
  return v.data == nullptr ? otherwise : static_cast<std::int64_t>(load(v.dtype, v.data, i));
}

// Bits of the dropout's definition, word by word.
bool kept(const Args& args, double probability, std::uint64_t head, std::uint64_t row,
          std::uint64_t column) {
  std::uint32_t c[4] = {static_cast<std::uint32_t>(column / 8), static_cast<std::uint32_t>(row),
                        static_cast<std::uint32_t>(head),
                        static_cast<std::uint32_t>(args.offset & 0xffffffffu)};
  std::uint32_t key[2] = {static_cast<std::uint32_t>(args.seed & 0xffffffffu),
                          static_cast<std::uint32_t>((args.seed >> 32) ^ (args.offset >> 32))};
  for (int round = 0; round < 7; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c[0];
    const std::uint64_t p1 = 0xCD9E8D57ull * c[2];
    const std::uint32_t next[4] = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0],
                                   static_cast<std::uint32_t>(p1 & 0xffffffffu),
                                   static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1],
                                   static_cast<std::uint32_t>(p0 & 0xffffffffu)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  const std::uint32_t word = c[column % 8 / 2];
  const std::uint32_t number = column % 2 == 0 ? word & 0xffffu : word >> 16;
  return number >= static_cast<std::uint32_t>(std::lrint(probability * 65536));
}

// The batch entry or packed segment that a row in memory belongs to.
struct Entry {
  std::int64_t index = 0;                     // of ranges and score modifiers
  std::int64_t first_row = 0, first_key = 0;  // in memory
  std::int64_t length_k = 0;
  std::int64_t key_begin = 0, key_end = 0, query_end = 0;
  std::int64_t diagonal = 0;
};

Entry entry_of(const Sample& sample, std::int64_t batch, std::int64_t row) {
  const Args& a = sample.args;
  Entry e{.index = batch, .length_k = a.key.extent.seq};
  std::int64_t length_q = a.query.extent.seq;
  if (a.cu_seqlens_q.data != nullptr) {
    e.index = 0;
    while (e.index + 1 < a.cu_seqlens_q.size && integer(a.cu_seqlens_q, e.index + 1, 0) <= row)
      ++e.index;
    e.first_row = integer(a.cu_seqlens_q, e.index, 0);
    e.first_key = integer(a.cu_seqlens_k, e.index, 0);
    length_q = integer(a.cu_seqlens_q, e.index + 1, 0) - e.first_row;
    e.length_k = integer(a.cu_seqlens_k, e.index + 1, 0) - e.first_key;
  }
  e.key_begin = integer(a.key_begin, e.index, 0);
  e.key_end = std::min(integer(a.key_end, e.index, e.length_k), e.length_k);
  e.query_end = std::min(integer(a.query_end, e.index, length_q), length_q);
  if (sample.options.mask.alignment() != Alignment::TopLeft) e.diagonal = e.key_end - e.query_end;
  return e;
}

// One row of one head.
struct BruteRow {
  const Sample& sample;
  const Args& args = sample.args;
  std::int64_t batch, head, row;  // in memory
  Entry entry = entry_of(sample, batch, row);
  std::int64_t i = row - entry.first_row;  // inside of the entry
  std::int64_t head_k = head / (args.query.extent.head / args.key.extent.head);
  long double scale = args.scale ? static_cast<long double>(*args.scale)
                                 : 1 / std::sqrt(static_cast<long double>(args.query.extent.dim));

  bool sees(std::int64_t j) const {
    const Mask& mask = sample.options.mask;
    if (i >= entry.query_end || j < entry.key_begin || j >= entry.key_end) return false;
    if (mask.left() && j < i + entry.diagonal - *mask.left()) return false;
    if (mask.right() && j > i + entry.diagonal + *mask.right()) return false;
    return args.boolean_mask.data == nullptr || at(args.boolean_mask, entry.index, head, i, j) != 0;
  }

  // q·k, and beside it Σ|q||k|.
  std::pair<long double, long double> product(std::int64_t j) const {
    long double dot = 0, absolute = 0;
    for (std::int64_t d = 0; d < args.query.extent.dim; ++d) {
      const long double term =
          static_cast<long double>(at(args.query, batch, head, row, d)) *
          static_cast<long double>(at(args.key, batch, head_k, entry.first_key + j, d));
      dot += term;
      absolute += std::abs(term);
    }
    return {dot, absolute};
  }

  long double modified(long double dot, std::int64_t j) const {
    long double s = dot * scale;
    if (args.softcap > 0) s = args.softcap * std::tanh(s / args.softcap);
    if (args.bias.data != nullptr) s += at(args.bias, entry.index, head, i, j);
    if (args.alibi_slopes.data != nullptr) {
      s -= at(args.alibi_slopes, entry.index, head, 0, 0) *
           static_cast<long double>(std::abs(i + entry.diagonal - j));
    }
    return s;
  }

  // 1 or 0, divided by the probability of 1.
  long double dropout(std::int64_t j) const {
    const double probability = sample.options.dropout;
    const long double threshold = std::nearbyint(probability * 65536);
    const auto head_index = static_cast<std::uint64_t>(entry.index * args.query.extent.head + head);
    return threshold < 65536 && kept(args, probability, head_index, static_cast<std::uint64_t>(i),
                                     static_cast<std::uint64_t>(j))
               ? 65536 / (65536 - threshold)
               : 0;
  }
};

// Of all keys of the entry; −∞ where nothing is seen.
std::vector<long double> scores_of(const BruteRow& line, std::size_t r, BruteForward& result) {
  std::vector<long double> score(static_cast<std::size_t>(line.entry.length_k), -INFINITY);
  for (std::int64_t j = 0; j < line.entry.length_k; ++j) {
    if (!line.sees(j)) continue;
    const auto [dot, absolute] = line.product(j);
    const long double s = line.modified(dot, j);
    score[static_cast<std::size_t>(j)] = s;
    if (s == -INFINITY) continue;
    result.visible[r] = true;
    result.score_magnitude[r] =
        std::max(result.score_magnitude[r], std::abs(line.scale) * absolute);
  }
  return score;
}

void compute_row(const BruteRow& line, std::size_t r, BruteForward& result) {
  const Args& a = line.args;
  const std::vector<long double> score = scores_of(line, r, result);
  long double sum = 0;
  for (const long double s : score) sum += std::exp(s);
  if (a.sinks.data != nullptr && line.i < line.entry.query_end)
    sum += std::exp(static_cast<long double>(at(a.sinks, 0, line.head, 0, 0)));
  result.lse[r] = sum > 0 ? std::log(sum) : -INFINITY;
  const std::int64_t dim_v = a.value.extent.dim;
  for (std::int64_t d = 0; d < dim_v; ++d) {
    long double out = 0, absolute = 0;
    for (std::int64_t j = 0; j < line.entry.length_k; ++j) {
      const long double s = score[static_cast<std::size_t>(j)];
      if (s == -INFINITY) continue;
      const long double weight = std::exp(s) / sum * line.dropout(j);
      const long double v = at(a.value, line.batch, line.head_k, line.entry.first_key + j, d);
      out += weight * v;
      absolute += weight * std::abs(v);
    }
    result.out[r * static_cast<std::size_t>(dim_v) + static_cast<std::size_t>(d)] = out;
    result.magnitude[r] = std::max(result.magnitude[r], absolute);
  }
}

}  // namespace

BruteForward brute_forward(const Sample& sample) {
  const Extents q = sample.args.query.extent;
  const auto rows = static_cast<std::size_t>(q.batch * q.head * q.seq);
  BruteForward result;
  result.out.assign(rows * static_cast<std::size_t>(sample.args.value.extent.dim), 0);
  result.lse.assign(rows, -INFINITY);
  result.magnitude.assign(rows, 0);
  result.score_magnitude.assign(rows, 0);
  result.visible.assign(rows, false);
  for (std::int64_t b = 0; b < q.batch; ++b) {
    for (std::int64_t h = 0; h < q.head; ++h) {
      for (std::int64_t row = 0; row < q.seq; ++row) {
        compute_row({.sample = sample, .batch = b, .head = h, .row = row},
                    static_cast<std::size_t>((b * q.head + h) * q.seq + row), result);
      }
    }
  }
  return result;
}

}  // namespace tessera::testing
