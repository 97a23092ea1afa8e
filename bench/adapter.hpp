#pragma once
/// Somebody else's implementation, behind <tessera/adapter.h>, called as ours is.

#include <memory>
#include <string>

#include <tessera/adapter.h>
#include <tessera/plan.hpp>

namespace tessera::bench {

/// A call in the terms of <tessera/tessera.h>: the inverse of what the C interface does.
tessera_args to_c(const Args& args) noexcept;
tessera_options to_c(const Options& options) noexcept;

/// A loaded library. It stays loaded for the process's life, with whatever threads it has.
class Adapter {
 public:
  /// Throws std::runtime_error for a file that is no adapter, and says why.
  explicit Adapter(const std::string& path);

  const std::string& name() const noexcept { return name_; }
  /// Whether it has a function for that.
  bool has(Operation operation) const noexcept;
  /// Unsupported also where it has no such function.
  Support supports(Operation operation, const Args& args, const Options& options) const;
  /// Throws as Tessera's own functions do, by the status that comes back.
  void call(Operation operation, const Args& args, const Options& options,
            const Stream& stream = {}) const;

 private:
  tessera_adapter table_{};
  std::string name_;
};

}  // namespace tessera::bench
