#include "reference/scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/number.hpp"

namespace tessera::reference {
namespace {

template <class Real>
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

// Stride along an axis of an operand that may broadcast: extent 1 repeats.
struct ScoreStrides {
  explicit ScoreStrides(const ConstTensor& t)
      : batch(t.extent.batch == 1 ? 0 : t.stride.batch),
        head(t.extent.head == 1 ? 0 : t.stride.head),
        row(t.extent.seq == 1 ? 0 : t.stride.seq),
        column(t.extent.dim == 1 ? 0 : t.stride.dim) {}
  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t r, std::int64_t c) const {
    return b * batch + h * head + r * row + c * column;
  }
  std::int64_t batch, head, row, column;
};

// Elements [sequence, head, row, columns] of a bias, mask or slope.
template <class Real>
void load_line(const ConstTensor& t, const Sequence& s, std::int64_t head, std::int64_t row,
               Interval columns, Real* to) {
  const ScoreStrides strides(t);
  convert(t.dtype, t.data, strides.at(s.index, head, row, columns.begin), strides.column,
          columns.end - columns.begin, to);
}

// Reduces in kLanes columns, which compilers vectorise although the operation is not associative.
template <class Real, class Operation>
Real reduce(const Real* values, std::int64_t count, Real neutral, Operation operation) {
  constexpr std::int64_t kWidth = kLanes<Real>;
  Real lanes[kWidth];
  std::fill(lanes, lanes + kWidth, neutral);
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    for (std::int64_t lane = 0; lane < kWidth; ++lane) {
      lanes[lane] = operation(lanes[lane], values[i + lane]);
    }
  }
  Real result = neutral;
  for (const Real lane : lanes) result = operation(result, lane);
  for (; i < count; ++i) result = operation(result, values[i]);
  return result;
}

template <class Real>
bool has_nan(const Real* values, std::int64_t count) {
  int found = 0;
  for (std::int64_t i = 0; i < count; ++i) found |= std::isnan(values[i]) ? 1 : 0;
  return found != 0;
}

// A visible score plus a finite bias is finite: what overflows saturates.
template <class Real>
Real add_bias(Real score, Real bias) {
  constexpr Real kLowest = std::numeric_limits<Real>::lowest();
  const Real sum = score + bias;
  if (bias == -kInfinity<Real>) return bias;
  return sum < kLowest && score >= kLowest ? kLowest : sum;
}

// Calls `put(key, elements)` for the keys that may be seen.
template <class Real, class Put>
void for_each_key(const ConstTensor& t, const Sequence& s, std::int64_t head, Put put) {
  std::vector<Real> line(static_cast<std::size_t>(t.extent.dim));
  for (std::int64_t j = s.key_begin; j < s.key_end; ++j) {
    convert(t.dtype, t.data, index_of(t.stride, s.batch, head, s.first_key + j, 0), t.stride.dim,
            t.extent.dim, line.data());
    put(j, line.data());
  }
}

}  // namespace

std::vector<RowRange> row_tiles(const Sequence& sequence) {
  constexpr std::int64_t kElements = 32768;
  const std::int64_t rows =
      std::clamp<std::int64_t>(kElements / std::max<std::int64_t>(sequence.keys, 1), 4, 32) / 4 * 4;
  std::vector<RowRange> tiles;
  for (std::int64_t first = 0; first < sequence.rows; first += rows) {
    tiles.push_back({first, std::min(rows, sequence.rows - first)});
  }
  return tiles;
}

template <class Real>
Panel<Real> pack_keys_transposed(const ConstTensor& t, const Sequence& s, std::int64_t head) {
  Panel<Real> panel;
  panel.resize(t.extent.dim, s.keys);
  for_each_key<Real>(t, s, head,
                     [&](std::int64_t key, const Real* line) { panel.set_column(key, line); });
  return panel;
}

template <class Real>
Panel<Real> pack_keys(const ConstTensor& t, const Sequence& s, std::int64_t head) {
  Panel<Real> panel;
  panel.resize(s.keys, t.extent.dim);
  for_each_key<Real>(t, s, head,
                     [&](std::int64_t key, const Real* line) { panel.set_row(key, line); });
  return panel;
}

