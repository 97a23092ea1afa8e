#pragma once
// The execution space that Tessera runs on. Includes Kokkos, which costs seconds of compile time:
// only the few sources that launch something include this.

#include <string>
#include <string_view>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/stream.hpp>

namespace tessera::kokkos {

using Space = Kokkos::DefaultExecutionSpace;
using HostSpace = Kokkos::DefaultHostExecutionSpace;
inline constexpr bool kHostSpace = std::is_same_v<Space, HostSpace>;

// What Kokkos is told that a launch or a fence is called. It makes a std::string of the text, and a
// longer one takes memory: where there is none left, a computation would fail half-way.
class Label {
 public:
  consteval Label(const char* text) : text_(text) {
    if (std::string_view(text).size() > 15) throw "a label must fit into an empty std::string";
  }
  operator std::string() const { return text_; }

 private:
  const char* text_;
};

// The instance that a stream names: the caller's own, or the default one.
template <class S = Space>
S instance(const Stream& stream) {
  if constexpr (std::is_same_v<S, Space>) {
    if (stream.native() != nullptr) return *static_cast<const S*>(stream.native());
  }
  return S{};
}

}  // namespace tessera::kokkos
