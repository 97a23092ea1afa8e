#include "tests/unit/reference/sample.hpp"

#include <cmath>

#include "reference/fill.hpp"
#include "reference/number.hpp"

namespace tessera::testing {

using reference::load;
using reference::store;

namespace {

std::int64_t elements(const Extents& e) { return e.batch * e.head * e.seq * e.dim; }

void set_int32(ConstVector& vector, Sample& sample, std::vector<std::int64_t> values,
               DType dtype = DType::int32) {
  const auto size = static_cast<std::int64_t>(values.size());
  void* data = sample.allocate(size * size_of(dtype));
  for (std::int64_t i = 0; i < size; ++i)
    store(dtype, data, i, static_cast<double>(values[static_cast<std::size_t>(i)]));
  vector = {data, dtype, size};
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
  const bool packed = t.packed != 0;
  const std::int64_t segments = packed ? 4 : t.batch;
  std::int64_t rows = t.seq_q;
  std::int64_t keys = t.seq_k;
  std::int64_t batch = t.batch;
  if (packed) {  // lengths: seq_q, 0, 1, seq_q + 3 and seq_k, 2, 0, seq_k − 1
    batch = 1;
    rows = 2 * t.seq_q + 4;
    keys = 2 * t.seq_k + 1;
    const DType type = t.packed == 64 ? DType::int64 : DType::int32;
    set_int32(args.cu_seqlens_q, *this, {0, t.seq_q, t.seq_q, t.seq_q + 1, rows}, type);
    set_int32(args.cu_seqlens_k, *this, {0, t.seq_k, t.seq_k + 2, t.seq_k + 2, keys}, type);
  }
  const std::int64_t longest_q = packed ? t.seq_q + 3 : rows;
  const std::int64_t longest_k = packed ? t.seq_k : keys;
  const bool strided = t.transposed || packed;
  args.query = random(t.dtype, {batch, t.head_q, rows, t.dim}, strided, t.seed * 100 + 1);
  args.key = random(t.dtype, {batch, t.head_k, keys, t.dim}, strided, t.seed * 100 + 2);
  args.value = random(t.dtype, {batch, t.head_k, keys, t.dim_v}, t.transposed, t.seed * 100 + 3);
  out = random(t.dtype, {batch, t.head_q, rows, t.dim_v}, t.transposed, 0);
  dout = random(t.dtype, {batch, t.head_q, rows, t.dim_v}, strided, t.seed * 100 + 4);
  lse = random(DType::fp32, {batch, t.head_q, rows, 1}, false, 0);
  dlse = random(DType::fp32, {batch, t.head_q, rows, 1}, false, t.seed * 100 + 5);
  args.out = out;
  args.lse = lse;
  if (t.scale != 0 || t.zero_scale) args.scale = static_cast<float>(t.scale);
  args.softcap = static_cast<float>(t.softcap);
  if (t.alibi != 0) {
    args.alibi_slopes =
        random(DType::fp32, {t.alibi == 2 ? segments : 1, t.head_q, 1, 1}, false, t.seed * 100 + 6);
  }
  if (t.bias != 0) {
    const auto broadcast = [&](int bit, std::int64_t extent) {
      return (t.bias & bit) != 0 ? std::int64_t{1} : extent;
    };
    Tensor bias = random(t.bias_fp32 ? DType::fp32 : t.dtype,
                         {broadcast(2, segments), broadcast(4, t.head_q), broadcast(8, longest_q),
                          broadcast(16, longest_k)},
                         false, t.seed * 100 + 7);
    if ((t.bias & 32) != 0) {
      const Extents own = bias.extent;
      bias.extent = {segments, t.head_q, longest_q, longest_k};
      if (own.batch == 1) bias.stride.batch = 0;
      if (own.head == 1) bias.stride.head = 0;
      if (own.seq == 1) bias.stride.seq = 0;
      if (own.dim == 1) bias.stride.dim = 0;
    } else if (elements(bias.extent) > 2) {
      store(bias.dtype, bias.data, 1, -INFINITY);
    }
    args.bias = bias;
  }
  if (t.boolean_mask) {
    const Tensor mask{nullptr, DType::uint8, {1, t.head_q, longest_q, longest_k}, {}};
    Tensor own = mask;
    own.stride = bhsd_strides(own.extent);
    own.data = allocate(elements(own.extent));
    reference::fill_integers(own, t.seed * 100 + 8, 0, 2);
    for (std::int64_t j = 0; j < longest_k; ++j)
      store(DType::uint8, own.data, 2 * longest_k + j, 0);  // sees nothing
    args.boolean_mask = own;
  }
  if (t.sinks) args.sinks = random(DType::fp32, {1, t.head_q, 1, 1}, false, t.seed * 100 + 9);
  if (t.ranges) {
    std::vector<std::int64_t> begin, end, rows_end;
    for (std::int64_t i = 0; i < segments; ++i) {
      begin.push_back(i % 3);
      end.push_back(i % 2 == 0 ? longest_k + 5 : longest_k - 2);
      rows_end.push_back(i % 2 == 0 ? longest_q - 1 : longest_q + 7);
    }
    set_int32(args.key_begin, *this, begin);
    set_int32(args.key_end, *this, end);
    set_int32(args.query_end, *this, rows_end);
  }
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

}  // namespace

BruteForward brute_forward(const Sample& sample) {
  const Args& a = sample.args;
  const Extents q = a.query.extent;
  const std::int64_t keys_in_memory = a.key.extent.seq;
  const std::int64_t dim_v = a.value.extent.dim;
  const auto rows = static_cast<std::size_t>(q.batch * q.head * q.seq);
  BruteForward result;
  result.out.assign(rows * static_cast<std::size_t>(dim_v), 0);
  result.lse.assign(rows, -INFINITY);
  result.magnitude.assign(rows, 0);
  result.score_magnitude.assign(rows, 0);
  result.visible.assign(rows, false);
  const long double scale =
      a.scale ? static_cast<long double>(*a.scale) : 1 / std::sqrt(static_cast<long double>(q.dim));
  const long double threshold = std::nearbyint(sample.options.dropout * 65536);
  const long double keep_scale = threshold < 65536 ? 65536 / (65536 - threshold) : 0;
  const Mask& mask = sample.options.mask;
  const bool packed = a.cu_seqlens_q.data != nullptr;

  for (std::int64_t b = 0; b < q.batch; ++b) {
    for (std::int64_t row = 0; row < q.seq; ++row) {
      std::int64_t entry = b, first_row = 0, first_key = 0, length_q = q.seq,
                   length_k = keys_in_memory;
      if (packed) {
        for (entry = 0;
             entry + 1 < a.cu_seqlens_q.size && integer(a.cu_seqlens_q, entry + 1, 0) <= row;)
          ++entry;
        first_row = integer(a.cu_seqlens_q, entry, 0);
        first_key = integer(a.cu_seqlens_k, entry, 0);
        length_q = integer(a.cu_seqlens_q, entry + 1, 0) - first_row;
        length_k = integer(a.cu_seqlens_k, entry + 1, 0) - first_key;
      }
      const std::int64_t key_begin = integer(a.key_begin, entry, 0);
      const std::int64_t key_end = std::min(integer(a.key_end, entry, length_k), length_k);
      const std::int64_t query_end = std::min(integer(a.query_end, entry, length_q), length_q);
      const std::int64_t diagonal =
          mask.alignment() == Alignment::TopLeft ? 0 : key_end - query_end;
      const std::int64_t i = row - first_row;
      for (std::int64_t h = 0; h < q.head; ++h) {
        const std::int64_t hk = h / (q.head / a.key.extent.head);
        const auto r = static_cast<std::size_t>((b * q.head + h) * q.seq + row);
        std::vector<long double> score(static_cast<std::size_t>(length_k), -INFINITY);
        for (std::int64_t j = 0; j < length_k; ++j) {
          bool see = i < query_end && j >= key_begin && j < key_end;
          if (mask.left() && j < i + diagonal - *mask.left()) see = false;
          if (mask.right() && j > i + diagonal + *mask.right()) see = false;
          if (a.boolean_mask.data != nullptr && at(a.boolean_mask, entry, h, i, j) == 0)
            see = false;
          if (!see) continue;
          long double dot = 0, absolute = 0;
          for (std::int64_t d = 0; d < q.dim; ++d) {
            const long double product =
                static_cast<long double>(at(a.query, b, h, row, d)) *
                static_cast<long double>(at(a.key, b, hk, first_key + j, d));
            dot += product;
            absolute += std::abs(product);
          }
          long double s = dot * scale;
          if (a.softcap > 0) s = a.softcap * std::tanh(s / a.softcap);
          if (a.bias.data != nullptr) s += at(a.bias, entry, h, i, j);
          if (a.alibi_slopes.data != nullptr) {
            s -= at(a.alibi_slopes, entry, h, 0, 0) *
                 static_cast<long double>(std::abs(i + diagonal - j));
          }
          score[static_cast<std::size_t>(j)] = s;
          if (s == -INFINITY) continue;
          result.visible[r] = true;
          result.score_magnitude[r] =
              std::max(result.score_magnitude[r], std::abs(scale) * absolute);
        }
        long double sum = 0;
        for (const long double s : score) sum += std::exp(s);
        if (a.sinks.data != nullptr && i < query_end)
          sum += std::exp(static_cast<long double>(at(a.sinks, 0, h, 0, 0)));
        result.lse[r] = sum > 0 ? std::log(sum) : -INFINITY;
        for (std::int64_t d = 0; d < dim_v; ++d) {
          long double out = 0, absolute = 0;
          for (std::int64_t j = 0; j < length_k; ++j) {
            if (score[static_cast<std::size_t>(j)] == -INFINITY) continue;
            long double weight = std::exp(score[static_cast<std::size_t>(j)]) / sum * keep_scale;
            if (!kept(a, sample.options.dropout, static_cast<std::uint64_t>(entry * q.head + h),
                      static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j))) {
              weight = 0;
            }
            const long double v = at(a.value, b, hk, first_key + j, d);
            out += weight * v;
            absolute += weight * std::abs(v);
          }
          result.out[r * static_cast<std::size_t>(dim_v) + static_cast<std::size_t>(d)] = out;
          result.magnitude[r] = std::max(result.magnitude[r], absolute);
        }
      }
    }
  }
  return result;
}

}  // namespace tessera::testing
