#pragma once
/// A call on the device: inputs copied there, planned, executed, outputs copied back.

#include <cstddef>
#include <map>
#include <vector>

#include <tessera/buffer.hpp>
#include <tessera/plan.hpp>

#include "tools/command/inputs.hpp"
#include "tools/command/slices.hpp"

namespace tessera::tools {

class Progress;

class DeviceCall {
 public:
  /// Plans, allocates, copies. Throws BadInput where the library says InvalidArgument, and
  /// Unsupported, both with the file's name in front.
  /// Unsupported too if there is no memory for that and the `more_bytes` that the caller will need.
  explicit DeviceCall(const Inputs& inputs, double more_bytes = 0);

  const Plan& plan() const noexcept { return plan_; }
  const Args& args() const noexcept { return args_; }

  /// Computes out and lse, with progress if anybody would see it. Returns the seconds that the
  /// computation took.
  double run();

  /// Copies out and lse back, as dense arrays of the files' layout.
  io::Array out() const;
  io::Array lse() const;

 private:
  void upload(const Inputs& inputs, double more_bytes);
  void compute(std::int64_t parts, Progress& progress);

  const Inputs& inputs_;
  std::vector<Buffer> buffers_;
  Args args_;
  Plan plan_;
};

/// Computes the call slice by slice. The bits are those of the whole call: slices that would be
/// planned otherwise (another kernel, keys split into more parts) are not used, and the call is
/// computed whole. `done` is told the share of slices that are finished.
template <class Done>
void execute_in_slices(const Plan& whole, const Args& args, const std::vector<Slice>& slices,
                       const Done& done) {
  std::vector<std::pair<Plan, Args>> calls;
  for (const Slice& slice : slices) {
    const Args part = restrict_to(args, slice);
    Plan plan = tessera::plan(describe(part, whole.problem().options));
    if (plan.kernel() != whole.kernel() || plan.splits() != whole.splits()) {
      execute(whole, args);
      return;
    }
    calls.emplace_back(std::move(plan), part);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    execute(calls[i].first, calls[i].second);
    done(static_cast<double>(i + 1) / static_cast<double>(calls.size()));
  }
}

}  // namespace tessera::tools
