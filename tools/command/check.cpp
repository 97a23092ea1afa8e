#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "reference/number.hpp"
#include "reference/reference.hpp"
#include "tools/command/call.hpp"
#include "tools/command/failure.hpp"
#include "tools/command/progress.hpp"
#include "tools/command/subcommands.hpp"

namespace tessera::tools {
namespace {

using reference::Forward;
using reference::Verdict;

/// Copies what was computed for a slice to its place in the whole.
void place(const Forward& part, std::int64_t batch, std::int64_t head, Forward& whole) {
  const auto copy_rows = [&](const std::vector<double>& from, std::vector<double>& to,
                             std::int64_t width) {
    if (from.empty()) return;
    const auto size = static_cast<std::size_t>(part.head * part.seq * width);
    for (std::int64_t b = 0; b < part.batch; ++b) {
      const auto source = static_cast<std::size_t>(b) * size;
      const auto target =
          static_cast<std::size_t>(((batch + b) * whole.head + head) * whole.seq * width);
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source), size,
                  to.begin() + static_cast<std::ptrdiff_t>(target));
    }
  };
  copy_rows(part.out, whole.out, part.dim);
  copy_rows(part.lse, whole.lse, 1);
  copy_rows(part.magnitude, whole.magnitude, 1);
  copy_rows(part.score_magnitude, whole.score_magnitude, 1);
}

/// The reference and the low computation of the whole call, in parts so that progress can be told.
std::pair<Forward, Forward> references(const Args& args, const Options& options) {
  constexpr double kWorkOfAPart = 1e9;
  const auto parts = static_cast<std::int64_t>(std::min(work_of(args) / kWorkOfAPart, 200.0));
  const std::vector<Slice> slices =
      slices_of(args, options, Progress::visible() ? std::max<std::int64_t>(parts, 1) : 1);
  Progress progress("float64 reference");
  if (slices.size() == 1)
    return {reference::forward(args, options), reference::forward_low(args, options)};
  const Extents& q = args.query.extent;
  Forward ref{.batch = q.batch, .head = q.head, .seq = q.seq, .dim = args.value.extent.dim};
  const auto rows = static_cast<std::size_t>(ref.batch * ref.head * ref.seq);
  ref.out.resize(rows * static_cast<std::size_t>(ref.dim));
  ref.lse.resize(rows);
  Forward low = ref;
  ref.magnitude.resize(rows);
  ref.score_magnitude.resize(rows);
  const std::int64_t group = q.head / args.key.extent.head;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    const Args part = restrict_to(args, slice);
    place(reference::forward(part, options), slice.batch, slice.head_k * group, ref);
    place(reference::forward_low(part, options), slice.batch, slice.head_k * group, low);
    progress.set(static_cast<double>(i + 1) / static_cast<double>(slices.size()));
  }
  return {std::move(ref), std::move(low)};
}

/// A stored answer, F64 as F32. Its shape must be the answer's.
io::Array stored_answer(const Inputs& inputs, const std::string& name,
                        const std::vector<std::int64_t>& shape) {
  const io::Array& array = inputs.stored.at(name);
  if (array.shape != shape) {
    throw BadInput(fmt::format("{}: {} has shape {}; must have {}, as the answer has", inputs.name,
                               name, io::to_string(array.shape), io::to_string(shape)));
  }
  if (array.element == io::Element::f32 || array.element == io::Element::f16 ||
      array.element == io::Element::bf16) {
    return array;
  }
  if (array.element != io::Element::f64) {
    throw BadInput(fmt::format("{}: {} is {}; must be F64, F32, F16 or BF16", inputs.name, name,
                               io::name_of(array.element)));
  }
  io::Array narrow{io::Element::f32, array.shape, std::vector<std::byte>(array.bytes.size() / 2)};
  for (std::size_t i = 0; i < narrow.bytes.size() / sizeof(float); ++i) {
    double value = 0;
    std::memcpy(&value, array.bytes.data() + i * sizeof value, sizeof value);
    const auto rounded = static_cast<float>(value);
    std::memcpy(narrow.bytes.data() + i * sizeof rounded, &rounded, sizeof rounded);
  }
  return narrow;
}

/// Largest |a − b| in the rows that are computed; equal infinities differ by 0, and NaN differs
/// from numbers by infinity.
double difference(const Inputs& inputs, const ConstTensor& a, const ConstTensor& b) {
  const std::vector<double> x = reference::to_doubles(a);
  const std::vector<double> y = reference::to_doubles(b);
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / a.extent.dim % a.extent.seq;
    if (row >= inputs.rows()) continue;
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    const double d = std::abs(x[i] - y[i]);
    largest = std::max(largest, std::isnan(d) ? std::numeric_limits<double>::infinity() : d);
  }
  return largest;
}

