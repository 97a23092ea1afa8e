#include "tests/conformance/side_stream.hpp"

#include <type_traits>

#include <tessera/kokkos.hpp>

namespace tessera::testing {
namespace {

// OpenMP's instances of some number of threads share none with the default one's work; elsewhere
// an instance is cut off the default one: on a device, a stream of its own.
template <class Space>
Space second_instance() {
  if constexpr (std::is_constructible_v<Space, int>) {
    return Space(Space().concurrency());
  } else {
    return Kokkos::Experimental::partition_space(Space(), 1, 1)[1];
  }
}

}  // namespace

struct SideStream::Impl {
  Kokkos::DefaultExecutionSpace space = second_instance<Kokkos::DefaultExecutionSpace>();
};

SideStream::SideStream() : impl_(std::make_unique<Impl>()) {}
SideStream::~SideStream() = default;

Stream SideStream::stream() const noexcept { return as_stream(impl_->space); }

}  // namespace tessera::testing
