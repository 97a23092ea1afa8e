#include "core/src/event.hpp"

#include <atomic>
#include <mutex>

namespace tessera {
namespace {

// The hook and its user pointer, read together without a lock: `turn` is odd while they are being
// written, and a reader that saw it change reads again. All accesses are sequentially consistent.
struct Installed {
  std::mutex writers;
  std::atomic<unsigned> turn{0};
  std::atomic<EventHook> function{nullptr};
  std::atomic<void*> user{nullptr};
};

constinit Installed installed;

detail::Hook current() noexcept {
  while (true) {
    const unsigned before = installed.turn;
    const detail::Hook hook{installed.function, installed.user};
    if (before % 2 == 0 && installed.turn == before) return hook;
  }
}

}  // namespace

void set_event_hook(EventHook hook, void* user) noexcept {
  const std::lock_guard lock(installed.writers);
  ++installed.turn;
  installed.function = hook;
  installed.user = user;
  ++installed.turn;
}

namespace detail {

Observation::Observation(Event::Kind kind, const Problem& problem) noexcept
    : hook_(current()), kind_(kind), problem_(&problem) {
  if (hook_.function != nullptr) begin_ = std::chrono::steady_clock::now();
}

void Observation::report(std::string_view kernel, std::string_view error) noexcept {
  if (hook_.function == nullptr) return;
  const auto passed = std::chrono::steady_clock::now() - begin_;
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count();
  try {
    hook_.function({.kind = kind_,
                    .problem = problem_,
                    .kernel = kernel,
                    .error = error,
                    .nanoseconds = nanoseconds},
                   hook_.user);
  } catch (...) {  // a hook watches; it does not decide
  }
}

}  // namespace detail
}  // namespace tessera
