#include <exception>
#include <optional>
#include <string>

#include <tessera/error.hpp>

#include "backends/kokkos/generic/forward_kernel.hpp"
#include "backends/kokkos/generic/generic.hpp"
#include "backends/kokkos/generic/teams.hpp"
#include "backends/kokkos/generic/workspace.hpp"

namespace tessera::kokkos::generic {
namespace {

using kernel::ForwardArguments;
using kernel::WorkOrder;

template <class Element>
void run(Label name, const Space& space, const ForwardArguments& a, const WorkOrder& order,
         void* teams) {
  run_teams(space, name, most_tasks(order, a.total_q, kRows), Scratch::of(a.dim, a.dim_v).bytes(),
            kThreads, teams, ForwardKernel<Element, kWidth>(a, order));
}

void run(DType type, Label name, const Space& space, const ForwardArguments& a, const Index* prefix,
         void* teams) {
  const WorkOrder order = kernel::work_order(a, kRows, prefix);
  switch (type) {
    case DType::fp16:
      return run<Fp16>(name, space, a, order, teams);
    case DType::bf16:
      return run<Bf16>(name, space, a, order, teams);
    default:
      return run<Fp32>(name, space, a, order, teams);
  }
}

void run_on(const Problem& problem, Label name, const Space& space, const ForwardArguments& a,
            void* workspace) {
  const Workspace at = Workspace::of(problem);
  std::optional<DeviceMemory> own;
  auto* const memory = memory_of(space, workspace, at.size, own);
  Index* prefix = nullptr;
  if (a.packed()) {
    prefix = reinterpret_cast<Index*>(memory + at.row_prefix);
    build_prefix(space, {a, prefix, nullptr});
  }
  run(problem.query.dtype, name, space, a, prefix, memory + at.teams);
  if (kHostSpace || own) space.fence(name);  // here an error can still be told
}

// Backward computes out again.
Label label(std::string_view kernel) {
  if (kernel == kForward) return "tessera forward";
  return kernel == kDecode ? Label("tessera decode") : Label("tessera out");
}

}  // namespace

void launch_forward(std::string_view kernel, const Problem& problem,
                    const ForwardArguments& arguments, void* workspace, const Stream& stream) {
  try {
    run_on(problem, label(kernel), instance(stream), arguments, workspace);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DeviceError(std::string(kernel) + ": " + error.what());
  }
}

}  // namespace tessera::kokkos::generic
