#include "tools/io/signals.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>

namespace tessera::io {
namespace {

// All that a handler may touch.
constinit std::array<std::atomic<const char*>, 8> temporaries{};
constinit std::atomic<int> waits{0};    // living SignalsWait
constinit std::atomic<int> arrived{0};  // the last signal that came
static_assert(std::atomic<const char*>::is_always_lock_free &&
              std::atomic<int>::is_always_lock_free);

constinit std::atomic<bool> ending{false};

/// Takes effect at once, or when the handler that calls this returns. One thread does it: a second
/// could end the process before the first has removed what it took from the list.
void end_by(int signal) noexcept {
  if (ending.exchange(true)) return;
  for (std::atomic<const char*>& temporary : temporaries) {
    const char* const file = temporary.exchange(nullptr);
    if (file != nullptr) ::unlink(file);
  }
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  ::raise(signal);
}

// A handler and a SignalsWait of another thread each write their own atomic before they read the
// other's: at least one of them sees both.
extern "C" void tessera_on_signal(int signal) {
  const int error = errno;
  arrived = signal;
  if (waits == 0) end_by(signal);
  errno = error;
}

}  // namespace

void handle_signals() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU}) {
    struct sigaction action{};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = &tessera_on_signal;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

namespace {

/// Outside a handler: nothing more is done, whichever thread ends the process.
[[noreturn]] void end_here() noexcept {
  end_by(arrived);
  while (true) ::pause();
}

}  // namespace

SignalsWait::SignalsWait() noexcept {
  const bool outermost = waits.fetch_add(1) == 0;
  if (outermost && arrived != 0) end_here();
}

SignalsWait::~SignalsWait() {
  if (waits.fetch_sub(1) == 1 && arrived != 0) end_here();
}

void remember_temporary(const char* file) noexcept {
  for (std::atomic<const char*>& temporary : temporaries) {
    const char* none = nullptr;
    if (temporary.compare_exchange_strong(none, file)) return;
  }
}

void forget_temporary(const char* file) noexcept {
  for (std::atomic<const char*>& temporary : temporaries) {
    const char* expected = file;
    if (temporary.compare_exchange_strong(expected, nullptr)) return;
  }
}

}  // namespace tessera::io
