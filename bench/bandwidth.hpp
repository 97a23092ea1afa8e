#pragma once
/// The read bandwidth of the memory: what all threads reach together when they read and do nothing
/// else.

#include <cstddef>
#include <span>
#include <vector>

namespace tessera::bench {

/// Bytes a second of `threads` threads that read all of `buffers` once, each thread its share of
/// every buffer. Meant for buffers that no cache holds. Throws std::runtime_error if there is
/// nothing to read.
double measure_read_bandwidth(const std::vector<std::span<const std::byte>>& buffers, int threads);

/// Bytes of the last-level cache; 0 where the system does not say.
std::size_t last_level_cache() noexcept;

}  // namespace tessera::bench
