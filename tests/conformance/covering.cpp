#include "tests/conformance/covering.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/conformance/random.hpp"

namespace tessera::testing {
namespace {

constexpr std::uint8_t kUnset = 0xff;

const std::array<std::vector<std::string_view>, kFactors> kLevels{{
    {"none", "causal", "sliding", "both_sides", "open_right", "ranges", "ranges_causal",
     "ranges_window", "packed", "packed_causal", "packed_window"},
    {"unset", "top_left", "bottom_right"},
    {"fp32", "fp16", "bf16"},
    {"8", "16", "40", "64", "72", "80", "96", "104", "128", "192", "192/128", "256", "512"},
    {"1", "4", "5", "7", "mqa"},
    {"bhsd", "bshd", "fused", "transposed", "padded", "unaligned", "stride0"},
    {"none", "softcap", "alibi", "bias_fp32", "bias_input", "boolean", "sinks", "dropout",
     "softcap_alibi", "softcap_bias", "bias_boolean_sinks", "alibi_sinks_dropout", "everything"},
}};

bool bounded(std::uint8_t mask) {
  const std::string_view level = kLevels[0][mask];
  return level != "none" && level != "ranges" && level != "packed";
}

using Triple = std::array<std::uint8_t, 3>;

// Which triples are still to be covered: for each three factors a bit a level combination.
class Triples {
 public:
  Triples() {
    for (std::uint8_t a = 0; a < kFactors; ++a) {
      for (std::uint8_t b = a + 1; b < kFactors; ++b) {
        for (std::uint8_t c = b + 1; c < kFactors; ++c) {
          factors_.push_back({a, b, c});
          bits_.emplace_back(kLevels[a].size() * kLevels[b].size() * kLevels[c].size(), false);
        }
      }
    }
  }

  const std::vector<Triple>& factors() const { return factors_; }
  std::vector<bool>& bits(std::size_t set) { return bits_[set]; }

  std::size_t index(std::size_t set, const Row& row) const {
    const auto& [a, b, c] = factors_[set];
    return (row[a] * kLevels[b].size() + row[b]) * kLevels[c].size() + row[c];
  }

  Row row_of(std::size_t set, std::size_t index) const {
    const auto& [a, b, c] = factors_[set];
    Row row;
    row.fill(kUnset);
    row[c] = static_cast<std::uint8_t>(index % kLevels[c].size());
    row[b] = static_cast<std::uint8_t>(index / kLevels[c].size() % kLevels[b].size());
    row[a] = static_cast<std::uint8_t>(index / kLevels[c].size() / kLevels[b].size());
    return row;
  }

