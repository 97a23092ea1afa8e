// The generator itself: what it makes covers what it says.

#include "tests/conformance/covering.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "tests/conformance/kernels.hpp"

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

TEST(Generator, CoversEveryTripleOfBackwardAndDecode) {
  const std::vector<Row> wanted = covering_rows();
  for (const Operation operation : {Operation::backward, Operation::decode}) {
    std::vector<Row> rows;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Case c = covering_case(wanted[i], i, operation);
      EXPECT_EQ(c.operation, operation);
      EXPECT_LE(c.dim, operation == Operation::backward ? 256 : 512) << name(c);
      rows.push_back(classify(c));
    }
    const Coverage coverage = measure_coverage(rows);
    std::printf("%s: %zu cases, %lld triples covered\n", to_string(operation).c_str(), rows.size(),
                static_cast<long long>(coverage.covered));
    for (const std::string& missing : coverage.missing) {
      EXPECT_TRUE(operation == Operation::backward &&
                  missing.find("head_dim 512") != std::string::npos)
          << missing;
    }
  }
}

TEST(Generator, VariesWhatBackwardKeepsAndHowItLies) {
  std::set<std::tuple<Keep, DType, bool>> keeps;
  std::set<std::pair<Layout, Layout>> layouts;
  std::set<std::tuple<bool, bool, bool>> gradients;
  const std::vector<Row> rows = covering_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Case c = covering_case(rows[i], i, Operation::backward);
    keeps.insert({c.keep, c.dtype, c.packed});
    layouts.insert({c.dout_layout.value_or(c.layout), c.gradient_layout.value_or(c.layout)});
    gradients.insert({c.dlse, c.dbias && c.bias != Bias::none, c.dsink && c.sinks});
  }
  EXPECT_EQ(keeps.size(), 18u);
  EXPECT_EQ(layouts.size(), 81u);
  EXPECT_EQ(gradients.size(), 8u);
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
