#pragma once
/// Device memory that a program owns, and copies to and from it: enough to write one program for
/// every backend.

#include <cstddef>

#include <tessera/export.hpp>
#include <tessera/stream.hpp>

namespace tessera {

/// Owns bytes of device memory, aligned to at least 128; contents are uninitialised. Move-only.
class TESSERA_API Buffer {
 public:
  Buffer() noexcept = default;
  /// Throws DeviceError if the device has not that much, InvalidArgument if there is no such
  /// device.
  explicit Buffer(std::size_t bytes, int device = 0);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  void* data() noexcept { return data_; }
  const void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  int device() const noexcept { return device_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
  int device_ = 0;
};

/// Copies bytes between host and device memory, in any direction, after what `stream` holds
/// already. Host memory may be reused when the stream has been synchronised. Throws InvalidArgument
/// for null pointers (unless bytes is 0), ranges that overlap or reach beyond the end of memory,
/// and a stream of no device; DeviceError if the device fails.
TESSERA_API void copy(void* destination, const void* source, std::size_t bytes, Stream stream = {});

}  // namespace tessera
