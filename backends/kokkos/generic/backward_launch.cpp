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
  launch_forward(kBackward, problem, a, memory, stream);
  if (given.data != nullptr) a.lse = given;
}

// Kernels of gradients, which all have scratch memory of the same shape.
template <class Kernel>
void run_gradient(Label name, const Space& space, const ForwardArguments& a, Index tasks,
                  void* teams, const Kernel& kernel) {
  const GradientScratch scratch = GradientScratch::of(a.dim, a.dim_v, Kernel::sums(a.dim, a.dim_v));
  run_teams(space, name, tasks, scratch.bytes(), kThreads, teams, kernel);
}

template <class Element>
void run(const Space& space, const Gradients& g, const Index* row_prefix, const Index* key_prefix,
         void* teams) {
  using Query = QueryGradient<Element, kWidth>;
  using Key = KeyGradient<Element, kWidth>;
  using Bias = BiasGradient<Element, kWidth>;
  const ForwardArguments& a = g.arguments.forward;
  using Rows = RowStatistics<Element>;
  run_teams(space, "tessera rows", Rows::tasks(a), Rows::bytes(a.dim_v), kThreads, teams, Rows(g));
  const kernel::WorkOrder rows = kernel::work_order(a, kRows, row_prefix);
  run_gradient("tessera dq", space, a, most_tasks(rows, a.total_q, kRows), teams, Query(g, rows));
  const kernel::WorkOrder keys = kernel::key_work_order(a, kKeys, key_prefix);
  run_gradient("tessera dk, dv", space, a, most_tasks(keys, a.total_k, kKeys), teams, Key(g, keys));
  if (g.arguments.dbias.data == nullptr) return;
  run_gradient("tessera dbias", space, a, Bias::tasks(g.arguments), teams, Bias(g));
}

void run(DType type, const Space& space, const Gradients& g, const Index* row_prefix,
         const Index* key_prefix, void* teams) {
  switch (type) {
    case DType::fp16:
      return run<Fp16>(space, g, row_prefix, key_prefix, teams);
    case DType::bf16:
      return run<Bf16>(space, g, row_prefix, key_prefix, teams);
    default:
      return run<Fp32>(space, g, row_prefix, key_prefix, teams);
  }
}

void run_on(const Problem& problem, const Space& space, BackwardArguments b, void* workspace,
            const Stream& stream) {
  const Workspace at = Workspace::of(problem);
  std::optional<DeviceMemory> own;
  auto* const memory = memory_of(space, workspace, at.size, own);
  ForwardArguments& a = b.forward;
  if (a.out.data == nullptr) recompute(problem, a, at, memory, stream);
  auto* const row_prefix = reinterpret_cast<Index*>(memory + at.row_prefix);
  auto* const key_prefix = reinterpret_cast<Index*>(memory + at.key_prefix);
  if (a.packed()) build_prefix(space, {a, row_prefix, key_prefix});
  const Gradients g{
      b, {reinterpret_cast<float*>(memory + at.lse), reinterpret_cast<float*>(memory + at.delta)}};
  run(problem.query.dtype, space, g, row_prefix, key_prefix, memory + at.teams);
  if (b.dsink != nullptr) {
    run_teams(space, "tessera dsink", a.head_q, 0, 1, nullptr, SinkGradient(g));
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
