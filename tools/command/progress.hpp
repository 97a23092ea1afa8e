#pragma once
/// A line on a terminal that says how far long work is.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tessera::tools {

/// Shown on stderr if that is a terminal and the work takes more than a second; rubbed out at the
/// end.
class Progress {
 public:
  explicit Progress(std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// Whether anybody would see it: work may be cut into parts only where that pays.
  static bool visible() noexcept;

  /// `done` of 1. Without a call, only the time is shown.
  void set(double done) noexcept { done_.store(done, std::memory_order_relaxed); }

 private:
  void show();

  std::string what_;
  std::chrono::steady_clock::time_point start_;
  std::atomic<double> done_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace tessera::tools
