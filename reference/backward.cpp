#include <algorithm>
#include <cmath>

#include "reference/number.hpp"
#include "reference/reference.hpp"
#include "reference/scores.hpp"

// With S the scores, P = softmax(S), M what dropout multiplies weights with (0 or 1 / realised keep
// probability):
//
//   O = (P∘M)·V      dV = (P∘M)ᵀ·dO      dP = (dO·Vᵀ)∘M      D = rowsum(P∘dP) = rowsum(dO∘O)
//   dS = P∘(dP − D + dlse)   dbias = dS   dsink = Σ P_sink·(dlse − D)
//   dX = scale·dS∘cap′       dQ = dX·K    dK = dXᵀ·Q          where S = cap(scale·Q·Kᵀ) + bias +
//   ALiBi

namespace tessera::reference {
namespace {

template <class Real>
constexpr bool kLow = sizeof(Real) == sizeof(float);

// An accumulator and, in the reference, the sum of its terms' absolute values beside it.
template <class Real>
struct Sum {
  std::vector<Real> value, absolute;

  void reset(std::int64_t size) {
    value.assign(static_cast<std::size_t>(size), Real{0});
    absolute.assign(kLow<Real> ? 0 : value.size(), Real{0});
  }
  Real* absolute_at(std::int64_t at) { return kLow<Real> ? nullptr : absolute.data() + at; }
};

// What all threads see.
template <class Real>
struct Job {
  const Call& call;
  const ConstTensor& dout;
  const ConstTensor& dlse;
  const std::vector<double>& out;  // the rounded output; empty: D is that of the unrounded one
  const ConstTensor& lse;          // weights are exp(score − lse); null: those of the scores alone
  Backward& result;
  Sum<Real>& dbias;  // of the bias's shape
  Sum<Real>& dsink;  // [sequence, head_q]
};

// Gradients of one sequence and key head.
template <class Real>
class PairBackward {
 public:
  PairBackward(const Job<Real>& job, const Sequence& sequence, std::int64_t head_k)
      : job_(job), call_(job.call), s_(sequence), head_k_(head_k) {}

  void run();

 private:
  void tile(std::int64_t head, RowRange range);
  void load_rows(std::int64_t head, RowRange range);
  void score_gradient(std::int64_t head, std::int64_t row);
  void add_dbias(std::int64_t head, std::int64_t row);
  void query_gradient(std::int64_t head);
  void key_gradients();
  void store(const Sum<Real>& sum, std::int64_t columns, Real factor, std::vector<double>& to,
             std::vector<double>& magnitude, std::int64_t first_row, std::int64_t rows);

  const Job<Real>& job_;
  const Call& call_;
  const Sequence& s_;
  const std::int64_t head_k_;
  const std::int64_t width_ = strips_for<Real>(job_.call.dim) * kLanes<Real>;
  const std::int64_t width_v_ = strips_for<Real>(job_.call.dim_v) * kLanes<Real>;
  Panel<Real> keys_, keys_transposed_, values_transposed_;
  Sum<Real> dk_, dv_, dq_;

