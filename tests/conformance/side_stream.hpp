#pragma once
/// A queue of the backend's own that is not the default one. Each backend has a source file for it,
/// in the folder of its name.

#include <memory>

#include <tessera/stream.hpp>

namespace tessera::testing {

/// Make one after the first call that computes, and let it end before the process does.
class SideStream {
 public:
  SideStream();
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  Stream stream() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::testing
