#include <tessera/stream.hpp>

#include "core/src/backend.hpp"
#include "core/src/device.hpp"

namespace tessera {

void Stream::synchronize() const {
  detail::check_device("stream.device", device_);
  backend::synchronize(*this);
}

}  // namespace tessera
