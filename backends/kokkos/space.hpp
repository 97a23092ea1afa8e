#pragma once
// The execution space that Tessera runs on. Includes Kokkos, which costs seconds of compile time:
// only the few sources that launch something include this.

#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/stream.hpp>

namespace tessera::kokkos {

using Space = Kokkos::DefaultExecutionSpace;
using HostSpace = Kokkos::DefaultHostExecutionSpace;
inline constexpr bool kHostSpace = std::is_same_v<Space, HostSpace>;

// The instance that a stream names: the caller's own, or the default one.
template <class S = Space>
S instance(const Stream& stream) {
  if constexpr (std::is_same_v<S, Space>) {
    if (stream.native() != nullptr) return *static_cast<const S*>(stream.native());
  }
  return S{};
}

}  // namespace tessera::kokkos