  ScoreTile<Real> scores_;  // its weights become P∘M, without 1 / keep probability
  Panel<Real> query_, dout_;
  std::vector<Real> dout_rows_;             // [rows][dim_v]
  std::vector<Real> gradient_, magnitude_;  // [rows][scores_.width]: dP, then dS, then dS∘cap′
};

template <class Real>
void PairBackward<Real>::run() {
  keys_ = pack_keys<Real>(call_.args.key, s_, head_k_);
  keys_transposed_ = pack_keys_transposed<Real>(call_.args.key, s_, head_k_);
  values_transposed_ = pack_keys_transposed<Real>(call_.args.value, s_, head_k_);
  dk_.reset(s_.keys * width_);
  dv_.reset(s_.keys * width_v_);
  for (std::int64_t head = head_k_ * call_.group; head < (head_k_ + 1) * call_.group; ++head) {
    for (const RowRange& range : row_tiles(s_)) tile(head, range);
  }
  const ConstTensor& k = call_.args.key;
  const std::int64_t first = (s_.batch * call_.head_k + head_k_) * k.extent.seq + s_.first_key;
  Backward& result = job_.result;
  store(dk_, call_.dim, static_cast<Real>(call_.scale), result.dk, result.dk_magnitude, first,
        s_.keys);
  store(dv_, call_.dim_v, static_cast<Real>(call_.dropout.keep_scale()), result.dv,
        result.dv_magnitude, first, s_.keys);
}

template <class Real>
void PairBackward<Real>::tile(std::int64_t head, RowRange range) {
  scores_.compute(call_, s_, head, range, keys_transposed_, false, true);
  const auto size = static_cast<std::size_t>(range.count * scores_.width);
  gradient_.assign(size, Real{0});
  magnitude_.assign(kLow<Real> ? 0 : size, Real{0});
  load_rows(head, range);
  if (scores_.width > 0) {
    multiply(Product<Real>{.a = dout_rows_.data(),
                           .a_row = call_.dim_v,
                           .b = values_transposed_.strip(scores_.origin / kLanes<Real>, 0),
                           .b_strip = call_.dim_v * kLanes<Real>,
                           .c = gradient_.data(),
                           .c_row = scores_.width,
                           .rows = range.count,
                           .inner = call_.dim_v,
                           .strips = scores_.width / kLanes<Real>});
  }
  for (std::int64_t row = 0; row < range.count; ++row) {
    score_gradient(head, row);
    if (scores_.width > 0) add_dbias(head, row);
  }
  for (std::size_t i = 0; i < scores_.capped.size(); ++i) {
    if (scores_.seen[i] == 0) continue;
    gradient_[i] *= scores_.capped[i];
    if (!kLow<Real>) magnitude_[i] *= scores_.capped[i];
  }
  if constexpr (kLow<Real>) {
    round_to(call_.input, gradient_.data(), static_cast<std::int64_t>(size));
    round_to(call_.input, scores_.weight.data(), static_cast<std::int64_t>(size));
  }
  for (std::size_t i = 0; i < scores_.keep.size(); ++i) scores_.weight[i] *= scores_.keep[i];
  query_gradient(head);
  if (scores_.width > 0) key_gradients();
}

// The rows of query and dO that take part; the others stay 0, whatever they hold.
template <class Real>
void PairBackward<Real>::load_rows(std::int64_t head, RowRange range) {
  const ConstTensor& q = call_.args.query;
  const ConstTensor& g = job_.dout;
  query_.resize(range.count, call_.dim);
  dout_.resize(range.count, call_.dim_v);
  dout_rows_.assign(static_cast<std::size_t>(range.count * call_.dim_v), Real{0});
  std::vector<Real> line(static_cast<std::size_t>(call_.dim));
  for (std::int64_t r = 0; r < range.count; ++r) {
    if (scores_.rows[static_cast<std::size_t>(r)].empty) continue;
    const std::int64_t row = s_.first_row + range.first + r;
    convert(q.dtype, q.data, index_of(q.stride, s_.batch, head, row, 0), q.stride.dim, call_.dim,
            line.data());
    query_.set_row(r, line.data());
    Real* to = dout_rows_.data() + r * call_.dim_v;
    convert(g.dtype, g.data, index_of(g.stride, s_.batch, head, row, 0), g.stride.dim, call_.dim_v,
            to);
    dout_.set_row(r, to);
  }
}

// What weights normalised by `own` are multiplied with to be exp(score − given).
template <class Real>
Real moved(Real own, Real given) {
  return std::isfinite(own) && std::isfinite(given) ? std::exp(own - given) : Real{1};
}

// Turns a row of weights into P, a row of dO·Vᵀ into dS; adds the row to dsink.
template <class Real>
void PairBackward<Real>::score_gradient(std::int64_t head, std::int64_t row) {
  const RowStatistics<Real>& statistics = scores_.rows[static_cast<std::size_t>(row)];
  const std::int64_t width = scores_.width;
  Real* weight = scores_.weights(row);
  Real* gradient = gradient_.data() + row * width;
  const Real* keep = scores_.keep.empty() ? nullptr : scores_.keep.data() + row * width;
  const std::uint8_t* seen = scores_.seen_row(row);
  const auto keep_scale = static_cast<Real>(call_.dropout.keep_scale());
  const std::int64_t at = s_.first_row + scores_.range.first + row;

  Real d = 0, factor = 1;
  if (job_.lse.data != nullptr) {
    const ConstTensor& t = job_.lse;
    const double given = load(t.dtype, t.data, index_of(t.stride, s_.batch, head, at, 0));
    factor = moved(statistics.lse, static_cast<Real>(given));
  }
  for (std::int64_t j = 0; j < width; ++j) {
    if (statistics.empty || seen[j] == 0) {
      gradient[j] = 0;
      continue;
    }
    weight[j] = factor * weight[j] * statistics.numerator / statistics.denominator;
    if (keep != nullptr) gradient[j] *= keep[j] * keep_scale;
    if (job_.out.empty()) d += weight[j] * gradient[j];
  }
  if (!job_.out.empty() && !statistics.empty) {
    const std::int64_t first =
        ((s_.batch * call_.head_q + head) * call_.args.query.extent.seq + at) * call_.dim_v;
    for (std::int64_t c = 0; c < call_.dim_v; ++c) {
      d += dout_rows_[static_cast<std::size_t>(row * call_.dim_v + c)] *
           static_cast<Real>(job_.out[static_cast<std::size_t>(first + c)]);
    }
  }
  Real dlse = 0;
  if (job_.dlse.data != nullptr && scores_.range.first + row < s_.query_end) {
    const ConstTensor& t = job_.dlse;
    dlse = static_cast<Real>(load(t.dtype, t.data, index_of(t.stride, s_.batch, head, at, 0)));
  }
  if (!job_.dsink.value.empty() && statistics.sink != 0) {
    const auto i = static_cast<std::size_t>(s_.index * call_.head_q + head);
    const Real weight_of_sink = factor * statistics.sink;
    job_.dsink.value[i] += weight_of_sink * (dlse - d);
    if (!kLow<Real>) job_.dsink.absolute[i] += weight_of_sink * (std::abs(d) + std::abs(dlse));
  }
  if (statistics.empty) return;
  for (std::int64_t j = 0; j < width; ++j) {
    if (seen[j] == 0) continue;
    if (!kLow<Real>) {
      magnitude_[static_cast<std::size_t>(row * width + j)] =
          weight[j] * (std::abs(gradient[j]) + std::abs(d) + std::abs(dlse));
    }
    gradient[j] = weight[j] * (gradient[j] - d + dlse);
  }
}

template <class Real>
void PairBackward<Real>::add_dbias(std::int64_t head, std::int64_t row) {
  const ConstTensor& bias = call_.args.bias;
  if (bias.data == nullptr) return;
  const Extents& e = bias.extent;
  const auto index = [](std::int64_t extent, std::int64_t i) { return extent == 1 ? 0 : i; };
  const std::int64_t first = ((index(e.batch, s_.index) * e.head + index(e.head, head)) * e.seq +
                              index(e.seq, scores_.range.first + row)) *
                             e.dim;
  const Interval visible = scores_.rows[static_cast<std::size_t>(row)].visible;
  for (std::int64_t j = visible.begin; j < visible.end; ++j) {
    const auto from = static_cast<std::size_t>(row * scores_.width + j - scores_.origin);
    const auto to = static_cast<std::size_t>(first + index(e.dim, j));
    job_.dbias.value[to] += gradient_[from];
    if (!kLow<Real>) job_.dbias.absolute[to] += magnitude_[from];
  }
}

template <class Real>
void PairBackward<Real>::query_gradient(std::int64_t head) {
  const std::int64_t count = scores_.range.count;
  dq_.reset(count * width_);
  if (scores_.width > 0) {
    const std::int64_t skip = scores_.keys.begin - scores_.origin;
    multiply_seen(Product<Real>{.a = gradient_.data() + skip,
                                .absolute_a = kLow<Real> ? nullptr : magnitude_.data() + skip,
                                .a_row = scores_.width,
                                .b = keys_.strip(0, scores_.keys.begin),
                                .b_strip = keys_.inner * kLanes<Real>,
                                .c = dq_.value.data(),
                                .absolute_c = dq_.absolute_at(0),
                                .c_row = width_,
                                .rows = count,
                                .inner = scores_.keys.end - scores_.keys.begin,
                                .strips = width_ / kLanes<Real>},
                  keys_, scores_.keys.begin, scores_.seen.data() + skip);
  }
  const std::int64_t first = (s_.batch * call_.head_q + head) * call_.args.query.extent.seq +
                             s_.first_row + scores_.range.first;
  store(dq_, call_.dim, static_cast<Real>(call_.scale), job_.result.dq, job_.result.dq_magnitude,
        first, count);
}

template <class Real>
void PairBackward<Real>::key_gradients() {
  const std::int64_t skip = scores_.keys.begin - scores_.origin;
  Product<Real> product{.a_row = 1,
                        .a_inner = scores_.width,
                        .rows = scores_.keys.end - scores_.keys.begin,
                        .inner = scores_.range.count,
                        .add = true};
  const auto add = [&](const Real* a, const Real* absolute_a, const Panel<Real>& b, Sum<Real>& sum,
                       std::int64_t width) {
    product.a = a + skip;
    product.absolute_a = absolute_a + skip;
    product.b = b.strip(0, 0);
    product.b_strip = b.inner * kLanes<Real>;
    product.c = sum.value.data() + scores_.keys.begin * width;
    product.absolute_c = sum.absolute_at(scores_.keys.begin * width);
    product.c_row = width;
    product.strips = width / kLanes<Real>;
    multiply_seen(product, b, 0, scores_.seen.data() + skip);
  };
  add(gradient_.data(), kLow<Real> ? gradient_.data() : magnitude_.data(), query_, dk_, width_);
  add(scores_.weight.data(), scores_.weight.data(), dout_, dv_, width_v_);
}

// Rows of a finished accumulator, times `factor`, to rows from `first_row` on of a dense result.
template <class Real>
void PairBackward<Real>::store(const Sum<Real>& sum, std::int64_t columns, Real factor,
                               std::vector<double>& to, std::vector<double>& magnitude,
                               std::int64_t first_row, std::int64_t rows) {
  const std::int64_t width = strips_for<Real>(columns) * kLanes<Real>;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto from = static_cast<std::size_t>(r * width + c);
      const auto value = static_cast<double>(sum.value[from] * factor);
      to[static_cast<std::size_t>((first_row + r) * columns + c)] =
          kLow<Real> ? round_to(call_.input, value) : value;
      if (kLow<Real>) continue;
      double& largest = magnitude[static_cast<std::size_t>(first_row + r)];
      largest = std::max(largest, std::abs(static_cast<double>(sum.absolute[from] * factor)));
    }
  }
}

