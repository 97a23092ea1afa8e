#pragma once
/// A call cut into calls on some of its sequences and heads, for work that reports its progress.

#include <cstdint>
#include <vector>

#include <tessera/args.hpp>
#include <tessera/options.hpp>

namespace tessera::tools {

/// Entries [batch, batch + batches) and key heads [head_k, head_k + heads_k), with the query heads
/// that read these.
struct Slice {
  std::int64_t batch = 0;
  std::int64_t batches = 0;
  std::int64_t head_k = 0;
  std::int64_t heads_k = 0;
};

/// Disjoint slices that cover the call, about `parts` of them. One if the call draws random
/// numbers, which depend on where a head stands.
std::vector<Slice> slices_of(const Args& args, const Options& options, std::int64_t parts);

/// The arguments restricted to a slice: the same pointers, moved.
Args restrict_to(const Args& args, const Slice& slice);

/// 2·rows·keys·(dim + dim_v) over all heads, as if every key were visible.
double work_of(const Args& args) noexcept;

}  // namespace tessera::tools
