#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/number.hpp"
#include "reference/reference.hpp"
#include "reference/scores.hpp"

namespace tessera::reference {
namespace {

template <class Real>
constexpr bool kLow = sizeof(Real) == sizeof(float);

template <class Real>
struct ForwardTile {
  ScoreTile<Real> scores;
  std::vector<Real> sum, absolute_sum;

  void compute(const Call& call, const Sequence& s, std::int64_t head, RowRange range,
               const Panel<Real>& keys_transposed, const Panel<Real>& values, Forward& result);
};

template <class Real>
void ForwardTile<Real>::compute(const Call& call, const Sequence& s, std::int64_t head,
                                RowRange range, const Panel<Real>& keys_transposed,
                                const Panel<Real>& values, Forward& result) {
  scores.compute(call, s, head, range, keys_transposed, !kLow<Real>, false);
  Real* weight = scores.weight.data();
  const std::int64_t size = range.count * scores.width;
  if constexpr (kLow<Real>) round_to(call.input, weight, size);
  for (std::size_t i = 0; i < scores.keep.size(); ++i) weight[i] *= scores.keep[i];

  const std::int64_t strips = strips_for<Real>(call.dim_v);
  const std::int64_t width = strips * kLanes<Real>;
  sum.assign(static_cast<std::size_t>(range.count * width), Real{0});
  absolute_sum.assign(kLow<Real> ? 0 : sum.size(), Real{0});
  if (scores.width > 0) {
    const std::int64_t skip = scores.keys.begin - scores.origin;
    multiply_seen(Product<Real>{.a = weight + skip,
                                .absolute_a = weight + skip,
                                .a_row = scores.width,
                                .b = values.strip(0, scores.keys.begin),
                                .b_strip = values.inner * kLanes<Real>,
                                .c = sum.data(),
                                .absolute_c = kLow<Real> ? nullptr : absolute_sum.data(),
                                .c_row = width,
                                .rows = range.count,
                                .inner = scores.keys.end - scores.keys.begin,
                                .strips = strips},
                  values, scores.keys.begin, scores.seen.data() + skip);
  }
  if constexpr (kLow<Real>) {
    if (call.half_products) round_to(DType::fp16, sum.data(), range.count * width);
  }
  const auto keep_scale = static_cast<Real>(call.dropout.keep_scale());
  for (std::int64_t r = 0; r < range.count; ++r) {
    const RowStatistics<Real>& row = scores.rows[static_cast<std::size_t>(r)];
    const auto at = static_cast<std::size_t>((s.batch * result.head + head) * result.seq +
                                             s.first_row + range.first + r);
    result.lse[at] = static_cast<double>(row.lse);
    if (!kLow<Real>) result.score_magnitude[at] = row.magnitude;
    if (row.empty) continue;
    double* out = result.out.data() + static_cast<std::int64_t>(at) * result.dim;
    const auto finish = [&](Real x) {
      return static_cast<double>(x * row.numerator / row.denominator * keep_scale);
    };
    for (std::int64_t d = 0; d < call.dim_v; ++d) {
      const double value = finish(sum[static_cast<std::size_t>(r * width + d)]);
      out[d] = kLow<Real> ? round_to(call.output, value) : value;
      if (!kLow<Real>) {
        result.magnitude[at] = std::max(
            result.magnitude[at], finish(absolute_sum[static_cast<std::size_t>(r * width + d)]));
      }
    }
  }
}

template <class Real>
Forward compute(const Args& args, const Options& options) {
  const Call call(args, options);
  Forward result{.batch = args.query.extent.batch,
                 .head = call.head_q,
                 .seq = args.query.extent.seq,
                 .dim = call.dim_v};
  const auto rows = static_cast<std::size_t>(result.batch * result.head * result.seq);
  result.out.assign(rows * static_cast<std::size_t>(result.dim), 0.0);
  result.lse.assign(rows, -std::numeric_limits<double>::infinity());
  result.magnitude.assign(kLow<Real> ? 0 : rows, 0.0);
  result.score_magnitude.assign(kLow<Real> ? 0 : rows, 0.0);

  // Few sequences and heads: their tiles are spread over threads. Many: sequences and heads are.
  const std::vector<Sequence> sequences = call.with_rows();
  const std::int64_t pairs = static_cast<std::int64_t>(sequences.size()) * call.head_k;
  double work = 0;
  for (const Sequence& s : sequences) {
    work += static_cast<double>(s.rows) * static_cast<double>(s.keys) *
            static_cast<double>(call.head_q) * static_cast<double>(call.dim + call.dim_v);
  }
  const bool spread_pairs = pairs >= 8;
  parallel(pairs, spread_pairs ? work : 0, [&](std::int64_t pair) {
    const Sequence& s = sequences[static_cast<std::size_t>(pair / call.head_k)];
    const std::int64_t head_k = pair % call.head_k;
    const Panel<Real> keys_transposed = pack_keys_transposed<Real>(args.key, s, head_k);
    const Panel<Real> values = pack_keys<Real>(args.value, s, head_k);
    const std::vector<RowRange> tiles = row_tiles(s);
    const auto count = static_cast<std::int64_t>(tiles.size());
    parallel(count * call.group, spread_pairs ? 0 : work / static_cast<double>(pairs),
             [&](std::int64_t item) {
               thread_local ForwardTile<Real> tile;
               tile.compute(call, s, head_k * call.group + item / count,
                            tiles[static_cast<std::size_t>(item % count)], keys_transposed, values,
                            result);
             });
  });
  return result;
}

}  // namespace

Forward forward(const Args& args, const Options& options) { return compute<double>(args, options); }

Forward forward_low(const Args& args, const Options& options) {
  return compute<float>(args, options);
}

}  // namespace tessera::reference