template <class Real>
void ScoreTile<Real>::compute(const Call& call, const Sequence& s, std::int64_t head,
                              RowRange new_range, const Panel<Real>& keys_transposed,
                              bool magnitudes, bool derivative) {
  range = new_range;
  rows.assign(static_cast<std::size_t>(range.count), {});
  keys = {};
  for (std::int64_t r = 0; r < range.count; ++r) {
    const Interval visible = call.visible(s, range.first + r);
    rows[static_cast<std::size_t>(r)].visible = visible;
    if (visible.empty()) continue;
    keys = keys.empty()
               ? visible
               : Interval{std::min(keys.begin, visible.begin), std::max(keys.end, visible.end)};
  }
  origin = keys.begin / kLanes<Real> * kLanes<Real>;
  const std::int64_t strips = keys.empty() ? 0 : strips_for<Real>(keys.end - origin);
  width = strips * kLanes<Real>;
  const auto size = static_cast<std::size_t>(range.count * width);
  weight.resize(size);
  seen.assign(size, 0);
  keep.assign(call.dropout.threshold != 0 ? size : 0, Real{1});
  capped.assign(derivative && call.args.softcap > 0 ? size : 0, Real{0});
  absolute_score_.resize(magnitudes ? size : 0);
  line_.resize(static_cast<std::size_t>(width));

  const ConstTensor& q = call.args.query;
  query_.assign(static_cast<std::size_t>(range.count * call.dim), Real{0});
  for (std::int64_t r = 0; r < range.count; ++r) {
    if (rows[static_cast<std::size_t>(r)].visible.empty()) continue;
    convert(q.dtype, q.data, index_of(q.stride, s.batch, head, s.first_row + range.first + r, 0),
            q.stride.dim, call.dim, query_.data() + r * call.dim);
  }
  absolute_query_.resize(magnitudes ? query_.size() : 0);
  for (std::size_t i = 0; i < absolute_query_.size(); ++i) absolute_query_[i] = std::abs(query_[i]);

  if (width > 0) {
    multiply(Product<Real>{.a = query_.data(),
                           .absolute_a = absolute_query_.data(),
                           .a_row = call.dim,
                           .b = keys_transposed.strip(origin / kLanes<Real>, 0),
                           .b_strip = call.dim * kLanes<Real>,
                           .c = weight.data(),
                           .absolute_c = magnitudes ? absolute_score_.data() : nullptr,
                           .c_row = width,
                           .rows = range.count,
                           .inner = call.dim,
                           .strips = strips});
    if constexpr (sizeof(Real) == sizeof(float)) {
      if (call.half_products) round_to(DType::fp16, weight.data(), range.count * width);
    }
  }
  for (std::int64_t r = 0; r < range.count; ++r) {
    if (!rows[static_cast<std::size_t>(r)].visible.empty()) modify(call, s, head, r, derivative);
    exponentiate(call, s, head, r);
    if (call.dropout.threshold == 0 || width == 0) continue;
    const Interval visible = rows[static_cast<std::size_t>(r)].visible;
    for (std::int64_t j = visible.begin / 8 * 8; j < visible.end; j += 8) {
      const auto numbers = call.dropout.draw(s.index * call.head_q + head, range.first + r, j);
      for (std::int64_t c = std::max(j, visible.begin); c < std::min(j + 8, visible.end); ++c) {
        keep[static_cast<std::size_t>(r * width + c - origin)] =
            numbers[static_cast<std::size_t>(c - j)] >= call.dropout.threshold ? Real{1} : Real{0};
      }
    }
  }
}

// Products become scores: scale, softcap, bias, ALiBi, mask, in this order. A key that is hidden
// gets −∞ by selection.
template <class Real>
void ScoreTile<Real>::modify(const Call& call, const Sequence& s, std::int64_t head,
                             std::int64_t row, bool derivative) {
  RowStatistics<Real>& statistics = rows[static_cast<std::size_t>(row)];
  const Interval visible = statistics.visible;
  const std::int64_t count = visible.end - visible.begin;
  Real* score = weights(row) + visible.begin - origin;
  std::uint8_t* see = seen.data() + row * width + visible.begin - origin;
  const Args& args = call.args;

  const auto scale = static_cast<Real>(call.scale);
  for (std::int64_t j = 0; j < count; ++j) score[j] *= scale;
  if (args.softcap > 0) {
    const auto cap = static_cast<Real>(args.softcap);
    for (std::int64_t j = 0; j < count; ++j) {
      const Real t = std::tanh(score[j] / cap);
      score[j] = cap * t;
      if (derivative)
        capped[static_cast<std::size_t>(row * width + visible.begin - origin + j)] = 1 - t * t;
    }
  }
  std::fill(see, see + count, std::uint8_t{1});
  const std::int64_t i = range.first + row;
  if (args.bias.data != nullptr) {
    load_line(args.bias, s, head, i, visible, line_.data());
    for (std::int64_t j = 0; j < count; ++j) {
      score[j] = add_bias(score[j], line_[static_cast<std::size_t>(j)]);
      see[j] = line_[static_cast<std::size_t>(j)] != -kInfinity<Real>;
    }
  }
  if (args.alibi_slopes.data != nullptr) {
    Real slope = 0;
    load_line(args.alibi_slopes, s, head, 0, {0, 1}, &slope);
    for (std::int64_t j = 0; j < count; ++j) {
      score[j] = add_bias(score[j],
                          -slope * static_cast<Real>(std::abs(i + s.diagonal - visible.begin - j)));
    }
  }
  if (args.boolean_mask.data != nullptr) {
    load_line(args.boolean_mask, s, head, i, visible, line_.data());
    for (std::int64_t j = 0; j < count; ++j) see[j] &= line_[static_cast<std::size_t>(j)] != 0;
  }
  if (args.bias.data != nullptr || args.boolean_mask.data != nullptr) {
    for (std::int64_t j = 0; j < count; ++j) score[j] = see[j] != 0 ? score[j] : -kInfinity<Real>;
  }
  if (!absolute_score_.empty()) {
    const Real* absolute = absolute_score_.data() + row * width + visible.begin - origin;
    for (std::int64_t j = 0; j < count; ++j) {
      if (see[j] != 0)
        statistics.magnitude = std::max(statistics.magnitude, static_cast<double>(absolute[j]));
    }
    statistics.magnitude *= std::abs(call.scale);
  }
}

