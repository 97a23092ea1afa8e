// Backward: lays out its workspace and launches its kernels, one after the other.

#include <cstddef>
#include <exception>
#include <optional>
#include <string>

#include <tessera/error.hpp>

#include "backends/kokkos/generic/backward_kernel.hpp"
#include "backends/kokkos/generic/generic.hpp"
#include "backends/kokkos/generic/teams.hpp"
#include "backends/kokkos/generic/workspace.hpp"
#include "backends/kokkos/parallel.hpp"

namespace tessera::kokkos::generic {
namespace {

using kernel::BackwardArguments;
using kernel::ForwardArguments;

// out and lse, where the caller did not keep them.
void recompute(const Problem& problem, ForwardArguments& a, const Workspace& at, std::byte* memory,
               const Stream& stream) {
  a.out = {memory + at.out, a.head_q * a.total_q * a.dim_v, a.total_q * a.dim_v, a.dim_v};
  const kernel::Operand<float> given = a.lse;
  a.lse = {};
  if (given.data == nullptr) {
    a.lse = {reinterpret_cast<float*>(memory + at.lse_given), a.head_q * a.total_q, a.total_q, 1};
  }
  launch_forward(kBackward, problem, a, memory + at.row_prefix, stream);
  if (given.data != nullptr) a.lse = given;
}

// Kernels of gradients, which all have scratch memory of the same shape.
template <class Kernel, class Make>
void run_gradient(Label name, const Space& space, const ForwardArguments& a, Index tasks,
                  const Make& make) {
  const GradientScratch scratch = GradientScratch::of(a.dim, a.dim_v, Kernel::sums(a.dim, a.dim_v));
  run_teams(space, name, tasks, scratch.bytes() + kAlign, kThreads, make);
}

template <class Element>
void run(const Space& space, const Gradients& g, const Index* row_prefix, const Index* key_prefix) {
  using Query = QueryGradient<Element, kWidth>;
  using Key = KeyGradient<Element, kWidth>;
  using Bias = BiasGradient<Element, kWidth>;
  const ForwardArguments& a = g.arguments.forward;
  using Rows = RowStatistics<Element>;
  run_teams(space, "tessera rows", Rows::tasks(a), Rows::bytes(a.dim_v) + kAlign, kThreads,
            [&](Index first, int level) { return Rows(g, first, level); });
  const kernel::WorkOrder rows = kernel::work_order(a, kRows, row_prefix);
  run_gradient<Query>("tessera dq", space, a, most_tasks(rows, a.total_q, kRows),
                      [&](Index first, int level) { return Query(g, rows, first, level); });
  const kernel::WorkOrder keys = kernel::key_work_order(a, kKeys, key_prefix);
  run_gradient<Key>("tessera dk, dv", space, a, most_tasks(keys, a.total_k, kKeys),
                    [&](Index first, int level) { return Key(g, keys, first, level); });
  if (g.arguments.dbias.data == nullptr) return;
  run_gradient<Bias>("tessera dbias", space, a, Bias::tasks(g.arguments),
                     [&](Index first, int level) { return Bias(g, first, level); });
}

void run(DType type, const Space& space, const Gradients& g, const Index* row_prefix,
         const Index* key_prefix) {
  switch (type) {
    case DType::fp16:
      return run<Fp16>(space, g, row_prefix, key_prefix);
    case DType::bf16:
      return run<Bf16>(space, g, row_prefix, key_prefix);
    default:
      return run<Fp32>(space, g, row_prefix, key_prefix);
  }
}

void run_on(const Problem& problem, const Space& space, BackwardArguments b, void* workspace,
            const Stream& stream) {
  const Workspace at = Workspace::of(problem);
  std::optional<DeviceMemory> own;
  if (workspace == nullptr && !kHostSpace) own.emplace(space, at.size);
  if (workspace == nullptr) workspace = own ? own->data() : arena(at.size);
  auto* const memory = static_cast<std::byte*>(workspace);
  ForwardArguments& a = b.forward;
  if (a.out.data == nullptr) recompute(problem, a, at, memory, stream);
  auto* const row_prefix = reinterpret_cast<Index*>(memory + at.row_prefix);
  auto* const key_prefix = reinterpret_cast<Index*>(memory + at.key_prefix);
  if (a.packed()) build_prefix(space, {a, row_prefix, key_prefix});
  const Gradients g{
      b, {reinterpret_cast<float*>(memory + at.lse), reinterpret_cast<float*>(memory + at.delta)}};
  run(problem.query.dtype, space, g, row_prefix, key_prefix);
  if (b.dsink != nullptr) {
    run_teams(space, "tessera dsink", a.head_q, 0, 1,
              [&](Index first, int) { return SinkGradient(g, first); });
  }
  if (kHostSpace || own) space.fence(Label("tessera tasks"));  // an error can be told here
}

}  // namespace

void launch_backward(const Problem& problem, const BackwardArguments& arguments, void* workspace,
                     const Stream& stream) {
  try {
    run_on(problem, instance(stream), arguments, workspace, stream);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DeviceError(std::string(kBackward) + ": " + error.what());
  }
}

}  // namespace tessera::kokkos::generic
