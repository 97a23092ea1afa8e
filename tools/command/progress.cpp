#include "tools/command/progress.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace tessera::tools {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPatience{1000};
constexpr milliseconds kPeriod{200};

}  // namespace

bool Progress::visible() noexcept { return ::isatty(STDERR_FILENO) == 1; }

Progress::Progress(std::string what)
    : what_(std::move(what)), start_(std::chrono::steady_clock::now()) {
  if (visible()) thread_ = std::thread([this] { show(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Progress::show() {
  bool shown = false;
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, shown ? kPeriod : kPatience, [this] { return end_; })) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const double done = done_.load(std::memory_order_relaxed);
    std::string line = fmt::format("\r{}: {:.0f} s", what_, seconds);
    if (done > 0)
      line +=
          fmt::format(", {:.0f} %, about {:.0f} s left", 100 * done, seconds * (1 - done) / done);
    std::fputs((line + "\x1b[K").c_str(), stderr);
    std::fflush(stderr);
    shown = true;
  }
  if (shown) std::fputs("\r\x1b[K", stderr);
}

}  // namespace tessera::tools
