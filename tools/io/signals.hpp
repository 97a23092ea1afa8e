#pragma once
/// What a signal that ends the process leaves on the disk: nothing half written.

namespace tessera::io {

/// For a program, once, before its first thread: from now on SIGHUP, SIGINT, SIGQUIT, SIGTERM and
/// SIGXCPU remove the temporaries of AtomicFile before they end the process as they would have
/// ended it, and a file that grows beyond the limit of the process (SIGXFSZ) is an error of the
/// write. Signals that are ignored stay ignored.
void handle_signals();

/// While one lives, signals that end the process wait: renamings that belong together all happen
/// or none does.
class SignalsWait {
 public:
  SignalsWait() noexcept;
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  ~SignalsWait();
};

/// `file` is removed if a signal ends the process, until forgotten. The text must stay where it is.
/// More than a few at a time are not kept. Callers make signals wait.
void remember_temporary(const char* file) noexcept;
void forget_temporary(const char* file) noexcept;

}  // namespace tessera::io
