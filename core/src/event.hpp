#pragma once
// Reports plans and launches to the event hook. Without one it reads no clock and adds one atomic load to a call.

#include <chrono>
#include <exception>
#include <string_view>

#include <tessera/event.hpp>

namespace tessera::detail {

struct Hook {
  EventHook function = nullptr;
  void* user = nullptr;
};
Hook event_hook() noexcept;

// Calls the hook and swallows what it throws.
void report(const Hook& hook, const Event& event) noexcept;

// Runs `work` and reports it. `work` fills `event`'s kernel, which must outlive the report.
template <class Work>
auto observed(Event event, Work work) {
  const Hook hook = event_hook();
  if (hook.function == nullptr) return work(event);
  const auto begin = std::chrono::steady_clock::now();
  const auto finish = [&](std::string_view error) {
    event.error = error;
    event.nanoseconds =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
    report(hook, event);
  };
  struct OnSuccess {
    const decltype(finish)& finish_;
    int exceptions = std::uncaught_exceptions();
    ~OnSuccess() {
      if (std::uncaught_exceptions() == exceptions) finish_({});
    }
  };
  try {
    const OnSuccess on_success{finish};
    return work(event);
  } catch (const std::exception& error) {
    finish(error.what());
    throw;
  }
}

}  // namespace tessera::detail
