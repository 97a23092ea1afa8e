#pragma once
/// Attention as a network trains with it: forward through layers, then backward through them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/tessera.hpp>

#include "bench/workload.hpp"

namespace tessera::bench {

/// What lies between forward and backward beyond every layer's q, k and v.
enum class Kept : std::uint8_t { Both, Lse, Nothing };  // Both: out and lse

inline constexpr int kLayers = 12;

/// kLayers calls of one shape, each with data of its own, planned.
class Stack {
 public:
  Stack(const Case& c, Kept kept);

  void run();  ///< forward and backward, from start to end
  std::size_t kept_bytes() const;

 private:
  const Options& options() const { return layers_.front().options(); }
  Args with_workspace(Args args);
  Args forward_args(std::size_t i);
  Args backward_args(std::size_t i);

  Kept kept_;
  std::size_t out_bytes_ = 0, lse_bytes_ = 0;
  std::vector<Workload> layers_;
  std::vector<Buffer> outs_, lses_;
  Buffer passing_, workspace_;
  std::optional<Plan> forward_, backward_;
};

}  // namespace tessera::bench
