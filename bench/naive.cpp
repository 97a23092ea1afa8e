#include "bench/naive.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <tessera/error.hpp>

#include "reference/number.hpp"
#include "reference/threads.hpp"

namespace tessera::bench {
namespace {

/// One head: dense float32 rows.
struct Head {
  const float* query;  // [rows, dim], scaled
  const float* key;    // [keys, dim]
  const float* value;  // [keys, dim_v]
  float* scores;       // [rows, keys]
  float* out;          // [rows, dim_v]
  float* lse;          // [rows]
  std::int64_t rows, keys, dim, dim_v;
  std::int64_t left, right,
      diagonal;  // row i sees keys from i + diagonal − left to i + diagonal + right

  std::int64_t begin(std::int64_t row) const {
    return std::clamp<std::int64_t>(row + diagonal - left, 0, keys);
  }
  std::int64_t end(std::int64_t row) const {
    return std::max(begin(row), std::clamp<std::int64_t>(row + diagonal + right + 1, 0, keys));
  }
};

// Inlined into functions for several instruction sets, so that the compiler vectorises it for each.
[[gnu::always_inline]] inline void compute(const Head& h) {
  for (std::int64_t i = 0; i < h.rows; ++i) {  // S = Q Kᵀ
    const float* q = h.query + i * h.dim;
    for (std::int64_t j = h.begin(i); j < h.end(i); ++j) {
      const float* k = h.key + j * h.dim;
      float sum = 0;
      for (std::int64_t d = 0; d < h.dim; ++d) sum += q[d] * k[d];
      h.scores[i * h.keys + j] = sum;
    }
  }
  for (std::int64_t i = 0; i < h.rows; ++i) {  // P = softmax(S), in place
    const std::int64_t begin = h.begin(i);
    const std::int64_t end = h.end(i);
    if (begin == end) continue;
    float* s = h.scores + i * h.keys;
    float maximum = s[begin];
    for (std::int64_t j = begin; j < end; ++j) maximum = std::max(maximum, s[j]);
    float sum = 0;
    for (std::int64_t j = begin; j < end; ++j) {
      s[j] = std::exp(s[j] - maximum);
      sum += s[j];
    }
    const float inverse = 1 / sum;
    for (std::int64_t j = begin; j < end; ++j) s[j] *= inverse;
    h.lse[i] = maximum + std::log(sum);
  }
  for (std::int64_t i = 0; i < h.rows; ++i) {  // O = P V
    float* out = h.out + i * h.dim_v;
    for (std::int64_t d = 0; d < h.dim_v; ++d) out[d] = 0;
    for (std::int64_t j = h.begin(i); j < h.end(i); ++j) {
      const float p = h.scores[i * h.keys + j];
      const float* v = h.value + j * h.dim_v;
      for (std::int64_t d = 0; d < h.dim_v; ++d) out[d] += p * v[d];
    }
  }
}

void compute_portable(const Head& h) { compute(h); }

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void compute_avx2(const Head& h) { compute(h); }
#if defined(__clang__)  // does not know the attribute; g++ would stay with half vectors without it
#define TESSERA_WIDE ""
#else
#define TESSERA_WIDE ",prefer-vector-width=512"
#endif
[[gnu::target("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw" TESSERA_WIDE)]] void compute_avx512(
    const Head& h) {
  compute(h);
}
#endif

using Compute = void (*)(const Head&);

Compute best_compute() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    return compute_avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return compute_avx2;
#endif
  return compute_portable;
}

/// One thread's scratch memory.
class Worker {
 public:
  Worker(const Args& args, const Options& options) : args_(args), options_(options) {}

  void head(std::int64_t batch, std::int64_t head) {
    const Extents& q = args_.query.extent;
    const Extents& k = args_.key.extent;
    const std::int64_t head_k = head / (q.head / k.head);
    gather(args_.query, batch, head, query_);
    gather(args_.key, batch, head_k, key_);
    gather(args_.value, batch, head_k, value_);
    const float scale = args_.scale.value_or(1 / std::sqrt(static_cast<float>(q.dim)));
    for (float& x : query_) x *= scale;
    const std::int64_t dim_v = args_.value.extent.dim;
    scores_.resize(static_cast<std::size_t>(q.seq * k.seq));
    out_.resize(static_cast<std::size_t>(q.seq * dim_v));
    lse_.assign(static_cast<std::size_t>(q.seq), -std::numeric_limits<float>::infinity());

    // Large enough for any row, small enough to add.
    constexpr std::int64_t kUnbounded = std::int64_t{1} << 61;
    const Mask& mask = options_.mask;
    static const Compute best = best_compute();
    best({.query = query_.data(),
          .key = key_.data(),
          .value = value_.data(),
          .scores = scores_.data(),
          .out = out_.data(),
          .lse = lse_.data(),
          .rows = q.seq,
          .keys = k.seq,
          .dim = q.dim,
          .dim_v = dim_v,
          .left = std::min(mask.left().value_or(kUnbounded), kUnbounded),
          .right = std::min(mask.right().value_or(kUnbounded), kUnbounded),
          .diagonal = mask.alignment() == Alignment::BottomRight ? k.seq - q.seq : 0});
    scatter(out_, batch, head, args_.out);
    if (args_.lse.data != nullptr) scatter(lse_, batch, head, args_.lse);
  }

 private:
  static void gather(const ConstTensor& t, std::int64_t batch, std::int64_t head,
                     std::vector<float>& to) {
    const Extents& e = t.extent;
    to.resize(static_cast<std::size_t>(e.seq * e.dim));
    for (std::int64_t i = 0; i < e.seq; ++i) {
      reference::convert(t.dtype, t.data, reference::index_of(t.stride, batch, head, i, 0),
                         t.stride.dim, e.dim, to.data() + i * e.dim);
    }
  }

  static void scatter(const std::vector<float>& from, std::int64_t batch, std::int64_t head,
                      const Tensor& t) {
    const Extents& e = t.extent;
    for (std::int64_t i = 0; i < e.seq; ++i) {
      for (std::int64_t d = 0; d < e.dim; ++d) {
        reference::store(t.dtype, t.data, reference::index_of(t.stride, batch, head, i, d),
                         static_cast<double>(from[static_cast<std::size_t>(i * e.dim + d)]));
      }
    }
  }

  const Args& args_;
  const Options& options_;
  std::vector<float> query_, key_, value_, scores_, out_, lse_;
};

}  // namespace

void naive_forward(const Args& args, const Options& options, int threads) {
  const bool modified = args.softcap > 0 || options.dropout > 0 ||
                        args.alibi_slopes.data != nullptr || args.bias.data != nullptr ||
                        args.boolean_mask.data != nullptr || args.sinks.data != nullptr;
  const bool ranged = args.key_begin.data != nullptr || args.key_end.data != nullptr ||
                      args.query_end.data != nullptr || args.cu_seqlens_q.data != nullptr;
  if (modified || ranged) {
    throw Unsupported(
        "the naive computation knows masks, scale and grouped heads only; reference/ knows every "
        "option");
  }
  const Extents& q = args.query.extent;
  std::atomic<std::int64_t> next = 0;
  reference::on_threads(std::min<std::int64_t>(threads, q.batch * q.head), [&] {
    Worker worker(args, options);
    for (std::int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < q.batch * q.head;) {
      worker.head(i / q.head, i % q.head);
    }
  });
}

}  // namespace tessera::bench
