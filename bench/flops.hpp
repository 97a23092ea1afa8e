#pragma once
/// How many floating-point operations attention takes, as every report of ours counts them.

#include <algorithm>
#include <cstdint>

namespace tessera::bench {

/// Mean number of keys that a row sees, of as many rows as keys, where a row sees itself and what
/// is before it, `window` keys at most.
constexpr double mean_causal_keys(std::int64_t seq, std::int64_t window) noexcept {
  const auto rows = static_cast<double>(seq);
  const auto edge = static_cast<double>(std::min(seq, window));  // rows that see 1, 2, … keys
  return (edge * (edge + 1) / 2 + (rows - edge) * edge) / rows;
}

/// 2·rows·mean_keys·(dim + dim_v), rows being batch·head_q·seq_q.
constexpr double forward_flops(double rows, double mean_keys, std::int64_t dim,
                               std::int64_t dim_v) noexcept {
  return 2 * rows * mean_keys * static_cast<double>(dim + dim_v);
}

}  // namespace tessera::bench
