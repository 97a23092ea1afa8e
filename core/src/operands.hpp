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

// What forward gave to backward: read by it, and computed again if absent.
struct Result {
  const char* name;
  Tensor Args::* tensor;
  std::optional<TensorSpec> Problem::* spec;
};
inline constexpr std::array<Result, 2> kResults{
    {{"out", &Args::out, &Problem::out}, {"lse", &Args::lse, &Problem::lse}}};

// Inputs of backward alone.
inline constexpr std::array<OptionalInput, 2> kGradientInputs{
    {{"dout", &Args::dout, &Problem::dout}, {"dlse", &Args::dlse, &Problem::dlse}}};

// Outputs of backward.
struct Gradient {
  const char* name;
  Tensor Args::* tensor;
  std::optional<TensorSpec> Problem::* spec;
  bool required;
};
inline constexpr std::array<Gradient, 5> kGradients{
    {{"dq", &Args::dq, &Problem::dq, true},
     {"dk", &Args::dk, &Problem::dk, true},
     {"dv", &Args::dv, &Problem::dv, true},
     {"dbias", &Args::dbias, &Problem::dbias, false},
     {"dsink", &Args::dsink, &Problem::dsink, false}}};

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

// Is there nothing to write? Then nothing is launched. (Forward without keys has something: rows
// are filled with 0 or the sink. Backward without rows has: keys get 0.)
constexpr bool has_no_output(const Problem& p) {
  const auto empty = [](const std::optional<TensorSpec>& spec) {
    if (!spec) return true;
    const Extents& e = spec->extent;
    return e.batch == 0 || e.head == 0 || e.seq == 0 || e.dim == 0;
  };
  if (p.operation == Operation::backward) {
    for (const Gradient& gradient : kGradients) {
      if (!empty(p.*gradient.spec)) return false;
    }
    return true;
  }
  const Extents& q = p.query.extent;
  return q.batch == 0 || q.head == 0 || q.seq == 0 || (p.packed && p.packed->segments == 0);
}

}  // namespace tessera::detail
