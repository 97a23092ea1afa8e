#pragma once
// Device indices, checked.

#include <string_view>

namespace tessera::detail {

// Throws InvalidArgument that names `argument` unless `device` is in [0, device_count()).
void check_device(std::string_view argument, int device);

}  // namespace tessera::detail
