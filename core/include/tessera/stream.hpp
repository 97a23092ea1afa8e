#pragma once
/// An ordered queue of work on one device.

#include <tessera/export.hpp>

namespace tessera {

/// A non-owning handle, cheap to copy. Default-constructed: the default stream of device 0.
class Stream {
 public:
  constexpr Stream() noexcept = default;

  /// Wraps a native stream without owning it: a `cudaStream_t`, a `hipStream_t` (null: the legacy
  /// default stream), or for Kokkos a pointer to an execution space instance (see
  /// <tessera/kokkos.hpp>). It must outlive its uses.
  static constexpr Stream from_native(void* native, int device = 0) noexcept {
    Stream stream;
    stream.native_ = native;
    stream.device_ = device;
    return stream;
  }

  constexpr void* native() const noexcept { return native_; }
  constexpr int device() const noexcept { return device_; }

  /// Waits until everything queued so far is done. Throws DeviceError if any of it failed,
  /// InvalidArgument if there is no such device.
  TESSERA_API void synchronize() const;

  friend constexpr bool operator==(const Stream&, const Stream&) = default;

 private:
  void* native_ = nullptr;
  int device_ = 0;
};

}  // namespace tessera
