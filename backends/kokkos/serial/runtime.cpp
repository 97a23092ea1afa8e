// What runtime.cpp gives, without Kokkos: one thread, the caller's. For cross-compiled programs and
// tests, and where no Kokkos is to be had (TESSERA_KOKKOS=OFF).

#include "backends/kokkos/runtime.hpp"

#include <string>

#include <tessera/error.hpp>

#include "backends/kokkos/parallel.hpp"
#include "core/src/backend.hpp"

namespace tessera::kokkos {
namespace {

constinit std::mutex launching;

[[noreturn]] void no_device_memory() { throw DeviceError("there is no memory but the host's"); }

}  // namespace

void ensure_initialized() {}
std::mutex& launch_lock() noexcept { return launching; }
void begin_launch(const Stream&) {}
bool inside_parallel_region() noexcept { return false; }
std::string_view space_name() noexcept { return "calling thread"; }
bool host_space() noexcept { return true; }
bool host_readable() noexcept { return true; }
void fence(const Stream&) {}

// Never called: kernels run on the host.
void* allocate_on_device(std::size_t) { no_device_memory(); }
void release_on_device(void*) noexcept {}
void copy_on_device(void*, const void*, std::size_t, const Stream&) { no_device_memory(); }

int threads() { return 1; }

void run_tasks(Index tasks, const Stream&, void (*body)(void* context, Index task, int thread),
               void* context) {
  for (Index task = 0; task < tasks; ++task) body(context, task, 0);
}

}  // namespace tessera::kokkos

namespace tessera::backend {

std::string_view toolkit() noexcept { return "without Kokkos"; }

}  // namespace tessera::backend
