// Forward: chooses instruction set and blocking, and hands tasks to threads.

#include <cmath>
#include <string>

#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/tuning/forward.hpp"
#include "backends/kokkos/vector/units.hpp"
#include "backends/kokkos/vector/vector.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::kokkos::vector {

namespace {

using kernel::larger;
using kernel::smaller;

constexpr Index kMaxThreadBytes = Index{1} << 20;

constexpr Blocking largest_blocking(Index dim, Index dim_v, Index panel, Index key_blocks) {
  Blocking b = widest_blocking(kForwardTuning, dim, dim_v, panel);
  b.keys *= key_blocks;
  return b;
}

// Stretches are fp32's alone.
constexpr bool fits(Index panel, Index key_blocks = 1, bool by_stretches = true) {
  for (const ForwardTuning& row : kForwardTuning) {
    const Blocking b = largest_blocking(row.head_dim, row.head_dim, panel, key_blocks);
    if (kStretchKeys % b.keys != 0) return false;
    const Scratch scratch = layout(b, row.head_dim, row.head_dim, true, by_stretches);
    if (scratch.size * Index{sizeof(float)} > kMaxThreadBytes) return false;
  }
  return true;
}
static_assert(fits(48) && fits(48, 2, false) && fits(24) && fits(12),
              "a thread's scratch memory stays within 1 MiB");

// Tasks: few and large ones pack keys less often, but threads do not end together, for processors
// share caches, execution units and power, and are not equally fast. So threads get kTasksAThread
// each, and the last tasks, one for every other thread, come in pieces, each half of what is left
// of its task: first the largest of all of them, single panels in the end.
constexpr double kTasksAThread = 2.0;

// The first panel of a piece of a task of `panels`.
constexpr Index first_panel(Index panels, Index piece) {
  Index left = panels;
  for (; piece > 0 && left > 0; --piece) left -= larger(1, left / 2);
  return panels - left;
}
constexpr Index count_pieces(Index panels) {
  Index pieces = 0;
  while (first_panel(panels, pieces) < panels) ++pieces;
  return pieces;
}
static_assert(first_panel(22, 1) == 11 && first_panel(22, 2) == 16 && first_panel(22, 5) == 21 &&
              count_pieces(22) == 6 && count_pieces(1) == 1);

// A row's bits do not depend on the number of panels a task.
Blocking choose_blocking(const Problem& p, const Unit& unit) {
  Blocking b =
      largest_blocking(p.query.extent.dim, p.value.extent.dim, unit.panel, unit.key_blocks);
  const Index a_head = larger(1, kernel::count_blocks(most_rows(p), unit.panel));
  // In floating point: the product may be huge.
  const double panels = static_cast<double>(sequences(p)) *
                        static_cast<double>(p.query.extent.head) * static_cast<double>(a_head);
  const double a_task = panels / (kTasksAThread * static_cast<double>(threads()));
  const Index most = smaller(b.panels, a_head);
  b.panels = a_task < static_cast<double>(most) ? larger(1, std::lround(a_task)) : most;
  b.panels = kernel::count_blocks(a_head, kernel::count_blocks(a_head, b.panels));  // equal tasks
  return b;
}

// Parts of the workspace: block prefix sums of a packed batch, then a scratch a thread.
struct WorkspaceParts {
  std::size_t scratch = 0;  // offset, bytes
  std::size_t stride = 0;   // of a thread
  std::size_t size = 0;
};

WorkspaceParts workspace_parts(const Problem& p, const Blocking& b, Index columns) {
  const Scratch scratch =
      layout(b, round_up(p.query.extent.dim, columns), round_up(p.value.extent.dim, columns),
             general(p), by_stretches(p));
  WorkspaceParts parts;
  parts.scratch = prefix_bytes(p);
  parts.stride = static_cast<std::size_t>(scratch.size) * sizeof(float);
  parts.size = parts.scratch + parts.stride * static_cast<std::size_t>(threads());
  return parts;
}

std::string why(const Problem& p, const Blocking& b) {
  return std::to_string(b.panels) + (b.panels == 1 ? " panel of " : " panels of ") +
         std::to_string(b.panel) + " rows a task, one a SIMD lane; keys packed in blocks of " +
         std::to_string(b.keys) + "; " + (general(p) ? "general" : "plain") + " flavour";
}

struct Launch {
  const kernel::ForwardArguments* arguments;
  kernel::WorkOrder order;
  Index whole;  // tasks
  Index late;   // tasks that come in pieces
  Blocking blocking;
  bool by_stretches;
  std::byte* scratch;
  std::size_t stride;
  void (*forward)(const ForwardTask&);
};

double flops(const kernel::ForwardArguments& a) {
  return 2.0 * static_cast<double>(a.batch) * static_cast<double>(a.head_q) *
         static_cast<double>(a.seq_q) * static_cast<double>(a.seq_k) *
         static_cast<double>(a.dim + a.dim_v);
}

void run_task(void* context, Index task, int thread) {
  const Launch& launch = *static_cast<const Launch*>(context);
  const kernel::ForwardArguments& a = *launch.arguments;
  const Blocking& b = launch.blocking;
  Index first = 0, last = b.panels;  // panels of the task
  if (task >= launch.whole) {
    const Index piece = (task - launch.whole) / launch.late;
    first = first_panel(b.panels, piece);
    last = first_panel(b.panels, piece + 1);
    task = launch.whole + (task - launch.whole) % launch.late;
  }
  const kernel::WorkItem item = launch.order.item(task);
  const kernel::Sequence sequence = kernel::sequence(a, item.batch);
  const Index begin = (item.block * b.panels + first) * b.panel,
              end = smaller((item.block * b.panels + last) * b.panel, sequence.rows);
  if (begin >= end) return;
  auto* scratch =
      reinterpret_cast<float*>(launch.scratch + launch.stride * static_cast<std::size_t>(thread));
  launch.forward(
      {&a, &sequence, item.batch, item.head, begin, end, b, launch.by_stretches, scratch});
}

}  // namespace

