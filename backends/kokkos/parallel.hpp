#pragma once
// How kernels of the Kokkos backend get threads and scratch memory, without including Kokkos.

#include <cstddef>

#include <tessera/stream.hpp>

#include "core/kernel/arguments.hpp"

namespace tessera::kokkos {

using kernel::Index;

/// Host threads of the execution space; 1 on a device space.
int threads();

/// Is the default execution space one whose kernels run on the host, on memory that the host reads?
bool host_space() noexcept;

/// Calls body(context, task, thread) once for every task in [0, tasks), smaller ones first, on up
/// to threads() threads, `thread` in [0, threads()); returns when all are done. Only on host
/// spaces; the caller holds the launch lock.
void run_tasks(Index tasks, const Stream& stream,
               void (*body)(void* context, Index task, int thread), void* context);

/// Process-wide scratch memory of at least `bytes`, aligned to 128, kept between launches. The
/// caller holds the launch lock. Throws DeviceError.
void* arena(std::size_t bytes);

}  // namespace tessera::kokkos