std::size_t elements(const Extents& e) {
  return static_cast<std::size_t>(e.batch * e.head * e.seq * e.dim);
}
std::size_t lines(const Extents& e) { return static_cast<std::size_t>(e.batch * e.head * e.seq); }

// Do several sequences or key heads add to the same element of dbias?
bool shares_dbias(const Call& call) {
  const ConstTensor& bias = call.args.bias;
  return bias.data != nullptr && ((bias.extent.batch == 1 && call.sequences.size() > 1) ||
                                  (bias.extent.head == 1 && call.head_q > 1));
}

template <class Real>
void store_bias(const Call& call, const Sum<Real>& dbias, Backward& result) {
  const ConstTensor& bias = call.args.bias;
  if (bias.data == nullptr) return;
  result.dbias.resize(elements(bias.extent));
  result.dbias_magnitude.assign(kLow<Real> ? 0 : lines(bias.extent), 0.0);
  for (std::size_t i = 0; i < result.dbias.size(); ++i) {
    const auto value = static_cast<double>(dbias.value[i]);
    result.dbias[i] = kLow<Real> ? round_to(bias.dtype, value) : value;
    if (kLow<Real>) continue;
    double& largest = result.dbias_magnitude[i / static_cast<std::size_t>(bias.extent.dim)];
    largest = std::max(largest, static_cast<double>(dbias.absolute[i]));
  }
}

