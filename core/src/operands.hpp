#pragma once
// The operands by name, so that each check is written once: [argument's name, its place in Args,
// its place in Problem].

#include <array>
#include <optional>

#include <tessera/args.hpp>
#include <tessera/problem.hpp>

namespace tessera::detail {

struct RequiredInput {
  const char* name;
  ConstTensor Args::* tensor;
  TensorSpec Problem::* spec;
};
inline constexpr std::array<RequiredInput, 3> kRequiredInputs{
    {{"query", &Args::query, &Problem::query},
     {"key", &Args::key, &Problem::key},
     {"value", &Args::value, &Problem::value}}};

struct OptionalInput {
  const char* name;
  ConstTensor Args::* tensor;
  std::optional<TensorSpec> Problem::* spec;
};
inline constexpr std::array<OptionalInput, 4> kOptionalInputs{
    {{"alibi_slopes", &Args::alibi_slopes, &Problem::alibi_slopes},
     {"bias", &Args::bias, &Problem::bias},
     {"boolean_mask", &Args::boolean_mask, &Problem::boolean_mask},
     {"sinks", &Args::sinks, &Problem::sinks}}};

struct RangeVector {
  const char* name;
  ConstVector Args::* vector;
  bool Problem::* given;
};
inline constexpr std::array<RangeVector, 3> kRangeVectors{
    {{"key_begin", &Args::key_begin, &Problem::key_begin},
     {"key_end", &Args::key_end, &Problem::key_end},
     {"query_end", &Args::query_end, &Problem::query_end}}};

// Sizes that follow from packing: a segment counts as a batch entry, the longest segment as the
// sequence.
struct Sizes {
  std::int64_t batch;
  std::int64_t seq_q;
  std::int64_t seq_k;
};
constexpr Sizes sizes_of(const Problem& p) {
  if (!p.packed) return {p.query.extent.batch, p.query.extent.seq, p.key.extent.seq};
  const auto longest = [](std::int64_t max, std::int64_t total) { return max != 0 ? max : total; };
  return {p.packed->segments, longest(p.options.max_seq_q, p.query.extent.seq),
          longest(p.options.max_seq_k, p.key.extent.seq)};
}

// Are there no rows to fill? Then nothing is launched. (Without keys there are: they are filled
// with 0 or the sink.)
constexpr bool has_no_rows(const Problem& p) {
  const Extents& q = p.query.extent;
  return q.batch == 0 || q.head == 0 || q.seq == 0 || (p.packed && p.packed->segments == 0);
}

}  // namespace tessera::detail
