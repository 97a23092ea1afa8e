#pragma once
/// Queries that choose one key.

#include <cstdint>

#include "tests/conformance/memory.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {

/// Keys spell their index in binary, a ±1 a bit, and queries the index of the key that they choose.
/// With a constant coordinate the chosen key scores exactly 0 and every other −256 or less: its
/// weight is exactly 1, theirs exactly 0.
class Chooser {
 public:
  Chooser(std::int64_t dim, std::int64_t seq_k) {
    while ((std::int64_t{1} << bits_) < seq_k) ++bits_;
    possible_ = bits_ + 1 <= dim;
  }

  bool possible() const { return possible_; }

  // Σ|q||k| of every pair.
  double magnitude() const { return 2 * kStep * static_cast<double>(bits_); }

  void write_keys(const Slot& key) const {
    set_each(key, [&](auto, auto, auto s, auto d) {
      return d < bits_ ? sign(s, d) : d == bits_ ? 1.0 : 0.0;
    });
  }

  void choose(const Slot& query, std::int64_t b, std::int64_t h, std::int64_t row,
              std::int64_t target) const {
    for (std::int64_t d = 0; d < query.extent.dim; ++d) {
      const double constant = -kStep * static_cast<double>(bits_);
      query.set(b, h, row, d, d < bits_ ? kStep * sign(target, d) : d == bits_ ? constant : 0.0);
    }
  }

 private:
  static constexpr double kStep = 128;

  static double sign(std::int64_t index, std::int64_t bit) {
    return ((index >> bit) & 1) != 0 ? 1.0 : -1.0;
  }

  std::int64_t bits_ = 0;
  bool possible_ = false;
};

}  // namespace tessera::testing
