#pragma once
/// A hook that sees every plan and launch: what metrics and traces are made of.

#include <cstdint>
#include <string_view>

#include <tessera/export.hpp>
#include <tessera/problem.hpp>

namespace tessera {

/// Seen while the hook runs; nothing in it outlives the call.
struct Event {
  enum class Kind : std::uint8_t { Plan, Launch };

  Kind kind = Kind::Plan;
  const Problem* problem = nullptr;
  std::string_view kernel{};  ///< name of the kernel chosen or launched; empty if planning failed
  std::string_view error{};   ///< text of the exception about to be thrown; empty on success
  /// Host time spent planning, or until `execute` had queued the work (host spaces: done it).
  std::int64_t nanoseconds = 0;
};

/// Called on the thread that plans or executes, possibly on several at once. An exception that it
/// throws is swallowed.
using EventHook = void (*)(const Event& event, void* user);

/// Installs `hook` for the whole process, in place of the one before; null removes it. Calls in
/// flight may still see the one before. Without a hook, plans and launches do not read the clock.
TESSERA_API void set_event_hook(EventHook hook, void* user = nullptr) noexcept;

}  // namespace tessera
