#include <algorithm>
#include <exception>
#include <optional>
#include <string>

#include <tessera/error.hpp>

#include "backends/kokkos/generic/forward.hpp"
#include "backends/kokkos/generic/kernel.hpp"
#include "backends/kokkos/parallel.hpp"

namespace tessera::kokkos::generic {
namespace {

using kernel::ForwardArguments;
using kernel::WorkOrder;

// How a team is made up: on a host one thread whose compiler vectorises eight neighbours, on a
// device one lane a key.
inline constexpr int kWidth = kHostSpace ? 8 : 1;
inline constexpr int kThreads = kHostSpace ? 1 : kRows / kGroup;
inline constexpr int kVector = kHostSpace ? 1 : kKeys;

// Kokkos counts teams in an int.
inline constexpr Index kMostTeams = Index{1} << 30;

template <class Element>
void run(const Space& space, const ForwardArguments& a, const WorkOrder& order, Index tasks) {
  using Kernel = ForwardKernel<Element, kWidth>;
  using Policy = typename Kernel::Policy;
  const std::size_t bytes = Scratch::of(a.dim, a.dim_v).bytes() + kAlign;
  const int level = bytes <= static_cast<std::size_t>(Policy::scratch_size_max(0)) ? 0 : 1;
  for (Index first = 0; first < tasks; first += kMostTeams) {
    const int teams = static_cast<int>(std::min(tasks - first, kMostTeams));
    Policy policy(space, teams, kThreads, kVector);
    policy.set_scratch_size(level, Kokkos::PerTeam(bytes)).set_chunk_size(1);
    Kokkos::parallel_for("tessera::forward.generic", policy, Kernel(a, order, first, level));
  }
}

void run(DType type, const Space& space, const ForwardArguments& a, const WorkOrder& order,
         Index tasks) {
  switch (type) {
    case DType::fp16:
      return run<Fp16>(space, a, order, tasks);
    case DType::bf16:
      return run<Bf16>(space, a, order, tasks);
    default:
      return run<Fp32>(space, a, order, tasks);
  }
}

struct BuildPrefix {
  ForwardArguments a;
  Index* prefix;
  KOKKOS_FUNCTION void operator()(int) const { kernel::build_block_prefix(a, kRows, prefix); }
};

// As many blocks as a packed batch can have; how many it has is known on the device only.
Index most_blocks(const ForwardArguments& a) { return a.total_q / kRows + a.batch; }

// Memory of the device that lives as long as what was launched to use it.
class Blocks {
 public:
  Blocks(const Space& space, std::size_t bytes)
      : space_(space),
        data_(static_cast<Index*>(Kokkos::kokkos_malloc<Memory>("tessera: blocks", bytes))) {}
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() {
    try {
      space_.fence("tessera: blocks");
      Kokkos::kokkos_free<Memory>(data_);
    } catch (const std::exception&) {  // on the way out with an error that has been told
    }
  }

  Index* data() const { return data_; }

 private:
  using Memory = Space::memory_space;
  const Space& space_;
  Index* data_;
};

void run_packed_on_device(DType type, const Space& space, const ForwardArguments& a,
                          Index* workspace) {
  std::optional<Blocks> own;
  if (workspace == nullptr) {
    own.emplace(space, static_cast<std::size_t>(a.batch + 1) * sizeof(Index));
  }
  Index* const prefix = own ? own->data() : workspace;
  Kokkos::parallel_for("tessera::build_block_prefix",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<int>>(space, 0, 1),
                       BuildPrefix{a, prefix});
  run(type, space, a, kernel::work_order(a, kRows, prefix), most_blocks(a) * a.head_q);
  if (own) space.fence("tessera: blocks");  // here an error can still be told
}

void run_on(DType type, const Space& space, const ForwardArguments& a, Index* workspace) {
  if (a.packed() && !kHostSpace) return run_packed_on_device(type, space, a, workspace);
  Index* prefix = nullptr;
  if (a.packed()) {
    const std::size_t bytes = static_cast<std::size_t>(a.batch + 1) * sizeof(Index);
    prefix = workspace != nullptr ? workspace : static_cast<Index*>(arena(bytes));
    space.fence("tessera: earlier work on the stream");
    kernel::build_block_prefix(a, kRows, prefix);
  }
  const WorkOrder order = kernel::work_order(a, kRows, prefix);
  run(type, space, a, order, order.size());
  if (kHostSpace) space.fence("tessera::forward.generic");
}

}  // namespace

void launch(const Problem& problem, const ForwardArguments& arguments, void* workspace,
            const Stream& stream) {
  try {
    run_on(problem.query.dtype, instance(stream), arguments, static_cast<Index*>(workspace));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DeviceError(std::string(kForward) + ": " + error.what());
  }
}

}  // namespace tessera::kokkos::generic