backend::Candidate forward_candidate(const Problem& problem, int id) {
  const Choice& choice = choices()[static_cast<std::size_t>(id)];
  backend::Candidate candidate;
  candidate.kernel = choice.forward_kernel;
  candidate.id = id;
  candidate.rejected = reject(choice, problem);
  const auto element_index = static_cast<std::size_t>(element(problem.query.dtype));
  if (candidate.rejected.empty() && choice.unit->forward[element_index][0] == nullptr)
    candidate.rejected = "it computes bf16 only";
  if (!candidate.rejected.empty()) return candidate;
  const Blocking blocking = choose_blocking(problem, *choice.unit);
  candidate.tile_q = blocking.panel * blocking.panels;
  candidate.tile_k = blocking.keys;
  candidate.head_dim = problem.query.extent.dim;  // run-time loops: no bucket is padded
  candidate.head_dim_v = problem.value.extent.dim;
  candidate.workspace = workspace_parts(problem, blocking, choice.unit->columns).size;
  candidate.why = why(problem, blocking);
  return candidate;
}

void append_forward(const Problem& problem, std::vector<backend::Candidate>& candidates) {
  for (int id = 0; id < static_cast<int>(choices().size()); ++id)
    candidates.push_back(forward_candidate(problem, id));
}

void launch_forward(const backend::Candidate& candidate, const Problem& problem,
                    const kernel::ForwardArguments& arguments, void* workspace,
                    const Stream& stream) {
  const Unit& unit = *choices()[static_cast<std::size_t>(candidate.id)].unit;
  const Blocking blocking{unit.panel, candidate.tile_q / unit.panel, candidate.tile_k};
  const WorkspaceParts parts = workspace_parts(problem, blocking, unit.columns);
  check_workspace(workspace, parts.size, candidate);
  auto* memory = static_cast<std::byte*>(workspace ? workspace : arena(parts.size));

  auto* prefix = reinterpret_cast<Index*>(memory);
  if (arguments.packed())
    kernel::build_block_prefix(arguments, blocking.panel * blocking.panels, prefix);
  kernel::WorkOrder order = kernel::work_order(arguments, blocking.panel * blocking.panels, prefix);
  order.heads_together = true;  // a head's keys stay in the second-level cache
  const bool serial = tiny(flops(arguments));
  const Index late = serial ? 0 : smaller(order.size(), threads() / 2);
  Launch context{&arguments,
                 order,
                 order.size() - late,
                 late,
                 blocking,
                 by_stretches(problem),
                 memory + parts.scratch,
                 parts.stride,
                 unit.forward[static_cast<int>(element(problem.query.dtype))]
                             [static_cast<int>(flavour(problem))]};
  const Index tasks = context.whole + late * count_pieces(blocking.panels);
  if (serial) {
    for (Index task = 0; task < tasks; ++task) run_task(&context, task, 0);
    return;
  }
  run_tasks(tasks, stream, run_task, &context);
}

}  // namespace tessera::kokkos::vector
