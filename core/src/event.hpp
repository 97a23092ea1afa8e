#pragma once
// Reports plans and launches to the event hook. Without one it reads no clock: a few atomic loads a
// call.

#include <chrono>
#include <string_view>

#include <tessera/event.hpp>

namespace tessera::detail {

struct Hook {
  EventHook function = nullptr;
  void* user = nullptr;
};

// One plan or launch, from construction until it is reported as succeeded or failed.
class Observation {
 public:
  Observation(Event::Kind kind, const Problem& problem) noexcept;

  void succeeded(std::string_view kernel) noexcept { report(kernel, {}); }
  void failed(std::string_view kernel, std::string_view error) noexcept { report(kernel, error); }

 private:
  void report(std::string_view kernel, std::string_view error) noexcept;

  Hook hook_;
  Event::Kind kind_;
  const Problem* problem_;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace tessera::detail
