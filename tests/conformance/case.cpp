#include "tests/conformance/case.hpp"

#include <algorithm>
#include <numeric>

#include "tests/conformance/random.hpp"

namespace tessera::testing {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

std::int64_t longest(const std::vector<std::int64_t>& lengths) {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

std::string edge(const std::optional<std::int64_t>& edge) {
  return edge ? std::to_string(*edge) : "all";
}

std::string broadcast(unsigned axes) {
  std::string text;
  if ((axes & kOverBatch) != 0) text += 'b';
  if ((axes & kOverHead) != 0) text += 'h';
  if ((axes & kOverRow) != 0) text += 'r';
  if ((axes & kOverColumn) != 0) text += 'c';
  return text.empty() ? text : ((axes & kByStride) != 0 ? "_stride0" : "_extent1") + text;
}

std::string modifiers(const Case& c) {
  std::string text;
  if (c.softcap > 0) text += "_softcap";
  if (c.alibi == Alibi::per_head) text += "_alibi";
  if (c.alibi == Alibi::per_batch) text += "_alibi_batch";
  if (c.alibi != Alibi::none && c.negative_slopes) text += "_negative";
  if (c.bias == Bias::fp32) text += "_bias32" + broadcast(c.bias_broadcast);
  if (c.bias == Bias::input) text += "_bias" + broadcast(c.bias_broadcast);
  if (c.boolean_mask) text += "_boolean" + broadcast(c.boolean_broadcast);
  if (c.sinks) text += "_sinks";
  if (c.dropout > 0) text += "_dropout";
  if (c.accumulate == Accumulate::fp16) text += "_acc16";
  return text;
}

std::string ranges(const Case& c) {
  std::string text;
  if (!c.key_begin.empty()) text += "_begin";
  if (!c.key_end.empty()) text += "_end";
  if (!c.query_end.empty()) text += "_qend";
  if (c.packed) text += "_packed";
  return text;
}

std::string gradients(const Case& c) {
  if (c.operation != Operation::backward) return {};
  std::string text = c.keep == Keep::both ? "" : c.keep == Keep::lse ? "_keeplse" : "_keepnothing";
  if (c.dout_layout) text += "_dout" + to_string(*c.dout_layout);
  if (c.gradient_layout) text += "_to" + to_string(*c.gradient_layout);
  if (c.dlse) text += "_dlse";
  if (c.dbias && c.bias != Bias::none) text += "_dbias";
  if (c.dsink && c.sinks) text += "_dsink";
  return text;
}

std::string heads(const Case& c) {
  if (c.group() == 1) return {};
  return c.head_k == 1 ? "_mqa" + std::to_string(c.head_q) : "_gqa" + std::to_string(c.group());
}

}  // namespace

std::int64_t Case::total_q() const { return packed ? sum(lengths_q) : seq_q; }
std::int64_t Case::total_k() const { return packed ? sum(lengths_k) + slack_k : seq_k; }
std::int64_t Case::longest_q() const {
  return packed ? (states_maximum ? longest(lengths_q) : total_q()) : seq_q;
}
std::int64_t Case::longest_k() const {
  return packed ? (states_maximum ? longest(lengths_k) : total_k()) : seq_k;
}

std::int64_t Case::multiply_adds() const {
  std::int64_t scores = batch * seq_q * seq_k;
  if (packed) {
    scores =
        std::inner_product(lengths_q.begin(), lengths_q.end(), lengths_k.begin(), std::int64_t{0});
  }
  return scores * head_q * (dim + dim_v);
}

Case backward_of(const Case& forward) {
  Case c = forward;
  c.operation = Operation::backward;
  Random random(c.fill * 31 + static_cast<std::uint64_t>(c.dim + c.seq_q));
  constexpr Keep kKeeps[] = {Keep::both, Keep::both, Keep::lse, Keep::nothing};
  c.keep = random.pick(kKeeps);
  const auto layout = [&]() -> std::optional<Layout> {
    constexpr std::int64_t kLayouts = static_cast<std::int64_t>(Layout::repeated_seq) + 1;
    if (random.chance(0.5)) return std::nullopt;
    return static_cast<Layout>(random.below(kLayouts));
  };
  c.dout_layout = layout();
  c.gradient_layout = layout();
  c.dlse = random.chance(0.4);
  // Of a packed bias, most elements belong to no row or key: computing them takes the longest.
  constexpr std::int64_t kMostBias = 1'000'000;
  const std::int64_t batches = c.packed ? c.segments() : c.batch;
  c.dbias = random.chance(0.8) && batches * c.head_q * c.longest_q() * c.longest_k() <= kMostBias;
  c.dsink = random.chance(0.8);
  return c;
}

std::string to_string(Layout layout) {
  switch (layout) {
    case Layout::bhsd:
      return "bhsd";
    case Layout::bshd:
      return "bshd";
    case Layout::fused_qkv:
      return "fused";
    case Layout::transposed:
      return "transposed";
    case Layout::padded:
      return "padded";
    case Layout::unaligned:
      return "unaligned";
    case Layout::repeated_head:
      return "head0";
    case Layout::repeated_batch:
      return "batch0";
    case Layout::one_a_row:
      return "onearow";
    case Layout::one_number:
      return "onenumber";
    case Layout::repeated_seq:
      return "seq0";
  }
  return "unknown";
}

std::string to_string(const Mask& mask) {
  std::string text = "full";
  if (mask.right() == std::int64_t{0} && !mask.left()) {
    text = "causal";
  } else if (mask.bounded()) {
    text = "window_" + edge(mask.left()) + "_" + edge(mask.right());
  }
  if (mask.alignment()) text += *mask.alignment() == Alignment::TopLeft ? "_tl" : "_br";
  return text;
}

std::string name(const Case& c) {
  std::string text = c.operation == Operation::forward    ? "Forward/"
                     : c.operation == Operation::backward ? "Backward/"
                                                          : "Decode/";
  if (!c.label.empty()) text += c.label + "_";
  text += std::string(to_string(c.dtype)) + "_d" + std::to_string(c.dim);
  if (c.dim_v != c.dim) text += "x" + std::to_string(c.dim_v);
  text += "_" + to_string(c.mask) + ranges(c) + heads(c) + "_" + to_string(c.layout) +
          modifiers(c) + gradients(c);
  text += "_b" + std::to_string(c.packed ? c.segments() : c.batch) + "_h" +
          std::to_string(c.head_q) + "_q" + std::to_string(c.total_q()) + "_k" +
          std::to_string(c.total_k());
  return text;
}

}  // namespace tessera::testing
