#include "bench/bandwidth.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace tessera::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Line = std::uint64_t __attribute__((vector_size(64)));

// Eight places at once, four lines of each in turn, prefetched: one stream a core reaches two
// thirds of what eight do, because the hardware looks ahead by so many lines a stream. The value
// only keeps the compiler from dropping the reads.
[[gnu::noinline]] std::uint64_t read_all(std::span<const std::byte> bytes) noexcept {
  constexpr std::size_t kStreams = 8, kLines = 4, kAhead = 1024;
  constexpr std::size_t kStep = kLines * sizeof(Line);
  const std::size_t part = bytes.size() / kStreams / kStep * kStep;
  Line sums[kLines] = {};
  const auto read_step = [&](const std::byte* from) {
    for (std::size_t i = 0; i < kLines; ++i) {
      Line line;
      std::memcpy(&line, from + i * sizeof line, sizeof line);
      sums[i] ^= line;
    }
  };
  for (std::size_t at = 0; at < part; at += kStep) {
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      const std::byte* const from = bytes.data() + stream * part + at;
      for (std::size_t i = 0; i < kLines; ++i)
        __builtin_prefetch(from + kAhead + i * sizeof(Line), 0, 2);
      read_step(from);
    }
  }
  for (std::size_t at = kStreams * part; at + kStep <= bytes.size(); at += kStep)
    read_step(bytes.data() + at);
  for (std::size_t i = 1; i < kLines; ++i) sums[0] ^= sums[i];
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sizeof(Line) / sizeof sum; ++i) sum ^= sums[0][i];
  return sum;
}

}  // namespace

double measure_read_bandwidth(const std::vector<std::span<const std::byte>>& buffers, int threads) {
  std::size_t total = 0;
  for (const auto& buffer : buffers) total += buffer.size();
  if (total == 0) throw std::runtime_error("no bytes to read");

  const auto count = static_cast<std::size_t>(threads);
  Clock::time_point begin, end;
  std::barrier start(threads, [&]() noexcept { begin = Clock::now(); });
  std::barrier finish(threads, [&]() noexcept { end = Clock::now(); });
  const auto work = [&](std::size_t thread) {
    start.arrive_and_wait();
    std::uint64_t sum = 0;
    for (const auto& buffer : buffers) {
      const std::size_t first = buffer.size() * thread / count;
      const std::size_t last = buffer.size() * (thread + 1) / count;
      sum ^= read_all(buffer.subspan(first, last - first));
    }
    volatile std::uint64_t sink = sum;
    static_cast<void>(sink);
    finish.arrive_and_wait();
  };
  {
    std::vector<std::jthread> workers;
    workers.reserve(count);
    for (std::size_t thread = 1; thread < count; ++thread) workers.emplace_back(work, thread);
    work(0);
  }
  return static_cast<double>(total) / std::chrono::duration<double>(end - begin).count();
}

std::size_t last_level_cache() noexcept try {
  std::size_t largest = 0;
  std::error_code error;
  const std::filesystem::path folder = "/sys/devices/system/cpu/cpu0/cache";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::ifstream file(entry.path() / "size");  // "1280K"
    std::size_t size = 0;
    char unit = 0;
    if (!(file >> size >> unit)) continue;
    if (unit == 'K') size <<= 10;
    if (unit == 'M') size <<= 20;
    largest = std::max(largest, size);
  }
  return largest;
} catch (const std::exception&) {
  return 0;
}

}  // namespace tessera::bench
