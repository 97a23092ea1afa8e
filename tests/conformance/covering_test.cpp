// The generator itself: what it makes covers what it says.

#include "tests/conformance/covering.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

#include <gtest/gtest.h>

namespace tessera::testing {
namespace {

TEST(Generator, CoversEveryLegalTriple) {
  std::vector<Row> rows;
  const std::vector<Row> wanted = covering_rows();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    rows.push_back(classify(covering_case(wanted[i], i)));
    EXPECT_EQ(rows.back(), wanted[i]) << name(covering_case(wanted[i], i));
    EXPECT_EQ(illegal(wanted[i]), "");
  }
  const Coverage coverage = measure_coverage(rows);
  std::printf("%zu cases; %lld triples: %lld covered, %lld excluded\n", rows.size(),
              static_cast<long long>(coverage.triples), static_cast<long long>(coverage.covered),
              static_cast<long long>(coverage.excluded));
  for (const std::string& reason : coverage.reasons) std::printf("  excluded %s\n", reason.c_str());
  EXPECT_TRUE(coverage.missing.empty())
      << coverage.missing.size() << " triples are missing, first " << coverage.missing.front();
  for (const std::string& reason : coverage.reasons) {
    EXPECT_EQ(reason.find("no reason"), std::string::npos) << reason;
  }
  EXPECT_EQ(coverage.triples, coverage.covered + coverage.excluded);
  EXPECT_GE(rows.size(), 1000u);
}

TEST(Generator, NoticesAMissingTriple) {
  std::vector<Row> rows = covering_rows();
  const Row last = rows.back();
  std::erase(rows, last);
  EXPECT_FALSE(measure_coverage(rows).missing.empty());
}

TEST(Generator, IsDeterministic) {
  const std::vector<Row> rows = covering_rows();
  EXPECT_EQ(rows, covering_rows());
  for (std::size_t i = 0; i < rows.size(); i += 97) {
    EXPECT_EQ(name(covering_case(rows[i], i)), name(covering_case(rows[i], i)));
  }
}

TEST(Generator, DrawsTheOddLengths) {
  std::set<std::int64_t> q, k;
  const std::vector<Row> rows = covering_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Case c = covering_case(rows[i], i);
    if (c.packed) continue;
    q.insert(c.seq_q);
    k.insert(c.seq_k);
  }
  for (const std::int64_t length : {1, 2, 63, 64, 65, 127, 704, 1025}) {
    EXPECT_TRUE(q.contains(length)) << length;
    EXPECT_TRUE(k.contains(length)) << length;
  }
}

}  // namespace
}  // namespace tessera::testing
