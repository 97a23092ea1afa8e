#include "backends/kokkos/runtime.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <string>

#include <tessera/error.hpp>

#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/settings.hpp"
#include "backends/kokkos/space.hpp"
#include "core/src/backend.hpp"

#if defined(KOKKOS_ENABLE_OPENMP)
#include <omp.h>
#endif

namespace tessera::kokkos {
namespace {

constinit std::mutex launching;
constinit std::mutex initializing;
constinit std::atomic<bool> initialized = false;
constinit bool broken = false;  // guarded by `initializing`
constinit pid_t owner = 0;  // the process whose threads Kokkos has; written before `initialized`

[[noreturn]] void fail(const std::string& what, const std::exception& error) {
  throw DeviceError(what + ": " + error.what());
}

// Registered after Kokkos::initialize, so it runs before the destructors of whatever Kokkos had
// constructed by then.
void finalize_at_exit() {
  const std::lock_guard lock(launching);
  if (Kokkos::is_initialized() && !Kokkos::is_finalized()) Kokkos::finalize();
}

struct Nothing {
  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member&) const {}
};

// The first launch of teams makes Kokkos take memory for them. If there is none it is left with
// memory that it has freed, and frees it once more at the next launch: so here, where one can stop.
void start_teams() {
  if constexpr (kHostSpace) {
    Kokkos::parallel_for(Label("tessera start"), Kokkos::TeamPolicy<Space>(1, 1), Nothing{});
    Space().fence(Label("tessera start"));
  }
}

void initialize() {
  const std::lock_guard lock(initializing);
  if (broken) {
    throw DeviceError(
        "initialising Kokkos failed earlier in this process, and cannot be tried again");
  }
  if (!Kokkos::is_finalized()) {
    const bool ours = !Kokkos::is_initialized();
    const auto with = ours ? settings() : Kokkos::InitializationSettings();
    try {
      if (ours) Kokkos::initialize(with);
      start_teams();
    } catch (const std::exception& error) {
      broken = true;
      fail("initialising Kokkos failed", error);
    }
    if (ours) std::atexit(finalize_at_exit);
  }
  owner = getpid();
  initialized.store(true, std::memory_order_release);
}

}  // namespace

void ensure_initialized() {
  if (!initialized.load(std::memory_order_acquire)) initialize();
  if (Kokkos::is_finalized()) {
    throw DeviceError(
        "Kokkos has been finalised and cannot be initialised again: call Tessera before "
        "Kokkos::finalize");
  }
}

std::mutex& launch_lock() noexcept { return launching; }

void begin_launch(const Stream& stream) {
  if (getpid() != owner) {
    throw DeviceError(
        "this process is a fork of the one in which Kokkos was initialised, and has none of its "
        "threads: start workers anew (spawn), or call Tessera in them first");
  }
  instance(stream).fence(Label("tessera before"));
}

bool inside_parallel_region() noexcept {
#if defined(KOKKOS_ENABLE_OPENMP)
  return omp_in_parallel() != 0;
#else
  return false;
#endif
}

std::string_view space_name() noexcept { return Space::name(); }

bool host_space() noexcept { return kHostSpace; }

bool host_readable() noexcept {
  return Kokkos::SpaceAccessibility<Kokkos::HostSpace, Space::memory_space>::accessible;
}

void fence(const Stream& stream) {
  ensure_initialized();
  const std::lock_guard lock(launching);
  try {
    instance(stream).fence(Label("tessera wait"));
  } catch (const std::exception& error) {
    fail("synchronising failed, possibly for an earlier launch", error);
  }
}

void* allocate_on_device(std::size_t bytes) {
  ensure_initialized();
  const std::lock_guard lock(launching);
  try {
    return Kokkos::kokkos_malloc<Space::memory_space>("tessera: Buffer", bytes);
  } catch (const std::exception& error) {
    fail("allocating " + std::to_string(bytes) + " bytes failed", error);
  }
}

void release_on_device(void* data) noexcept {
  const std::lock_guard lock(launching);
  // Kokkos takes its memory back when it is finalised, and aborts if told about it afterwards.
  if (Kokkos::is_finalized()) return;
  try {
    Kokkos::kokkos_free<Space::memory_space>(data);
  } catch (const std::exception&) {  // an earlier launch's error: the next synchronisation tells it
  }
}

void copy_on_device(void* destination, const void* source, std::size_t bytes,
                    const Stream& stream) {
  ensure_initialized();
  const std::lock_guard lock(launching);
  // Both sides are called device memory whatever they are: CUDA, HIP and SYCL tell by the address.
  using Bytes = Kokkos::View<char*, Space::memory_space, Kokkos::MemoryUnmanaged>;
  using ConstBytes = Kokkos::View<const char*, Space::memory_space, Kokkos::MemoryUnmanaged>;
  try {
    Kokkos::deep_copy(instance(stream), Bytes(static_cast<char*>(destination), bytes),
                      ConstBytes(static_cast<const char*>(source), bytes));
  } catch (const std::exception& error) {
    fail("copying " + std::to_string(bytes) + " bytes failed", error);
  }
}

int threads() {
  if constexpr (!kHostSpace) return 1;
  ensure_initialized();
  return std::max(1, HostSpace().concurrency());
}

void run_tasks(Index tasks, const Stream& stream,
               void (*body)(void* context, Index task, int thread), void* context) {
  if (tasks <= 0) return;
  // One iteration a worker, each of which takes the next task until there is none: a dynamic
  // schedule in chunks of 1 with a thread index that no Kokkos backend has to tell.
  std::atomic<Index> next = 0;
  const auto work = [&](int worker) {
    for (Index task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;)
      body(context, task, worker);
  };
  if (inside_parallel_region()) {  // whose threads are busy
    work(0);
    return;
  }
  const HostSpace space = instance<HostSpace>(stream);
  const int workers =
      static_cast<int>(std::min<Index>({tasks, threads(), std::max(1, space.concurrency())}));
  using Policy =
      Kokkos::RangePolicy<HostSpace, Kokkos::Schedule<Kokkos::Static>, Kokkos::IndexType<int>>;
  if (workers == 1) {
    work(0);
    return;
  }
  Kokkos::parallel_for(Label("tessera tasks"), Policy(space, 0, workers).set_chunk_size(1), work);
  space.fence(Label("tessera tasks"));
}

}  // namespace tessera::kokkos

namespace tessera::backend {

std::string_view toolkit() noexcept {
#define TESSERA_TEXT_(x) #x
#define TESSERA_TEXT(x) TESSERA_TEXT_(x)
  return "Kokkos " TESSERA_TEXT(KOKKOS_VERSION_MAJOR) "." TESSERA_TEXT(
      KOKKOS_VERSION_MINOR) "." TESSERA_TEXT(KOKKOS_VERSION_PATCH);
#undef TESSERA_TEXT
#undef TESSERA_TEXT_
}

}  // namespace tessera::backend