/// What there is to compare in the rows that are computed.
struct Numbers {
  std::int64_t all = 0;
  std::int64_t finite = 0;         ///< in both, so that there is an error
  std::int64_t reference_nan = 0;  ///< with which nothing can agree or disagree

  /// `ref` is dense, [batch, head, seq, dim] of `ours`.
  Numbers(const Inputs& inputs, const ConstTensor& ours, const std::vector<double>& ref) {
    const Extents& e = ours.extent;
    if (reference::is_empty(e)) return;
    for (std::int64_t b = 0; b < e.batch; ++b) {
      for (std::int64_t h = 0; h < e.head; ++h) {
        for (std::int64_t r = 0; r < inputs.rows(); ++r) {
          for (std::int64_t d = 0; d < e.dim; ++d) {
            const std::int64_t at = ((b * e.head + h) * e.seq + r) * e.dim + d;
            const double y = ref[static_cast<std::size_t>(at)];
            const double x = reference::load(ours.dtype, ours.data,
                                             reference::index_of(ours.stride, b, h, r, d));
            ++all;
            finite += std::isfinite(x) && std::isfinite(y) ? 1 : 0;
            reference_nan += std::isnan(y) ? 1 : 0;
          }
        }
      }
    }
  }

  bool nothing_to_compare() const { return all > 0 && reference_nan == all; }

  /// `errors`, with how many numbers they are of where that is not all.
  std::string line(const std::string& errors) const {
    if (finite == all) return errors;
    if (finite == 0) return fmt::format("none of {} is finite in both", counted(all, "number"));
    return fmt::format("{}, of {} of {} numbers: the others are not finite", errors, finite, all);
  }
};

/// Why the file's answers are not for what was asked; empty if they are.
std::string why_not_comparable(const Inputs& inputs) {
  if (inputs.mask == MaskKind::Window)
    return "they are for no mask or a causal one, not for a window";
  if (inputs.mask == MaskKind::Causal && !inputs.square) {
    return "they do not say which alignment they are for";
  }
  if (inputs.converted) return "q, k and v were converted";
  if (inputs.args.scale || inputs.args.softcap > 0 || inputs.options.dropout > 0) {
    return "they are for the default scale, without softcap and dropout";
  }
  return {};
}

void report_stored(const Inputs& inputs, const Args& args, const Forward& ref, const Forward& low,
                   const Numbers& numbers, Report& report) {
  if (inputs.stored.empty()) return;
  const std::string kind = inputs.mask == MaskKind::Causal ? "causal" : "full";
  const std::string out_name = "out_" + kind;
  const std::string lse_name = "lse_" + kind;
  const bool has_out = inputs.stored.contains(out_name);
  const bool has_lse = inputs.stored.contains(lse_name);
  std::string reason = why_not_comparable(inputs);
  if (reason.empty() && !has_out && !has_lse)
    reason = fmt::format("there is no {} among them", out_name);
  if (reason.empty() && numbers.nothing_to_compare())
    reason = "the reference, which judges them, is NaN throughout";
  Json& json = report.json["stored"];
  json["compared"] = reason.empty();
  if (!reason.empty()) {
    json["reason"] = reason;
    report.text += fmt::format("the file's own answers were not compared: {}\n", reason);
    return;
  }
  report.text += fmt::format("against the file's own {}{}{}\n", has_out ? out_name : "",
                             has_out && has_lse ? " and " : "", has_lse ? lse_name : "");
  // Ours has been judged already. The stored answer is judged by the same rule, so that a wrong one
  // does not go unseen.
  Args stored = args;
  io::Array out;
  io::Array lse;
  if (has_out) {
    out = stored_answer(inputs, out_name, inputs.out_shape());
    stored.out.dtype = dtype_of(out.element).value();
    stored.out.data = out.bytes.data();
    const double error = difference(inputs, args.out, stored.out);
    json["out"] = {{"name", out_name}, {"max_abs_error", error}};
    report.line("  out", fmt::format("max abs error {:.2e}", error));
  }
  if (has_lse) {
    lse = stored_answer(inputs, lse_name, inputs.lse_shape());
    stored.lse.dtype = dtype_of(lse.element).value();
    stored.lse.data = lse.bytes.data();
    const double error = difference(inputs, args.lse, stored.lse);
    json["lse"] = {{"name", lse_name}, {"max_abs_error", error}};
    report.line("  lse", fmt::format("max abs error {:.2e}", error));
  }
  const Verdict verdict = reference::judge(stored, inputs.options, ref, low);
  json["pass"] = verdict.pass;
  if (!verdict.pass) {
    report.status = Status::CheckFailed;
    json["failure"] = "the stored answer is wrong: " + verdict.text;
    report.line("  failed", "the stored answer is wrong: " + verdict.text);
  }
}

