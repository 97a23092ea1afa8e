// Memory: the host's own where kernels run on the host, so that buffers need no Kokkos and may
// outlive it.

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include <tessera/error.hpp>

#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/runtime.hpp"
#include "core/src/backend.hpp"

namespace tessera {
namespace {

constexpr std::align_val_t kAlignment{128};

void* allocate_on_host(std::size_t bytes) {
  // More than there is can be had from the operating system, until it is written.
  const bool possible = bytes <= kokkos::host_memory();
  void* const data = possible
                         ? ::operator new(std::max<std::size_t>(bytes, 1), kAlignment, std::nothrow)
                         : nullptr;
  if (data == nullptr) {
    throw DeviceError("allocating " + std::to_string(bytes) + " bytes failed: the host has " +
                      std::to_string(kokkos::host_memory()) + " bytes of memory");
  }
  return data;
}

void release_on_host(void* data) noexcept { ::operator delete(data, kAlignment); }

}  // namespace

namespace backend {

void* allocate(std::size_t bytes, int) {
  if (kokkos::host_space()) return allocate_on_host(bytes);
  return kokkos::allocate_on_device(std::max<std::size_t>(bytes, 1));
}

void release(void* data, int) noexcept {
  if (kokkos::host_space()) {
    release_on_host(data);
  } else {
    kokkos::release_on_device(data);
  }
}

void copy(void* destination, const void* source, std::size_t bytes, const Stream& stream) {
  if (kokkos::host_space()) {
    kokkos::fence(stream);
    std::memcpy(destination, source, bytes);
  } else {
    kokkos::copy_on_device(destination, source, bytes, stream);
  }
}

void synchronize(const Stream& stream) { kokkos::fence(stream); }

bool capturing(const Stream&) { return false; }

bool host_reads_device_memory() noexcept { return kokkos::host_readable(); }

}  // namespace backend

namespace kokkos {

void* arena(std::size_t bytes) {
  // Never freed, only replaced by a larger one: kernels may run until the very end of the process.
  static constinit void* data = nullptr;
  static constinit std::size_t size = 0;
  if (data == nullptr || size < bytes) {
    release_on_host(data);
    data = nullptr;
    size = 0;
    data = allocate_on_host(bytes);
    size = bytes;
  }
  return data;
}

}  // namespace kokkos
}  // namespace tessera