template <class Real>
void store_sink(const Call& call, const Sum<Real>& dsink, Backward& result) {
  if (call.args.sinks.data == nullptr) return;
  const auto heads = static_cast<std::size_t>(call.head_q);
  std::vector<Real> sum(heads), absolute(heads);
  for (std::size_t i = 0; i < dsink.value.size(); ++i) {
    sum[i % heads] += dsink.value[i];
    if (!kLow<Real>) absolute[i % heads] += dsink.absolute[i];
  }
  result.dsink.assign(sum.begin(), sum.end());
  if (!kLow<Real>) result.dsink_magnitude.assign(absolute.begin(), absolute.end());
}

template <class Real>
Backward compute(const Args& args, const Options& options, const ConstTensor& dout,
                 const ConstTensor& dlse, const ConstTensor& given, const ConstTensor& lse) {
  const Call call(args, options);
  const std::vector<double> out = given.data != nullptr ? to_doubles(given)
                                  : kLow<Real>          ? forward_low(args, options).out
                                                        : std::vector<double>{};
  Backward result;
  result.dq.assign(elements(args.query.extent), 0.0);
  result.dk.assign(elements(args.key.extent), 0.0);
  result.dv.assign(elements(args.value.extent), 0.0);
  if (!kLow<Real>) {
    result.dq_magnitude.assign(lines(args.query.extent), 0.0);
    result.dk_magnitude.assign(lines(args.key.extent), 0.0);
    result.dv_magnitude.assign(lines(args.value.extent), 0.0);
  }
  Sum<Real> dbias, dsink;
  if (args.bias.data != nullptr) dbias.reset(static_cast<std::int64_t>(elements(args.bias.extent)));
  if (args.sinks.data != nullptr)
    dsink.reset(static_cast<std::int64_t>(call.sequences.size()) * call.head_q);
  const std::vector<Sequence> sequences = call.with_rows();
  double work = 0;
  for (const Sequence& s : sequences) {
    work += static_cast<double>(s.rows) * static_cast<double>(s.keys) *
            static_cast<double>(call.head_q) * static_cast<double>(3 * call.dim + 2 * call.dim_v);
  }
  const Job<Real> job{call, dout, dlse, out, lse, result, dbias, dsink};
  const std::int64_t pairs = static_cast<std::int64_t>(sequences.size()) * call.head_k;
  parallel(pairs, shares_dbias(call) ? 0 : work, [&](std::int64_t pair) {
    PairBackward<Real>(job, sequences[static_cast<std::size_t>(pair / call.head_k)],
                       pair % call.head_k)
        .run();
  });
  store_bias(call, dbias, result);
  store_sink(call, dsink, result);
  return result;
}

}  // namespace

Backward backward(const Args& args, const Options& options, const ConstTensor& dout,
                  const ConstTensor& dlse, const ConstTensor& out, const ConstTensor& lse) {
  return compute<double>(args, options, dout, dlse, out, lse);
}

Backward backward_low(const Args& args, const Options& options, const ConstTensor& dout,
                      const ConstTensor& dlse, const ConstTensor& out, const ConstTensor& lse) {
  return compute<float>(args, options, dout, dlse, out, lse);
}

}  // namespace tessera::reference
