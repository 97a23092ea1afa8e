#include <tessera/buffer.hpp>

#include <cstdint>
#include <utility>

#include "core/src/backend.hpp"
#include "core/src/device.hpp"
#include "core/src/text.hpp"

namespace tessera {

Buffer::Buffer(std::size_t bytes, int device) : size_(bytes), device_(device) {
  detail::check_device("device", device);
  data_ = backend::allocate(bytes, device);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      device_(std::exchange(other.device_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer taken(std::move(other));  // first, so that self-assignment keeps the memory
  std::swap(data_, taken.data_);
  std::swap(size_, taken.size_);
  std::swap(device_, taken.device_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) backend::release(data_, device_);
}

namespace {

void check_range(std::string_view argument, const void* data, std::size_t bytes) {
  using detail::concat;
  if (data == nullptr) {
    detail::refuse(argument, "null", concat("must point to ", bytes, " bytes"));
  }
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(data)) {
    detail::refuse(argument, detail::to_text(data),
                   "bytes from there must not run past the end of memory");
  }
}

}  // namespace

void copy(void* destination, const void* source, std::size_t bytes, Stream stream) {
  detail::check_device("stream.device", stream.device());
  if (bytes == 0) return;
  check_range("destination", destination, bytes);
  check_range("source", source, bytes);
  const auto to = reinterpret_cast<std::uintptr_t>(destination);
  const auto from = reinterpret_cast<std::uintptr_t>(source);
  if (to < from + bytes && from < to + bytes) {
    detail::refuse(
        "destination", detail::to_text(destination),
        detail::concat("must not overlap the bytes that are read, from source (", source, ") on"));
  }
  backend::copy(destination, source, bytes, stream);
}

}  // namespace tessera
