// Chooses instruction set and blocking, and hands tasks to threads.

#include <span>
#include <string>

#include <tessera/error.hpp>

#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/tuning/forward.hpp"
#include "backends/kokkos/vector/task.hpp"
#include "backends/kokkos/vector/vector.hpp"
#include "core/kernel/work_order.hpp"
#include "tessera_head_dims.hpp"

namespace tessera::kokkos::vector {

namespace {

using kernel::larger;
using kernel::smaller;

// A unit, and whether the processor runs it.
struct Choice {
  const Unit* unit;
  std::string_view kernel;
  bool available;
};

#if defined(TESSERA_VECTOR_X86)
// What -march=x86-64-v3 and -v4 let the compiler use, by those of their features that clang 14 can
// ask for; it knows no levels here. No processor has AVX2 without F16C, LZCNT and MOVBE.
bool has_avx2() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool has_avx512() noexcept {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

// Best first.
std::span<const Choice> choices() noexcept {
#if defined(TESSERA_VECTOR_X86)
  static const Choice all[] = {{&tessera_vector_avx512, "forward.vector.avx512", has_avx512()},
                               {&tessera_vector_avx2, "forward.vector.avx2", has_avx2()},
                               {&tessera_vector_portable, "forward.vector.portable", true}};
#else
  static const Choice all[] = {{&tessera_vector_portable, "forward.vector.portable", true}};
#endif
  return all;
}

constexpr Index kTunedPanel = 48;  // rows of the panels that the tuning table counts
constexpr Index kMaxThreadBytes = Index{1} << 20;

constexpr Index round_up(Index x, Index multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

// Panels a task and keys a block at most, by the head dimensions alone.
constexpr Blocking widest_blocking(Index dim, Index dim_v, Index panel) {
  for (const ForwardTuning& row : kForwardTuning) {
    if (larger(dim, dim_v) <= row.head_dim)
      return {panel, row.panels48 * kTunedPanel / panel, row.keys};
  }
  return {};
}

constexpr bool fits(Index panel) {
  for (const ForwardTuning& row : kForwardTuning) {
    const Blocking b = widest_blocking(row.head_dim, row.head_dim, panel);
    if (layout(b, row.head_dim, row.head_dim, true).size * Index{sizeof(float)} > kMaxThreadBytes)
      return false;
  }
  return true;
}
static_assert(fits(48) && fits(24) && fits(12), "a thread's scratch memory stays within 1 MiB");

// Enough tasks for all threads to end together, else as many panels a task as share a packed block
// of keys. A row's bits do not depend on it.
Blocking choose_blocking(const Problem& p, Index panel) {
  Blocking b = widest_blocking(p.query.extent.dim, p.value.extent.dim, panel);
  const Index sequences = p.packed ? p.packed->segments : p.query.extent.batch;
  const Index rows = p.packed && p.options.max_seq_q > 0 ? p.options.max_seq_q : p.query.extent.seq;
  const Index a_head = larger(1, kernel::count_blocks(rows, panel));
  constexpr Index kTasksAThread = 4;
  // In floating point: the product may be huge.
  const double all = static_cast<double>(a_head) * static_cast<double>(sequences) *
                     static_cast<double>(p.query.extent.head);
  const double wanted = all / static_cast<double>(kTasksAThread * threads());
  if (wanted < static_cast<double>(b.panels)) b.panels = larger(1, static_cast<Index>(wanted));
  const Index blocks = kernel::count_blocks(a_head, b.panels);
  b.panels = kernel::count_blocks(a_head, blocks);  // equal tasks
  return b;
}

bool general(const Problem& p) {
  return p.softcap || p.alibi_slopes || p.bias || p.boolean_mask || p.sinks ||
         p.options.dropout > 0;
}

Element element(DType dtype) {
  switch (dtype) {
    case DType::fp16:
      return Element::fp16;
    case DType::bf16:
      return Element::bf16;
    default:
      return Element::fp32;
  }
}

// Parts of the workspace: block prefix sums of a packed batch, then a scratch a thread.
struct WorkspaceParts {
  std::size_t scratch = 0;  // offset, bytes
  std::size_t stride = 0;   // of a thread
  std::size_t size = 0;
};

WorkspaceParts workspace_parts(const Problem& p, const Blocking& b) {
  const Scratch scratch = layout(b, p.query.extent.dim, p.value.extent.dim, general(p));
  WorkspaceParts parts;
  // Segments are a number that nobody has allocated yet: what does not fit in memory saturates.
  constexpr Index kMostSegments = Index{1} << 55;
  const Index prefix =
      p.packed ? (smaller(p.packed->segments, kMostSegments) + 1) * Index{sizeof(Index)} : 0;
  parts.scratch = static_cast<std::size_t>(round_up(prefix, 128));
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
  Blocking blocking;
  std::byte* scratch;
  std::size_t stride;
  void (*forward)(const ForwardTask&);
};

// Is the work so little that waking threads would take longer? About 20 us of one.
bool tiny(const kernel::ForwardArguments& a) {
  constexpr double kFlops = 1e6;
  const double sequences = static_cast<double>(a.batch) * static_cast<double>(a.head_q);
  return 2.0 * sequences * static_cast<double>(a.seq_q) * static_cast<double>(a.seq_k) *
             static_cast<double>(a.dim + a.dim_v) <
         kFlops;
}

void run_task(void* context, Index task, int thread) {
  const Launch& launch = *static_cast<const Launch*>(context);
  const kernel::ForwardArguments& a = *launch.arguments;
  const kernel::WorkItem item = launch.order.item(task);
  const kernel::Sequence sequence = kernel::sequence(a, item.batch);
  const Index rows = launch.blocking.panel * launch.blocking.panels;
  const Index first = item.block * rows;
  auto* scratch =
      reinterpret_cast<float*>(launch.scratch + launch.stride * static_cast<std::size_t>(thread));
  launch.forward({&a, &sequence, item.batch, item.head, first, smaller(first + rows, sequence.rows),
                  launch.blocking, scratch});
}

}  // namespace

std::string_view best_isa() noexcept {
  for (const Choice& choice : choices()) {
    if (choice.available) return choice.unit->name;
  }
  return "portable";
}

void append_candidates(const Problem& problem, std::vector<backend::Candidate>& candidates) {
  const Index dim = problem.query.extent.dim, dim_v = problem.value.extent.dim;
  for (const Choice& choice : choices()) {
    backend::Candidate candidate;
    candidate.kernel = choice.kernel;
    candidate.id = static_cast<int>(&choice - choices().data());
    if (!choice.available) {
      candidate.rejected = "this processor lacks its instructions";
    } else if (larger(dim, dim_v) > TESSERA_BUILD_HEAD_DIM_MAX) {
      candidate.rejected = "head_dim " + std::to_string(larger(dim, dim_v)) +
                           " is above the largest that was built (" +
                           std::to_string(TESSERA_BUILD_HEAD_DIM_MAX) + ", see TESSERA_HEAD_DIMS)";
    } else {
      const Blocking blocking = choose_blocking(problem, choice.unit->panel);
      candidate.tile_q = blocking.panel * blocking.panels;
      candidate.tile_k = blocking.keys;
      candidate.head_dim = dim;  // run-time loops: no bucket is padded
      candidate.head_dim_v = dim_v;
      candidate.workspace = workspace_parts(problem, blocking).size;
      candidate.why = why(problem, blocking);
    }
    candidates.push_back(std::move(candidate));
  }
}

void launch(const backend::Candidate& candidate, const Problem& problem,
            const kernel::ForwardArguments& arguments, void* workspace, const Stream& stream) {
  const Unit& unit = *choices()[static_cast<std::size_t>(candidate.id)].unit;
  const Blocking blocking{unit.panel, candidate.tile_q / unit.panel, candidate.tile_k};
  const WorkspaceParts parts = workspace_parts(problem, blocking);
  if (workspace && parts.size > candidate.workspace) {
    throw DeviceError("the execution space has more threads than when the plan was made: " +
                      std::to_string(parts.size) + " bytes of workspace are needed, not " +
                      std::to_string(candidate.workspace));
  }
  auto* memory = static_cast<std::byte*>(workspace ? workspace : arena(parts.size));

  auto* prefix = reinterpret_cast<Index*>(memory);
  if (arguments.packed())
    kernel::build_block_prefix(arguments, blocking.panel * blocking.panels, prefix);
  Launch context{&arguments,
                 kernel::work_order(arguments, blocking.panel * blocking.panels, prefix),
                 blocking,
                 memory + parts.scratch,
                 parts.stride,
                 unit.forward[static_cast<int>(element(problem.query.dtype))][static_cast<int>(
                     arguments.general() ? Flavour::General : Flavour::Plain)]};
  context.order.heads_together = true;  // a head's keys stay in the second-level cache
  if (tiny(arguments)) {
    for (Index task = 0; task < context.order.size(); ++task) run_task(&context, task, 0);
    return;
  }
  run_tasks(context.order.size(), stream, run_task, &context);
}

}  // namespace tessera::kokkos::vector
