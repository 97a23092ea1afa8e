#pragma once
/// Complete three-way covering: every legal combination of levels of any three factors occurs in
/// some case.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/case.hpp"

namespace tessera::testing {

enum class Factor : std::uint8_t { mask, alignment, dtype, head_dim, group, layout, modifier };
inline constexpr std::size_t kFactors = 7;

std::string_view to_string(Factor factor);
/// Names of a factor's levels.
const std::vector<std::string_view>& levels(Factor factor);

/// A level of every factor.
using Row = std::array<std::uint8_t, kFactors>;

/// Why there is no case with these levels; empty if there is.
std::string_view illegal(const Row& row);

/// Rows that cover every legal triple: greedy, the same on every machine.
std::vector<Row> covering_rows();

/// The case of row `index`: lengths and whatever else is free are drawn from the index.
///
/// Backward's cases are an eighth of the work, for reference, kernels and judgement take several
/// times as long; each row has one: all triples are covered for it, too, but those of head
/// dimension 512, which it refuses; such rows take another. Decode's have few rows and more keys.
Case covering_case(const Row& row, std::size_t index, Operation operation = Operation::forward);

/// The levels that a case has, read from the case itself: an independent check of what the
/// generator made.
Row classify(const Case& c);

/// Brute force over all rows and triples.
struct Coverage {
  std::int64_t triples = 0;            ///< level combinations of any three factors
  std::int64_t covered = 0;            ///< occur in some row
  std::int64_t excluded = 0;           ///< occur in no legal row
  std::vector<std::string> missing{};  ///< legal, yet in no row: must be empty
  std::vector<std::string>
      reasons{};  ///< for the excluded ones: "78 triples: a bounded mask needs …"
};
Coverage measure_coverage(const std::vector<Row>& rows);

}  // namespace tessera::testing
