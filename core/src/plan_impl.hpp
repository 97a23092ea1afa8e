#pragma once
// What a Plan holds.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/plan.hpp>

#include "core/src/backend.hpp"

namespace tessera {

struct Plan::Impl {
  Problem problem{};
  backend::Candidate chosen{};
  std::vector<backend::Candidate>
      passed_over{};     // before `chosen` in the backend's order, each with its reason
  std::string forced{};  // value of TESSERA_KERNEL, if it was set
  bool nothing = false;  // nothing to write: nothing is launched
};

// The only way into a Plan from outside its class.
struct PlanAccess {
  static Plan make(std::shared_ptr<const Plan::Impl> impl) { return Plan(std::move(impl)); }
  static const Plan::Impl& impl(const Plan& plan) { return *plan.impl_; }
};

namespace detail {

// round-half-even(p · 2^16): a weight is dropped if its 16-bit random number is below it.
std::uint32_t dropout_threshold(double probability) noexcept;

// "2 × 8 × 512 × 64 …": what a plan is for, in a line, without what is off.
std::string summary(const Problem& problem);

// The kernel's view of arguments that pose `problem`.
kernel::ForwardArguments lower_forward(const Problem& problem, const Args& args);
kernel::BackwardArguments lower_backward(const Problem& problem, const Args& args);

}  // namespace detail
}  // namespace tessera
