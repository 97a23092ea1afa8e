#pragma once
/// Plain threads for work that needs no pool.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::reference {

/// Runs `body` on `threads` threads at once, this one among them, and waits for all of them. Throws
/// what one of them threw, or std::system_error if a thread could not be started.
template <class Body>
void on_threads(std::int64_t threads, const Body& body) {
  std::exception_ptr error;
  std::mutex mutex;
  const auto guarded = [&] {
    try {
      body();
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;  // joined however this block is left
    helpers.reserve(static_cast<std::size_t>(threads));
    for (std::int64_t i = 1; i < threads; ++i) helpers.emplace_back(guarded);
    guarded();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace tessera::reference
