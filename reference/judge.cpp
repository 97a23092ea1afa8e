#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "reference/call.hpp"
#include "reference/number.hpp"
#include "reference/reference.hpp"

namespace tessera::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// From here on a number rounds to infinity.
double overflow_threshold(DType dtype) {
  switch (dtype) {
    case DType::fp16:
      return 65520;
    case DType::bf16:
      return 0x1.ffp127;
    default:
      return 0x1.ffffffp127;
  }
}

double ratio(double error, double allowed) {
  if (error <= 0) return 0;
  return allowed > 0 ? error / allowed : kInfinity;
}

struct Position {
  std::int64_t batch = 0, head = 0, row = 0, column = 0;
};

std::string describe(const std::string& name, const Position& at, double ours, double ref,
                     double low, const std::string& reason) {
  char text[400];
  std::snprintf(
      text, sizeof text,
      "%s[batch %lld, head %lld, row %lld, column %lld] is %.9g, reference %.9g, low %.9g: ",
      name.c_str(), static_cast<long long>(at.batch), static_cast<long long>(at.head),
      static_cast<long long>(at.row), static_cast<long long>(at.column), ours, ref, low);
  return text + reason;
}

std::string too_far(double error, double allowed, const char* bound) {
  char text[160];
  std::snprintf(text, sizeof text, "error %.4g, the bound of the %s is %.4g", error, bound,
                allowed);
  return text;
}

// Largest values of a row or head, and where the error is largest.
struct Extremes {
  double error = 0;
  double low_error = 0;
  double ref = 0;
  double magnitude = 0;
  Position worst;

  void merge(const Extremes& other) {
    if (other.error > error) {
      error = other.error;
      worst = other.worst;
    }
    low_error = std::max(low_error, other.low_error);
    ref = std::max(ref, other.ref);
    magnitude = std::max(magnitude, other.magnitude);
  }
};

class TensorJudge {
 public:
  explicit TensorJudge(const Judged& judged)
      : judged_(judged),
        unit_(unit_roundoff(judged.ours.dtype)),
        limit_(overflow_threshold(judged.ours.dtype)),
        line_(static_cast<std::size_t>(judged.ours.extent.dim)) {}

