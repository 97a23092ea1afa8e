#pragma once
// The backend's own view of the Kokkos runtime, without including Kokkos. What kernels need of it
// is in parallel.hpp.

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include <tessera/stream.hpp>

namespace tessera::kokkos {

// Initialises Kokkos if nobody has; every function that touches Kokkos calls it first. Throws
// DeviceError if Kokkos has been finalised, after which it cannot be had again.
void ensure_initialized();

// Held while Kokkos computes: its calls are serialised, whatever thread or stream they come from.
std::mutex& launch_lock() noexcept;

// Called with the launch lock held, before a kernel or this thread reads anything: waits for
// earlier work on the stream. Throws DeviceError where no kernel can run: in a child of fork(),
// which has no threads.
void begin_launch(const Stream& stream);

// Does the caller run inside a parallel region of the threads that Kokkos would use?
bool inside_parallel_region() noexcept;

// Name of the default execution space: "OpenMP".
std::string_view space_name() noexcept;

// Waits for everything on the stream.
void fence(const Stream& stream);

// Memory of the default execution space that the host cannot read, and copies to, from and inside
// it.
void* allocate_on_device(std::size_t bytes);
void release_on_device(void* data) noexcept;
void copy_on_device(void* destination, const void* source, std::size_t bytes, const Stream& stream);

// Can the host read what `allocate` gives?
bool host_readable() noexcept;

// The processor's own name, and its memory in bytes.
std::string host_name();
std::uint64_t host_memory() noexcept;

}  // namespace tessera::kokkos
