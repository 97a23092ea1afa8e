// From levels to cases and back.

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/conformance/covering.hpp"
#include "tests/conformance/random.hpp"

namespace tessera::testing {
namespace {

using Level = std::string_view;

Level level(const Row& row, Factor factor) {
  const auto index = static_cast<std::size_t>(factor);
  return levels(factor)[row[index]];
}

std::uint8_t index_of(Factor factor, Level level) {
  const auto& all = levels(factor);
  return static_cast<std::uint8_t>(std::find(all.begin(), all.end(), level) - all.begin());
}

bool has(Level text, Level part) { return text.find(part) != Level::npos; }

// Multiply-adds of most cases and of one in eight, everything visible: more for long heads, lest
// they get no length.
std::int64_t cost_limit(const Case& c, std::size_t index) {
  const std::int64_t share = c.operation == Operation::forward    ? 1
                             : c.operation == Operation::backward ? 8
                                                                  : 4;
  const std::int64_t usual = 1'000'000 / share * (1 + (c.dim + c.dim_v) / 128);
  return index % 8 == 7 ? 5 * usual : usual;
}

// Lengths at which tiles, vectors and 8-bit counters begin and end, and what lies between.
std::int64_t draw_length(Random& random) {
  constexpr std::int64_t kLengths[] = {1,  2,  3,  7,   8,   15,  16,  17,  31,  33,  48,  63,  64,
                                       65, 96, 97, 100, 127, 128, 129, 191, 255, 257, 704, 1025};
  return random.pick(kLengths);
}

std::int64_t draw_rows(const Case& c, Random& random) {
  constexpr std::int64_t kFew[] = {1, 1, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17};
  return c.operation == Operation::decode ? random.pick(kFew) : draw_length(random);
}

// Decode splits keys by their number: up to some parts.
std::int64_t draw_keys(const Case& c, Random& random) {
  constexpr std::int64_t kMany[] = {1024, 2047, 2048, 2049, 3000, 4096, 4099, 8193};
  if (c.operation == Operation::decode) {
    return random.chance(0.4) ? random.pick(kMany) : draw_length(random);
  }
  return random.chance(0.3) ? c.seq_q : draw_length(random);
}

void set_heads(Case& c, Level group, Random& random) {
  if (group == "mqa") {
    c.head_k = 1;
    constexpr std::int64_t kHeads[] = {2, 3, 6, 8};
    c.head_q = random.pick(kHeads);
    return;
  }
  const std::int64_t ratio = group[0] - '0';
  c.head_k = ratio == 1 ? random.between(1, 3) : 2;  // one key head would be multi-query
  c.head_q = c.head_k * ratio;
}

void set_head_dim(Case& c, Level head_dim, Random& random) {
  c.dim = std::stoll(std::string(head_dim));
  c.dim_v = c.dim;
  if (has(head_dim, "/")) {
    c.dim_v = 128;
  } else if (c.dim <= 104 && random.chance(0.15)) {
    c.dim_v = 8 * random.between(1, 16);  // value's own
  }
}

void set_layout(Case& c, Level layout, Random& random) {
  constexpr Layout kRepeats[] = {Layout::repeated_head, Layout::repeated_batch,
                                 Layout::repeated_seq};
  constexpr std::array<Layout, 6> kLayouts{Layout::bhsd,       Layout::bshd,   Layout::fused_qkv,
                                           Layout::transposed, Layout::padded, Layout::unaligned};
  c.layout =
      layout == "stride0" ? random.pick(kRepeats) : kLayouts[index_of(Factor::layout, layout)];
}

void set_mask(Case& c, Level mask, Level alignment, Random& random) {
  const std::int64_t longest = std::max<std::int64_t>(c.seq_k, 8);
  const std::int64_t left = random.between(0, longest / 2);
  const std::int64_t right = random.between(1, longest / 3);  // 0 is another level
  std::optional<std::int64_t> left_edge, right_edge;
  if (has(mask, "causal")) right_edge = 0;
  if (mask == "sliding") left_edge = left, right_edge = 0;
  if (mask == "both_sides" || has(mask, "_window")) left_edge = left, right_edge = right;
  if (mask == "open_right") left_edge = left;
  if (alignment != "unset") {
    c.mask = Mask::window(left_edge, right_edge,
                          alignment == "top_left" ? Alignment::TopLeft : Alignment::BottomRight);
  }
}

void set_ranges(Case& c, Random& random) {
  // At least one of the two key vectors, and query_end half of the time.
  const std::int64_t kinds = random.below(3);
  for (std::int64_t b = 0; b < c.batch; ++b) {
    const std::int64_t begin = random.below(c.seq_k + 1) / 2;
    const std::int64_t end = random.chance(0.1) ? begin : random.between(begin, c.seq_k);
    if (kinds != 0) c.key_begin.push_back(static_cast<std::int32_t>(begin));
    if (kinds != 1) c.key_end.push_back(static_cast<std::int32_t>(end));
  }
  if (random.chance(0.5)) {
    for (std::int64_t b = 0; b < c.batch; ++b) {
      c.query_end.push_back(static_cast<std::int32_t>(random.between(c.seq_q / 2, c.seq_q)));
    }
  }
}

void set_segments(Case& c, std::int64_t cost, Random& random) {
  c.packed = true;
  const std::int64_t segments = random.between(2, 6);
  for (std::int64_t i = 0; i < segments; ++i) {
    std::int64_t q = random.chance(0.15) ? 0 : draw_rows(c, random);
    std::int64_t k = random.chance(0.15) ? 0 : random.chance(0.4) ? q : draw_length(random);
    if (c.operation == Operation::decode && k == q) k = draw_length(random);
    while (q * k * segments * c.head_q * (c.dim + c.dim_v) > cost) {
      (q > k ? q : k) = (std::max(q, k) + 1) / 2;
      if (q <= 1 && k <= 1) break;
    }
    c.lengths_q.push_back(q);
    c.lengths_k.push_back(k);
  }
  c.lengths_q[0] = std::max<std::int64_t>(c.lengths_q[0], 1);  // something to see
  c.lengths_k[0] = std::max<std::int64_t>(c.lengths_k[0], 1);
  c.wide_prefix_sums = random.chance(0.3);
  c.states_maximum = random.chance(0.8);
  if (random.chance(0.25)) c.slack_k = random.between(1, 70);
}

void set_lengths(Case& c, std::int64_t cost, Random& random) {
  // Of the lengths that are not too long, tiny ones only sometimes.
  const std::int64_t least = random.chance(0.2) ? 0 : cost / 40;
  c.batch = random.between(1, 3);
  for (int attempt = 0; true; ++attempt) {
    c.seq_q = draw_rows(c, random);
    c.seq_k = draw_keys(c, random);
    if (c.multiply_adds() > cost) c.batch = 1;
    if (c.multiply_adds() <= cost && (c.multiply_adds() >= least || attempt > 30)) return;
  }
}

unsigned draw_broadcast(Random& random) {
  // Full half of the time; key padding [batch, 1, 1, seq_k] often, for that is what models give.
  if (random.chance(0.5)) return kNoBroadcast;
  const unsigned axes =
      random.chance(0.3) ? kOverHead | kOverRow : static_cast<unsigned>(random.between(1, 15));
  return axes | (random.chance(0.5) ? kByStride : 0u);
}

void set_modifier(Case& c, Level modifier, Random& random) {
  const bool all = modifier == "everything";
  if (all || has(modifier, "softcap")) {
    constexpr float kCaps[] = {0.5f, 2.0f, 15.0f, 50.0f};
    c.softcap = random.pick(kCaps);
  }
  if (all || has(modifier, "alibi")) {
    c.alibi = random.chance(0.3) ? Alibi::per_batch : Alibi::per_head;
    c.negative_slopes = random.chance(0.2);
  }
  if (all || has(modifier, "bias")) {
    const bool wide = modifier != "bias_input" && (modifier == "bias_fp32" || random.chance(0.5));
    c.bias = wide ? Bias::fp32 : Bias::input;
    c.bias_broadcast = draw_broadcast(random);
  }
  if (all || has(modifier, "boolean")) {
    c.boolean_mask = true;
    c.boolean_broadcast = draw_broadcast(random);
    constexpr double kShares[] = {0.1, 0.75, 0.95};
    c.visible = random.pick(kShares);
  }
  c.sinks = all || has(modifier, "sinks");
  if (all || has(modifier, "dropout")) {
    constexpr double kProbabilities[] = {0.1, 0.5, 0.9};
    c.dropout = random.pick(kProbabilities);
    c.seed = random.next();
    c.offset = random.next();
    c.seed_on_device = random.chance(0.3);
  }
}

Level mask_level(const Case& c) {
  const bool causal = !c.mask.left() && c.mask.right() == std::int64_t{0};
  if (c.packed) return causal ? "packed_causal" : c.mask.bounded() ? "packed_window" : "packed";
  if (!c.key_begin.empty() || !c.key_end.empty() || !c.query_end.empty()) {
    return causal ? "ranges_causal" : c.mask.bounded() ? "ranges_window" : "ranges";
  }
  if (causal) return "causal";
  if (!c.mask.bounded()) return "none";
  if (!c.mask.right()) return "open_right";
  return *c.mask.right() == 0 ? "sliding" : "both_sides";
}

Level modifier_level(const Case& c) {
  const bool cap = c.softcap > 0;
  const bool alibi = c.alibi != Alibi::none;
  const bool bias = c.bias != Bias::none;
  const bool drop = c.dropout > 0;
  if (cap && alibi && bias && c.boolean_mask && c.sinks && drop) return "everything";
  if (alibi && c.sinks && drop) return "alibi_sinks_dropout";
  if (bias && c.boolean_mask && c.sinks) return "bias_boolean_sinks";
  if (cap) return bias ? "softcap_bias" : alibi ? "softcap_alibi" : "softcap";
  if (alibi) return "alibi";
  if (bias) return c.bias == Bias::fp32 ? "bias_fp32" : "bias_input";
  if (c.boolean_mask) return "boolean";
  if (c.sinks) return "sinks";
  return drop ? "dropout" : "none";
}

Level layout_level(const Case& c) {
  if (c.layout >= Layout::repeated_head) return "stride0";
  return levels(Factor::layout)[static_cast<std::size_t>(c.layout)];
}

}  // namespace

Case covering_case(const Row& forward_row, std::size_t index, Operation operation) {
  Random random(0x7e55e7a0u + index * 7919 + static_cast<std::uint64_t>(operation) * 104729);
  Case c;
  c.operation = operation;
  Row row = forward_row;
  if (operation == Operation::backward && level(row, Factor::head_dim) == "512") {
    const std::size_t shorter = levels(Factor::head_dim).size() - 1;
    row[static_cast<std::size_t>(Factor::head_dim)] = static_cast<std::uint8_t>(index % shorter);
  }
  c.dtype = std::array{DType::fp32, DType::fp16, DType::bf16}[row[2]];
  set_heads(c, level(row, Factor::group), random);
  set_head_dim(c, level(row, Factor::head_dim), random);
  set_layout(c, level(row, Factor::layout), random);
  const std::int64_t cost = cost_limit(c, index);
  const Level mask = level(row, Factor::mask);
  if (has(mask, "packed")) {
    set_segments(c, cost, random);
    c.seq_k = c.longest_k();
  } else {
    set_lengths(c, cost, random);
  }
  set_mask(c, mask, level(row, Factor::alignment), random);
  if (has(mask, "ranges")) set_ranges(c, random);
  set_modifier(c, level(row, Factor::modifier), random);
  if (c.packed && (c.bias != Bias::none || c.boolean_mask)) c.states_maximum = true;
  if (random.chance(0.15)) {
    const double usual = 1 / std::sqrt(static_cast<double>(c.dim));
    c.scale = static_cast<float>(2 * usual * (random.uniform() - 0.25));
  }
  constexpr Distribution kDistributions[] = {Distribution::gaussian, Distribution::gaussian,
                                             Distribution::skewed, Distribution::large};
  c.distribution = random.pick(kDistributions);
  if (c.dtype == DType::fp32 && c.distribution == Distribution::large) {
    c.distribution = Distribution::gaussian;
  }
  c.lse = !random.chance(0.1);
  c.exact_end = random.chance(0.5);
  c.fill = random.next();
  if (operation == Operation::backward) return backward_of(c);
  return c;
}

Row classify(const Case& c) {
  std::string head_dim = std::to_string(c.dim);
  if (c.dim == 192 && c.dim_v == 128) head_dim += "/128";
  const std::string group = c.head_k == 1 && c.head_q > 1 ? "mqa" : std::to_string(c.group());
  const Level alignment = !c.mask.alignment()                         ? "unset"
                          : *c.mask.alignment() == Alignment::TopLeft ? "top_left"
                                                                      : "bottom_right";
  return {index_of(Factor::mask, mask_level(c)),
          index_of(Factor::alignment, alignment),
          index_of(Factor::dtype, to_string(c.dtype)),
          index_of(Factor::head_dim, head_dim),
          index_of(Factor::group, group),
          index_of(Factor::layout, layout_level(c)),
          index_of(Factor::modifier, modifier_level(c))};
}

}  // namespace tessera::testing