// Scores become weights, relative to the row's maximum. What lies outside of the row's interval
// becomes 0.
template <class Real>
void ScoreTile<Real>::exponentiate(const Call& call, const Sequence& s, std::int64_t head,
                                   std::int64_t row) {
  RowStatistics<Real>& statistics = rows[static_cast<std::size_t>(row)];
  const Interval visible = statistics.visible;
  Real* begin = weights(row);
  Real* score = begin + visible.begin - (visible.empty() ? visible.begin : origin);
  const std::int64_t count = visible.end - visible.begin;

  const bool nan = has_nan(score, count);
  const Real maximum =
      reduce(score, count, -kInfinity<Real>, [](Real a, Real b) { return b > a ? b : a; });
  Real sum = 0;
  statistics.empty = maximum == -kInfinity<Real> && !nan;
  if (statistics.empty) {
    std::fill(begin, begin + width, Real{0});
  } else {
    std::fill(begin, score, Real{0});
    for (std::int64_t j = 0; j < count; ++j) score[j] = std::exp(score[j] - maximum);
    if (nan) {  // −∞ − maximum may be NaN: what is hidden has no weight
      const std::uint8_t* see = seen_row(row) + (score - begin);
      for (std::int64_t j = 0; j < count; ++j) score[j] = see[j] != 0 ? score[j] : Real{0};
    }
    sum = reduce(score, count, Real{0}, [](Real a, Real b) { return a + b; });
    std::fill(score + count, begin + width, Real{0});
  }

  Real sink = -kInfinity<Real>;  // none; a row from query_end on does not even see the sink
  if (call.args.sinks.data != nullptr && range.first + row < s.query_end) {
    load_line(call.args.sinks, {}, head, 0, {0, 1}, &sink);
  }
  if (statistics.empty) {
    statistics.lse = sink;
    statistics.sink = sink == -kInfinity<Real> ? Real{0} : Real{1};
  } else if (sink == -kInfinity<Real>) {
    statistics.lse = maximum + std::log(sum);
    statistics.numerator = 1;
    statistics.denominator = sum;
  } else {
    const Real top = std::max(maximum, sink);
    statistics.numerator = std::exp(maximum - top);
    statistics.denominator = sum * statistics.numerator + std::exp(sink - top);
    statistics.lse = top + std::log(statistics.denominator);
    statistics.sink = std::exp(sink - top) / statistics.denominator;
  }
}

template <class Real>
void multiply_seen(const Product<Real>& p, const Panel<Real>& b, std::int64_t first,
                   const std::uint8_t* seen) {
  if (b.finite) return multiply(p);
  for (std::int64_t r = 0; r < p.rows; ++r) {
    for (std::int64_t n = 0; n < b.columns; ++n) {
      Real sum = 0;
      Real absolute = 0;
      for (std::int64_t k = 0; k < p.inner; ++k) {
        const std::int64_t at = r * p.a_row + k * p.a_inner;
        if (seen[at] == 0) continue;
        sum += p.a[at] * b.at(first + k, n);
        if (p.absolute_c != nullptr) absolute += p.absolute_a[at] * std::abs(b.at(first + k, n));
      }
      const std::int64_t to = r * p.c_row + n;
      p.c[to] = p.add ? p.c[to] + sum : sum;
      if (p.absolute_c != nullptr)
        p.absolute_c[to] = p.add ? p.absolute_c[to] + absolute : absolute;
    }
  }
}

template struct ScoreTile<double>;
template struct ScoreTile<float>;
template Panel<double> pack_keys_transposed<double>(const ConstTensor&, const Sequence&,
                                                    std::int64_t);
template Panel<float> pack_keys_transposed<float>(const ConstTensor&, const Sequence&,
                                                  std::int64_t);
template Panel<double> pack_keys<double>(const ConstTensor&, const Sequence&, std::int64_t);
template Panel<float> pack_keys<float>(const ConstTensor&, const Sequence&, std::int64_t);
template void multiply_seen<double>(const Product<double>&, const Panel<double>&, std::int64_t,
                                    const std::uint8_t*);
template void multiply_seen<float>(const Product<float>&, const Panel<float>&, std::int64_t,
                                   const std::uint8_t*);

}  // namespace tessera::reference
