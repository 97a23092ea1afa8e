#include <tessera/attention.hpp>
#include <tessera/plan.hpp>

#include "core/src/device.hpp"
#include "core/src/environment.hpp"
#include "core/src/event.hpp"
#include "core/src/plan_impl.hpp"
#include "core/src/text.hpp"
#include "core/src/validate.hpp"

namespace tessera {
namespace {

using detail::concat;

// TESSERA_SYNC_LAUNCHES: a fault shows here, with the name of what was launched.
void synchronize_after(const Plan::Impl& impl, const Stream& stream) {
  try {
    backend::synchronize(stream);
  } catch (const DeviceError& error) {
    throw DeviceError(concat("after ", impl.chosen.kernel, " for ", detail::summary(impl.problem),
                             ": ", error.what()));
  }
}

void check_and_launch(const Plan::Impl& impl, const Args& args, const Stream& stream) {
  const Problem& problem = impl.problem;
  detail::validate_pointers_and_values(args, problem.operation);
  detail::validate_same(problem, describe(args, problem.options, problem.operation), args);
  detail::validate_workspace(args.workspace, impl.chosen.workspace);
  detail::validate_disjoint(args, problem.operation);
  detail::check_device("stream.device", stream.device());
  const bool checks_values = detail::check_values(), waits = detail::sync_launches();
  if (backend::host_reads_device_memory() || checks_values) {
    detail::validate_indices(args, problem, stream);
  }
  if (impl.nothing) return;
  if (problem.operation == Operation::backward) {
    backend::launch(impl.chosen, problem, detail::lower_backward(problem, args),
                    args.workspace.data, stream);
  } else {
    backend::launch(impl.chosen, problem, detail::lower_forward(problem, args), args.workspace.data,
                    stream);
  }
  if (waits && !backend::capturing(stream)) synchronize_after(impl, stream);
}

}  // namespace

void execute(const Plan& plan, const Args& args, Stream stream) {
  const Plan::Impl& impl = PlanAccess::impl(plan);
  detail::Observation observation(Event::Kind::Launch, impl.problem);
  try {
    check_and_launch(impl, args, stream);
    observation.succeeded(impl.chosen.kernel);
  } catch (const std::exception& error) {
    observation.failed(impl.chosen.kernel, error.what());
    throw;
  }
}

namespace {

void plan_and_execute(Operation operation, const Args& args, const Options& options,
                      const Stream& stream) {
  // Before planning, so that an absent query is called that, and not a wrong extent.
  detail::validate_pointers_and_values(args, operation);
  execute(plan(describe(args, options, operation)), args, stream);
}

}  // namespace

void forward(const Args& args, const Options& options, Stream stream) {
  plan_and_execute(Operation::forward, args, options, stream);
}

void decode(const Args& args, const Options& options, Stream stream) {
  plan_and_execute(Operation::decode, args, options, stream);
}

void backward(const Args& args, const Options& options, Stream stream) {
  plan_and_execute(Operation::backward, args, options, stream);
}

}  // namespace tessera
