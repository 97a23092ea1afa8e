#include <tessera/error.hpp>

#include <utility>

namespace tessera {

Error::Error(const std::string& text) : std::runtime_error(text) {}
Error::~Error() = default;

InvalidArgument::InvalidArgument(std::string argument, const std::string& problem)
    : Error(argument + " " + problem), argument_(std::move(argument)) {}
InvalidArgument::~InvalidArgument() = default;

Unsupported::Unsupported(const std::string& text) : Error(text) {}
Unsupported::~Unsupported() = default;

DeviceError::DeviceError(const std::string& text) : Error(text) {}
DeviceError::~DeviceError() = default;

}  // namespace tessera
