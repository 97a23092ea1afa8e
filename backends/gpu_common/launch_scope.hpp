#pragma once
// What surrounds the launch of a kernel.

#include <cstddef>
#include <string_view>

#include <tessera/stream.hpp>

#include "backends/gpu_common/device_guard.hpp"

namespace tessera::gpu {

// Scratch memory of one launch: the caller's, or taken from the stream's device in the stream's
// order and given back in that order at the end of its life. Throws Unsupported if the stream is
// being captured and memory would have to be taken.
class Workspace {
 public:
  Workspace(void* given, std::size_t bytes, const Stream& stream);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void* data() const noexcept { return data_; }  // null only for 0 bytes

 private:
  void* data_;
  void* stream_;
  bool owned_ = false;
};

// Makes the stream's device current, says what an earlier call left wrong, and has the workspace.
// Launch inside its life and end with `finish`.
class LaunchScope {
 public:
  // `kernel` is for errors. Throws DeviceError, Unsupported.
  LaunchScope(std::string_view kernel, std::size_t workspace_bytes, void* workspace,
              const Stream& stream);

  void* workspace() const noexcept { return workspace_.data(); }

  // Throws DeviceError if a launch failed and nobody has said so.
  void finish() const;

 private:
  std::string_view kernel_;
  DeviceGuard guard_;
  Workspace workspace_;  // ends before the guard
};

}  // namespace tessera::gpu
