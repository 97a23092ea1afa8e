#pragma once
// With what Kokkos is initialised, where the library does it.

#include <Kokkos_Core.hpp>

namespace tessera::kokkos {

// Threads as the environment asks for, but no more than Kokkos can have. Throws DeviceError where
// Kokkos' own variables hold what it would end the process for.
Kokkos::InitializationSettings settings();

}  // namespace tessera::kokkos
