// There is one thread, the caller's, and so one queue.

#include "tests/conformance/side_stream.hpp"

namespace tessera::testing {

struct SideStream::Impl {};

SideStream::SideStream() = default;
SideStream::~SideStream() = default;

Stream SideStream::stream() const noexcept { return {}; }

}  // namespace tessera::testing
