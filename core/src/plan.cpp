#include <tessera/plan.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <new>

#include "core/src/environment.hpp"
#include "core/src/event.hpp"
#include "core/src/operands.hpp"
#include "core/src/plan_impl.hpp"
#include "core/src/text.hpp"
#include "core/src/validate.hpp"

namespace tessera {
namespace {

using backend::Candidate;
using detail::concat;

[[noreturn]] void decline_unknown_kernel(std::string_view wanted, Operation operation,
                                         const std::vector<Candidate>& candidates) {
  constexpr std::array<std::string_view, 3> kNames{"forward", "backward", "decode"};
  std::string names;
  for (const Candidate& candidate : candidates)
    names += concat(names.empty() ? "" : ", ", candidate.kernel);
  detail::decline(concat("TESSERA_KERNEL is ", wanted, ", which names no kernel of ",
                         kNames[static_cast<std::size_t>(operation)], ": this build has ", names,
                         "; parts of a name between dots select too"));
}

[[noreturn]] void decline_all(const std::vector<Candidate>& rejected, std::string_view forced) {
  std::string reasons;
  for (const Candidate& candidate : rejected) {
    reasons += concat(reasons.empty() ? "" : "; ", candidate.kernel, ": ", candidate.rejected);
  }
  if (!forced.empty()) reasons += concat(" (TESSERA_KERNEL=", forced, " leaves no other)");
  detail::decline(reasons.empty() ? "this build has no kernel for it" : reasons);
}

Plan make_plan(const Problem& problem) {
  detail::validate(problem);
  auto impl = std::make_shared<Plan::Impl>();
  impl->problem = problem;
  if (detail::has_no_output(problem)) {
    impl->nothing = true;
    constexpr std::array<std::string_view, 3> kNothing{"forward.empty", "backward.empty",
                                                       "decode.empty"};
    impl->chosen.kernel = kNothing[static_cast<std::size_t>(problem.operation)];
    return PlanAccess::make(std::move(impl));
  }
  std::vector<Candidate> candidates = backend::candidates(problem);
  impl->forced = detail::forced_kernel();
  if (!impl->forced.empty()) {
    const auto other = [&](const Candidate& candidate) {
      return !detail::is_called(candidate.kernel, impl->forced);
    };
    if (std::all_of(candidates.begin(), candidates.end(), other))
      decline_unknown_kernel(impl->forced, problem.operation, candidates);
    std::erase_if(candidates, other);
  }
  const auto chosen =
      std::find_if(candidates.begin(), candidates.end(),
                   [](const Candidate& candidate) { return candidate.rejected.empty(); });
  if (chosen == candidates.end()) decline_all(candidates, impl->forced);
  impl->chosen = std::move(*chosen);
  candidates.erase(chosen, candidates.end());
  impl->passed_over = std::move(candidates);
  return PlanAccess::make(std::move(impl));
}

Support refusal(Support::Status status, const std::exception& error) {
  try {
    return {status, error.what()};
  } catch (const std::bad_alloc&) {
    return {status, "out of memory"};  // short enough for a string to take none
  }
}

}  // namespace

Plan::Plan(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}

const Problem& Plan::problem() const noexcept { return impl_->problem; }
std::string_view Plan::kernel() const noexcept { return impl_->chosen.kernel; }
std::size_t Plan::workspace_size() const noexcept { return impl_->chosen.workspace; }
std::int64_t Plan::splits() const noexcept { return impl_->chosen.splits; }
double Plan::realised_dropout() const noexcept {
  return detail::dropout_threshold(impl_->problem.options.dropout) / 65536.0;
}

std::string Plan::describe() const {
  const Candidate& c = impl_->chosen;
  std::string text =
      concat("problem    ", detail::summary(impl_->problem), "\nkernel     ", c.kernel, "\n");
  if (impl_->nothing) return text + "why        there is nothing to write: nothing is launched\n";
  const Problem& p = impl_->problem;
  text += concat("tile       ", c.tile_q, " queries x ", c.tile_k, " keys; head dimension ",
                 p.query.extent.dim, " in ", c.head_dim, ", of value ", p.value.extent.dim, " in ",
                 c.head_dim_v, "\n");
  text += concat("splits     ", c.splits, "\nworkspace  ", c.workspace, " bytes\n");
  if (p.options.dropout > 0) {
    text +=
        concat("dropout    ", realised_dropout(), " realised, ", p.options.dropout, " asked for\n");
  }
  if (!c.why.empty()) text += concat("why        ", c.why, "\n");
  if (!impl_->forced.empty()) text += concat("why        TESSERA_KERNEL=", impl_->forced, "\n");
  for (const Candidate& other : impl_->passed_over)
    text += concat("not        ", other.kernel, ": ", other.rejected, "\n");
  return text;
}

Support supports(const Problem& problem) {
  try {
    make_plan(problem);
    return {};
  } catch (const InvalidArgument& error) {
    return refusal(Support::Status::InvalidArgument, error);
  } catch (const std::exception& error) {
    return refusal(Support::Status::Unsupported, error);
  }
}

Plan plan(const Problem& problem) {
  detail::Observation observation(Event::Kind::Plan, problem);
  try {
    Plan made = make_plan(problem);
    observation.succeeded(made.kernel());
    return made;
  } catch (const std::exception& error) {
    observation.failed({}, error.what());
    throw;
  }
}

namespace detail {

std::uint32_t dropout_threshold(double probability) noexcept {
  const double scaled = probability * 65536;  // exact
  const double below = std::floor(scaled);
  const auto whole = static_cast<std::uint32_t>(below);
  const double rest = scaled - below;
  const bool up = rest > 0.5 || (rest == 0.5 && whole % 2 == 1);
  return whole + (up ? 1 : 0);
}

std::string summary(const Problem& p) {
  const auto name_of = [](Operation operation) {
    return operation == Operation::forward    ? "forward"
           : operation == Operation::backward ? "backward"
                                              : "decode";
  };
  const auto edge = [](std::optional<std::int64_t> e) {
    return e ? concat(*e) : std::string("unbounded");
  };
  const auto alignment = [](const Mask& mask) {
    return mask.alignment() == Alignment::TopLeft ? "top-left" : "bottom-right";
  };
  std::string text = concat(name_of(p.operation), " ", p.query.dtype, ", query ", p.query.extent,
                            ", key ", p.key.extent, ", dim_v ", p.value.extent.dim);
  const Mask& mask = p.options.mask;
  if (mask.bounded()) {
    text += !mask.left() && mask.right() == 0
                ? concat(", causal ", alignment(mask))
                : concat(", window ", edge(mask.left()), " left ", edge(mask.right()), " right ",
                         alignment(mask));
  }
  if (p.packed) {
    const Sizes sizes = sizes_of(p);
    text +=
        concat(", packed ", p.packed->segments, p.packed->segments == 1 ? " segment" : " segments",
               " of at most ", sizes.seq_q, " x ", sizes.seq_k);
  }
  const auto add = [&text](bool given, std::string_view name) {
    if (given) text += concat(", ", name);
  };
  for (const RangeVector& range : kRangeVectors) add(p.*range.given, range.name);
  for (const OptionalInput& input : kOptionalInputs) add((p.*input.spec).has_value(), input.name);
  add(p.softcap, "softcap");
  add(p.options.dropout > 0, "dropout");
  if (p.operation == Operation::backward) {
    add(!p.out.has_value(), p.lse ? "out recomputed" : "out and lse recomputed");
    add(p.dlse.has_value(), "dlse");
    add(p.dbias.has_value(), "dbias");
    add(p.dsink.has_value(), "dsink");
  } else {
    add(p.lse.has_value(), "lse");
  }
  return text;
}

}  // namespace detail
}  // namespace tessera