  Verdict run() {
    const Extents& extent = judged_.ours.extent;
    std::vector<std::int64_t> starts = judged_.starts;
    if (starts.empty()) starts = {0, extent.seq};
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());  // without rows: no head
    const std::int64_t batch = is_empty(extent) ? 0 : extent.batch;
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t h = 0; h < extent.head; ++h) {
        for (std::size_t i = 0; i + 1 < starts.size(); ++i) head(b, h, starts[i], starts[i + 1]);
      }
    }
    verdict_.mean_relative =
        reference_sum_ > 0 ? error_sum_ / reference_sum_ : (error_sum_ > 0 ? kInfinity : 0);
    verdict_.pass = verdict_.worst_ratio <= 1;
    if (verdict_.pass) verdict_.text.clear();
    return verdict_;
  }

 private:
  void head(std::int64_t b, std::int64_t h, std::int64_t begin, std::int64_t end) {
    Extremes whole;
    for (std::int64_t r = begin; r < end; ++r) {
      const Extremes one = row(b, h, r);
      bound(one, 8 * judged_.factor, "row");
      whole.merge(one);
    }
    bound(whole, judged_.factor, "head");
  }

  void bound(const Extremes& found, double factor, const char* name) {
    const double floor = 4 * unit_ * found.ref + 16 * 0x1p-24 * found.magnitude;
    const double allowed = factor * found.low_error + floor;
    const double worse = ratio(found.error, allowed);
    verdict_.max_abs = std::max(verdict_.max_abs, found.error);
    if (worse <= verdict_.worst_ratio) return;
    verdict_.worst_ratio = worse;
    const Position& at = found.worst;
    const std::size_t i = index(at);
    const double ours = load(judged_.ours.dtype, judged_.ours.data,
                             index_of(judged_.ours.stride, at.batch, at.head, at.row, at.column));
    verdict_.text = describe(judged_.name, at, ours, (*judged_.ref)[i], (*judged_.low)[i],
                             too_far(found.error, allowed, name));
  }

  std::size_t index(const Position& at) const {
    const Extents& e = judged_.ours.extent;
    return static_cast<std::size_t>(((at.batch * e.head + at.head) * e.seq + at.row) * e.dim +
                                    at.column);
  }

  Extremes row(std::int64_t b, std::int64_t h, std::int64_t r) {
    const ConstTensor& t = judged_.ours;
    convert(t.dtype, t.data, index_of(t.stride, b, h, r, 0), t.stride.dim, t.extent.dim,
            line_.data());
    const std::size_t first = index({b, h, r, 0});
    const double* ref = judged_.ref->data() + first;
    const double* low = judged_.low->data() + first;
    Extremes found;
    found.worst = {b, h, r, 0};
    const double magnitude =
        t.extent.dim > 0 ? (*judged_.magnitude)[first / static_cast<std::size_t>(t.extent.dim)] : 0;
    if (std::isfinite(magnitude)) found.magnitude = magnitude;
    for (std::int64_t d = 0; d < t.extent.dim; ++d) {
      const double ours = line_[static_cast<std::size_t>(d)];
      if (!std::isfinite(ref[d]) || std::isnan(ours)) {
        verdict_.reference_nan += std::isnan(ref[d]) ? 1 : 0;
        const bool same = std::isnan(ref[d]) ? std::isnan(ours) : ours == ref[d];
        if (!same) different({b, h, r, d}, ours, ref[d], low[d]);
        continue;
      }
      const double expected = std::clamp(ref[d], -limit_, limit_);
      const double error = std::abs(std::clamp(ours, -limit_, limit_) - expected);
      if (error > found.error) {
        found.error = error;
        found.worst.column = d;
      }
      const bool overflows = std::abs(ref[d]) >= limit_;
      if (std::isfinite(low[d]) || (overflows && !std::isnan(low[d]))) {
        found.low_error =
            std::max(found.low_error, std::abs(std::clamp(low[d], -limit_, limit_) - expected));
      }
      found.ref = std::max(found.ref, std::abs(expected));
      error_sum_ += error;
      reference_sum_ += std::abs(expected);
    }
    return found;
  }

  void different(const Position& at, double ours, double ref, double low) {
    if (verdict_.worst_ratio == kInfinity) return;
    verdict_.worst_ratio = kInfinity;
    verdict_.text =
        describe(judged_.name, at, ours, ref, low, "NaN and infinity must be the same in both");
  }

  const Judged& judged_;
  const double unit_;
  const double limit_;
  std::vector<double> line_;
  Verdict verdict_;
  double error_sum_ = 0;
  double reference_sum_ = 0;
};

// The more damning text wins; the rest is the largest of both.
void merge(Verdict& into, const Verdict& other) {
  if (other.worst_ratio > into.worst_ratio || (into.pass && !other.pass)) into.text = other.text;
  into.pass = into.pass && other.pass;
  into.max_abs = std::max(into.max_abs, other.max_abs);
  into.mean_relative = std::max(into.mean_relative, other.mean_relative);
  into.max_abs_lse = std::max(into.max_abs_lse, other.max_abs_lse);
  into.worst_ratio = std::max(into.worst_ratio, other.worst_ratio);
  into.reference_nan += other.reference_nan;
}

