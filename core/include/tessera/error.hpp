#pragma once
/// The three ways in which a call can fail. When a call throws while it validates, nothing has been
/// written. Where the host has no memory left, std::bad_alloc passes through, and nothing has been
/// written either; where Kokkos finds none for a kernel's scratch memory, a DeviceError comes, and
/// gradients may be written in part.

#include <stdexcept>
#include <string>

#include <tessera/export.hpp>

namespace tessera {

/// Base of every exception that Tessera throws itself.
class TESSERA_API Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text);
  ~Error() override;
};

/// An argument is wrong on every backend. `argument()` names it (`key.stride.seq`); the text also
/// says what it was, what is allowed and, where there is one, a hint:
/// `value.extent.seq is 511; must equal key.extent.seq (512)`.
class TESSERA_API InvalidArgument : public Error {
 public:
  InvalidArgument(std::string argument, const std::string& problem);
  ~InvalidArgument() override;

  const std::string& argument() const noexcept { return argument_; }

 private:
  std::string argument_;
};

/// The request is well-formed, but this build or device cannot do it. The text names the nearest
/// thing that works.
class TESSERA_API Unsupported : public Error {
 public:
  explicit Unsupported(const std::string& text);
  ~Unsupported() override;
};

/// The device or its runtime failed. May stem from an earlier asynchronous launch; the text says so
/// where that is possible.
class TESSERA_API DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& text);
  ~DeviceError() override;
};

}  // namespace tessera
