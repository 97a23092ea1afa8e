#include <exception>
#include <optional>
#include <string>

#include <tessera/error.hpp>

#include "backends/kokkos/generic/forward_kernel.hpp"
#include "backends/kokkos/generic/generic.hpp"
#include "backends/kokkos/generic/teams.hpp"
#include "backends/kokkos/parallel.hpp"

namespace tessera::kokkos::generic {
namespace {

using kernel::ForwardArguments;
using kernel::WorkOrder;

template <class Element>
void run(Label name, const Space& space, const ForwardArguments& a, const WorkOrder& order) {
  run_teams(space, name, most_tasks(order, a.total_q, kRows),
            Scratch::of(a.dim, a.dim_v).bytes() + kAlign, kThreads, [&](Index first, int level) {
              return ForwardKernel<Element, kWidth>(a, order, first, level);
            });
}

void run(DType type, Label name, const Space& space, const ForwardArguments& a,
         const Index* prefix) {
  const WorkOrder order = kernel::work_order(a, kRows, prefix);
  switch (type) {
    case DType::fp16:
      return run<Fp16>(name, space, a, order);
    case DType::bf16:
      return run<Bf16>(name, space, a, order);
    default:
      return run<Fp32>(name, space, a, order);
  }
}

void run_on(DType type, Label name, const Space& space, const ForwardArguments& a,
            Index* workspace) {
  std::optional<DeviceMemory> own;
  Index* prefix = nullptr;
  if (a.packed()) {
    const std::size_t bytes = static_cast<std::size_t>(a.batch + 1) * sizeof(Index);
    if (workspace == nullptr && !kHostSpace) own.emplace(space, bytes);
    prefix =
        workspace != nullptr ? workspace : static_cast<Index*>(own ? own->data() : arena(bytes));
    build_prefix(space, {a, prefix, nullptr});
  }
  run(type, name, space, a, prefix);
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
    run_on(problem.query.dtype, label(kernel), instance(stream), arguments,
           static_cast<Index*>(workspace));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DeviceError(std::string(kernel) + ": " + error.what());
  }
}

}  // namespace tessera::kokkos::generic