 private:
  std::vector<Triple> factors_;
  std::vector<std::vector<bool>> bits_;
};

// Every row there could be, legal or not.
template <class Visit>
void each_row(Visit visit) {
  Row row{};
  while (true) {
    visit(row);
    std::size_t factor = 0;
    while (factor < kFactors && ++row[factor] == kLevels[factor].size()) row[factor++] = 0;
    if (factor == kFactors) return;
  }
}

// Bits of the triples that occur in some legal row.
Triples legal_triples() {
  Triples legal;
  each_row([&](const Row& row) {
    if (!illegal(row).empty()) return;
    for (std::size_t set = 0; set < legal.factors().size(); ++set) {
      legal.bits(set)[legal.index(set, row)] = true;
    }
  });
  return legal;
}

bool complete(const Row& row, const Triple& factors) {
  return std::all_of(factors.begin(), factors.end(),
                     [&](std::uint8_t factor) { return row[factor] != kUnset; });
}

// Open triples that a partial row covers and that involve `factor`.
std::int64_t gain(Triples& open, const Row& row, std::uint8_t factor) {
  std::int64_t count = 0;
  for (std::size_t set = 0; set < open.factors().size(); ++set) {
    const Triple& factors = open.factors()[set];
    if (std::find(factors.begin(), factors.end(), factor) == factors.end()) continue;
    if (complete(row, factors) && open.bits(set)[open.index(set, row)]) ++count;
  }
  return count;
}

// Sets the unset factors of `row` one by one, each to the legal level that covers most; ties are
// broken by `random`.
void extend(Triples& open, Row& row, Random& random) {
  std::vector<std::uint8_t> unset;
  for (std::uint8_t factor = 0; factor < kFactors; ++factor) {
    if (row[factor] == kUnset) unset.push_back(factor);
  }
  for (std::size_t i = unset.size(); i > 1; --i) {
    std::swap(unset[i - 1],
              unset[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
  for (const std::uint8_t factor : unset) {
    const std::size_t count = kLevels[factor].size();
    const auto start = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(count)));
    std::int64_t best_gain = -1;
    std::uint8_t best = 0;
    for (std::size_t i = 0; i < count; ++i) {
      row[factor] = static_cast<std::uint8_t>((start + i) % count);
      if (!illegal(row).empty()) continue;
      const std::int64_t level_gain = gain(open, row, factor);
      if (level_gain > best_gain) {
        best_gain = level_gain;
        best = row[factor];
      }
    }
    row[factor] = best;
  }
}

std::int64_t cover(Triples& open, const Row& row, bool mark) {
  std::int64_t count = 0;
  for (std::size_t set = 0; set < open.factors().size(); ++set) {
    const std::size_t index = open.index(set, row);
    if (!open.bits(set)[index]) continue;
    ++count;
    if (mark) open.bits(set)[index] = false;
  }
  return count;
}

std::string describe(const Triple& factors, const Row& row) {
  std::string text;
  for (const std::uint8_t factor : factors) {
    if (!text.empty()) text += ", ";
    text += std::string(to_string(static_cast<Factor>(factor))) + " " +
            std::string(kLevels[factor][row[factor]]);
  }
  return text;
}

}  // namespace

std::string_view to_string(Factor factor) {
  constexpr std::array<std::string_view, kFactors> kNames{
      "mask", "alignment", "dtype", "head_dim", "group", "layout", "modifier"};
  return kNames[static_cast<std::size_t>(factor)];
}

const std::vector<std::string_view>& levels(Factor factor) {
  return kLevels[static_cast<std::size_t>(factor)];
}

std::string_view illegal(const Row& row) {
  const std::uint8_t mask = row[static_cast<std::size_t>(Factor::mask)];
  const std::uint8_t alignment = row[static_cast<std::size_t>(Factor::alignment)];
  if (mask != kUnset && alignment == 0 && bounded(mask)) {
    return "a bounded mask has an alignment, always";
  }
  return {};
}

std::vector<Row> covering_rows() {
  Triples open = legal_triples();
  std::vector<std::size_t> order(
      open.factors().size());  // largest sets first: they decide the number of rows
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return open.bits(a).size() > open.bits(b).size();
  });
  constexpr int kAttempts = 8;
  std::vector<Row> rows;
  Random random(20240601);
  for (const std::size_t set : order) {
    for (std::size_t index = 0; index < open.bits(set).size(); ++index) {
      if (!open.bits(set)[index]) continue;
      Row best{};
      std::int64_t best_count = -1;
      for (int attempt = 0; attempt < kAttempts; ++attempt) {
        Row row = open.row_of(set, index);
        extend(open, row, random);
        const std::int64_t count = cover(open, row, false);
        if (count > best_count) {
          best_count = count;
          best = row;
        }
      }
      cover(open, best, true);
      rows.push_back(best);
    }
  }
  return rows;
}

Coverage measure_coverage(const std::vector<Row>& rows) {
  Triples legal = legal_triples();
  Triples seen;
  for (const Row& row : rows) {
    for (std::size_t set = 0; set < seen.factors().size(); ++set) {
      seen.bits(set)[seen.index(set, row)] = true;
    }
  }
  Coverage coverage;
  std::map<std::string, std::int64_t> reasons;
  for (std::size_t set = 0; set < legal.factors().size(); ++set) {
    for (std::size_t index = 0; index < legal.bits(set).size(); ++index) {
      const Row row = legal.row_of(set, index);
      const std::string text = describe(legal.factors()[set], row);
      ++coverage.triples;
      if (!legal.bits(set)[index]) {
        ++coverage.excluded;
        const std::string_view reason = illegal(row);
        ++reasons[reason.empty() ? "no reason for " + text : std::string(reason)];
      } else if (seen.bits(set)[index]) {
        ++coverage.covered;
      } else {
        coverage.missing.push_back(text);
      }
    }
  }
  for (const auto& [reason, count] : reasons) {
    coverage.reasons.push_back(std::to_string(count) + " triples: " + reason);
  }
  return coverage;
}

}  // namespace tessera::testing