Verdict judge_lse(const Tensor& ours, const Forward& ref, const Forward& low,
                  const std::vector<std::int64_t>& starts) {
  Verdict verdict;
  std::string text;
  const std::int64_t batch = is_empty(ours.extent) ? 0 : ours.extent.batch;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < ours.extent.head; ++h) {
      for (std::int64_t r = starts.empty() ? 0 : starts.front();
           r < (starts.empty() ? ours.extent.seq : starts.back()); ++r) {
        const auto i = static_cast<std::size_t>((b * ours.extent.head + h) * ours.extent.seq + r);
        const double x = load(ours.dtype, ours.data, index_of(ours.stride, b, h, r, 0));
        const double y = ref.lse[i];
        double worse = 0;
        std::string reason = "NaN and infinity must be the same in both";
        if (!std::isfinite(y) || !std::isfinite(x)) {
          verdict.reference_nan += std::isnan(y) ? 1 : 0;
          worse = (std::isnan(x) && std::isnan(y)) || x == y ? 0 : kInfinity;
        } else {
          const double error = std::abs(x - y);
          const double low_error = std::isfinite(low.lse[i]) ? std::abs(low.lse[i] - y) : 0;
          const double size = std::isfinite(ref.score_magnitude[i]) ? ref.score_magnitude[i] : 0;
          const double allowed = 2 * low_error + 2e-6 * std::max({1.0, std::abs(y), size});
          verdict.max_abs_lse = std::max(verdict.max_abs_lse, error);
          worse = ratio(error, allowed);
          reason = too_far(error, allowed, "row");
        }
        if (worse > verdict.worst_ratio) {
          verdict.worst_ratio = worse;
          text = describe("lse", {b, h, r, 0}, x, y, low.lse[i], reason);
        }
      }
    }
  }
  verdict.pass = verdict.worst_ratio <= 1;
  if (!verdict.pass) verdict.text = text;
  return verdict;
}

// Where packed segments begin, and where the last one ends; empty if the tensors are not packed.
std::vector<std::int64_t> segment_starts(const Args& args, const Options& options, bool keys) {
  if (args.cu_seqlens_q.data == nullptr) return {};
  std::vector<std::int64_t> starts;
  std::int64_t end = 0;
  for (const Sequence& s : Call(args, options).sequences) {
    starts.push_back(keys ? s.first_key : s.first_row);
    end = keys ? s.first_key + s.keys : s.first_row + s.rows;
  }
  starts.push_back(end);
  return starts;
}

}  // namespace

Verdict judge_tensor(const Judged& judged) { return TensorJudge(judged).run(); }

Verdict judge(const Args& args, const Options& options, const Forward& ref, const Forward& low) {
  const std::vector<std::int64_t> starts = segment_starts(args, options, false);
  Verdict verdict = judge_tensor({.name = "out",
                                  .ours = args.out,
                                  .ref = &ref.out,
                                  .low = &low.out,
                                  .magnitude = &ref.magnitude,
                                  .factor = args.softcap > 0 ? 3.0 : 2.0,
                                  .starts = starts});
  if (args.lse.data != nullptr) merge(verdict, judge_lse(args.lse, ref, low, starts));
  return verdict;
}

Verdict judge_backward(const Args& args, const Options& options, const Gradients& ours,
                       const Backward& ref, const Backward& low) {
  Verdict verdict;
  verdict.pass = true;
  const auto add = [&](const char* name, const ConstTensor& tensor, const auto& member,
                       const auto& magnitude, const std::vector<std::int64_t>& starts) {
    if (tensor.data == nullptr) return;
    merge(verdict, judge_tensor({.name = name,
                                 .ours = tensor,
                                 .ref = &(ref.*member),
                                 .low = &(low.*member),
                                 .magnitude = &(ref.*magnitude),
                                 .factor = 3,
                                 .starts = starts}));
  };
  add("dq", ours.dq, &Backward::dq, &Backward::dq_magnitude, segment_starts(args, options, false));
  add("dk", ours.dk, &Backward::dk, &Backward::dk_magnitude, segment_starts(args, options, true));
  add("dv", ours.dv, &Backward::dv, &Backward::dv_magnitude, segment_starts(args, options, true));
  add("dbias", ours.dbias, &Backward::dbias, &Backward::dbias_magnitude, {});
  add("dsink", ours.dsink, &Backward::dsink, &Backward::dsink_magnitude, {});
  return verdict;
}

}  // namespace tessera::reference
