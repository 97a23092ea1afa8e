#pragma once
// How the generic kernels are launched: what a team is made of, and what a packed batch needs.

#include <algorithm>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>

#include "backends/kokkos/generic/config.hpp"
#include "backends/kokkos/generic/tile.hpp"
#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/space.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::kokkos::generic {

// How a team is made up: on a host one thread whose compiler vectorises eight neighbours, on a
// device one lane a key.
inline constexpr int kWidth = kHostSpace ? 8 : 1;
inline constexpr int kThreads = kHostSpace ? 1 : kRows / kGroup;
inline constexpr int kVector = kHostSpace ? 1 : kKeys;

// Kokkos counts teams in an int.
inline constexpr Index kMostTeams = Index{1} << 30;

// Scratch memory of the teams of a launch, `bytes` each: Kokkos', or a part of `data`.
struct TeamMemory {
  std::size_t bytes = 0;
  int level = 0;              // Kokkos' level
  std::byte* data = nullptr;  // not null: [teams][team_stride(bytes)]

  KOKKOS_FUNCTION float* of(const Member& team) const {
    if (bytes == 0) return nullptr;
    if (data != nullptr) {
      return reinterpret_cast<float*>(data + static_cast<std::size_t>(team.league_rank()) *
                                                 team_stride(bytes));
    }
    return static_cast<float*>(
        team.team_scratch(level).get_shmem_aligned(static_cast<std::ptrdiff_t>(bytes), kAlign));
  }
};

// A kernel's tasks [first, last), dealt out to teams: kernel(team, task, scratch memory).
template <class Kernel>
struct TeamTasks {
  Kernel kernel;
  Index first;
  Index last;
  TeamMemory memory;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    float* const scratch = memory.of(team);
    for (Index task = first + team.league_rank(); task < last; task += team.league_size()) {
      kernel(team, task, scratch);
      team.team_barrier();
    }
  }
};

// Runs `tasks` tasks, each by a team of `threads` threads with `bytes` of scratch memory. On a host
// as many teams as threads() share the tasks, and their memory is `host_memory` (team_memory() of
// workspace.hpp): Kokkos 5.2 frees its own twice after it could not be enlarged. On a device there
// is a team a task, and memory is what Kokkos provides.
template <class Kernel>
void run_teams(const Space& space, Label name, Index tasks, std::size_t bytes, int threads,
               void* host_memory, const Kernel& kernel) {
  if (kHostSpace) {
    const int teams = static_cast<int>(std::min<Index>(tasks, kokkos::threads()));
    Policy policy(space, teams, threads, kVector);
    policy.set_chunk_size(1);
    Kokkos::parallel_for(
        name, policy,
        TeamTasks<Kernel>{kernel, 0, tasks, {bytes, 0, static_cast<std::byte*>(host_memory)}});
    return;
  }
  const std::size_t padded = bytes + kAlign;
  const int level = padded <= static_cast<std::size_t>(Policy::scratch_size_max(0)) ? 0 : 1;
  for (Index first = 0; first < tasks; first += kMostTeams) {
    const int teams = static_cast<int>(std::min(tasks - first, kMostTeams));
    Policy policy(space, teams, threads, kVector);
    policy.set_scratch_size(level, Kokkos::PerTeam(padded)).set_chunk_size(1);
    Kokkos::parallel_for(name, policy,
                         TeamTasks<Kernel>{kernel, first, first + teams, {bytes, level}});
  }
}

// Memory of the device that lives as long as what was launched to use it.
class DeviceMemory {
 public:
  DeviceMemory(const Space& space, std::size_t bytes)
      : space_(space),
        data_(Kokkos::kokkos_malloc<Memory>(Label("tessera memory"),
                                            std::max<std::size_t>(bytes, 1))) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    try {
      space_.fence(Label("tessera memory"));
      Kokkos::kokkos_free<Memory>(data_);
    } catch (const std::exception&) {  // on the way out with an error that has been told
    }
  }

  void* data() const { return data_; }

 private:
  using Memory = Space::memory_space;
  const Space& space_;
  void* data_;
};

// The workspace of a call: the caller's; else on a host the arena, on a device `own`.
inline std::byte* memory_of(const Space& space, void* workspace, std::size_t bytes,
                            std::optional<DeviceMemory>& own) {
  if (workspace == nullptr && kHostSpace) workspace = arena(bytes);
  if (workspace == nullptr && bytes > 0) workspace = own.emplace(space, bytes).data();
  return static_cast<std::byte*>(workspace);
}

// Where the blocks of a packed batch's segments begin among all of them.
struct BuildPrefix {
  kernel::ForwardArguments a;
  Index* rows;  // null: not wanted
  Index* keys;  // likewise

  KOKKOS_FUNCTION void operator()(int) const {
    if (rows != nullptr) kernel::build_block_prefix(a, kRows, rows);
    if (keys != nullptr) kernel::build_key_block_prefix(a, kKeys, keys);
  }
};

inline void build_prefix(const Space& space, const BuildPrefix& build) {
  if (kHostSpace) {
    space.fence(Label("tessera before"));
    build(0);
  } else {
    Kokkos::parallel_for(Label("tessera prefix"),
                         Kokkos::RangePolicy<Space, Kokkos::IndexType<int>>(space, 0, 1), build);
  }
}

// Tasks of an order over blocks of `block` of `total` rows or keys, or as many as a packed batch
// can have: how many it has is known on the device only.
inline Index most_tasks(const kernel::WorkOrder& order, Index total, Index block) {
  if (kHostSpace || order.prefix == nullptr) return order.size();
  return (total / block + order.batch) * order.head_q;
}

}  // namespace tessera::kokkos::generic