/// Bytes of what is computed to compare with: two answers of doubles, the reference's magnitudes,
/// and, where the file has answers, a pair of doubles for every number that is compared with them.
double bytes_to_compare(const Inputs& inputs) {
  const auto product = [](const std::vector<std::int64_t>& shape) {
    double count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<double>(extent);
    return count;
  };
  const double numbers = product(inputs.out_shape());
  const double rows = product(inputs.lse_shape());
  const double doubles =
      2 * numbers + 4 * rows + (inputs.stored.empty() ? 0 : 2 * std::max(numbers, rows));
  return doubles * sizeof(double);
}

/// Why the answer cannot have passed although nothing about it is wrong: it was compared with
/// nothing. Empty if it was compared.
std::string why_not_checked(const Numbers& out, const Numbers& lse) {
  if (!out.nothing_to_compare() && !lse.nothing_to_compare()) return {};
  return fmt::format(
      "nothing to compare with: all of {} is NaN in the reference; are there NaN or infinities in "
      "the input?",
      !lse.nothing_to_compare()   ? "out"
      : !out.nothing_to_compare() ? "lse"
                                  : "out and lse");
}

/// Why float32, in which attention is computed, has no number where the reference has one; empty if
/// scores are not why.
std::string why_not_finite(const Inputs& inputs, const Forward& ref) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  double scores = 0;  // at most so large, and so are their sums
  for (const double score : ref.score_magnitude) {
    if (std::isfinite(score)) scores = std::max(scores, score);
  }
  if (scores * std::numbers::log2e <= kLargest) return {};  // kernels compute in base 2
  return fmt::format(
      "scores leave float32, in which they are computed: scale*q*k may reach {:.1e}, and float32 "
      "ends at {:.1e}; {}",
      scores, kLargest, inputs.args.scale ? "use a smaller --scale" : "q and k are too large");
}

}  // namespace

Report check(const AttentionFlags& flags) {
  const Inputs inputs = read_inputs(flags);
  DeviceCall call(inputs, bytes_to_compare(inputs));
  call.run();
  io::Array out = call.out();
  io::Array lse = call.lse();
  out.bytes.reserve(1);  // an empty output is present too
  lse.bytes.reserve(1);
  Args args = inputs.args;
  args.out = inputs.out(out.bytes.data());
  args.lse = inputs.lse(lse.bytes.data());
  const auto [ref, low] = references(args, inputs.options);
  const Verdict verdict = reference::judge(args, inputs.options, ref, low);

  Report report;
  report.json["command"] = "check";
  describe_call(inputs, std::string(call.plan().kernel()), report);
  const Numbers out_numbers(inputs, args.out, ref.out);
  const Numbers lse_numbers(inputs, args.lse, ref.lse);
  report.json["out"] = {{"max_abs_error", verdict.max_abs},
                        {"mean_relative_error", verdict.mean_relative},
                        {"numbers", out_numbers.all},
                        {"finite", out_numbers.finite}};
  report.json["lse"] = {{"max_abs_error", verdict.max_abs_lse},
                        {"numbers", lse_numbers.all},
                        {"finite", lse_numbers.finite}};
  report.json["worst_ratio"] = verdict.worst_ratio;
  report.json["reference_nan"] = verdict.reference_nan;
  report.text += "against the float64 reference\n";
  report.line("  out",
              out_numbers.line(fmt::format("max abs error {:.2e}, mean relative error {:.2e}",
                                           verdict.max_abs, verdict.mean_relative)));
  report.line("  lse", lse_numbers.line(fmt::format("max abs error {:.2e}", verdict.max_abs_lse)));
  if (std::isfinite(verdict.worst_ratio)) {
    report.line("  worst", fmt::format("{:.2f} of the error that the rule allows (1 is the limit)",
                                       verdict.worst_ratio));
  }
  if (verdict.reference_nan > 0) {
    report.line("  note", fmt::format("{} NaN in the reference",
                                      counted(verdict.reference_nan, "number") +
                                          (verdict.reference_nan == 1 ? " is" : " are")));
  }
  if (out_numbers.all == 0) report.line("  note", "out has no elements to compare");
  std::string failure = verdict.pass ? why_not_checked(out_numbers, lse_numbers) : verdict.text;
  if (std::isinf(verdict.worst_ratio)) {
    if (const std::string why = why_not_finite(inputs, ref); !why.empty()) failure = why;
  }
  if (!failure.empty()) {
    report.status = Status::CheckFailed;
    report.json["failure"] = failure;
    report.line("  failed", failure);
  }
  report_stored(inputs, args, ref, low, out_numbers, report);
  const bool pass = report.status == Status::Fine;
  report.json["pass"] = pass;
  report.text += pass ? "PASS\n" : "FAIL\n";
  return report;
}

}  // namespace tessera::tools
