/// bench: its numbers and files, and what is shown of its progress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/command.hpp"
#include "tests/tools/folder.hpp"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

TEST(Bench, TableAndJson) {
  const Words words{"bench",      "--seq", "64,96",     "--heads", "2",
                    "--head-dim", "16",    "--seconds", "0"};
  const Outcome text = run_tessera(words);
  EXPECT_EQ(text.status, 0) << text.error;
  EXPECT_THAT(text.out, HasSubstr("GFLOP/s"));
  Words with_json = words;
  with_json.emplace_back("--json");
  const Folder folder;
  const std::string file = (folder.path() / "bench.json").string();
  with_json.insert(with_json.end(), {"-o", file});
  const Outcome outcome = run_tessera(with_json);
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(read_file(file), outcome.out);
  const nlohmann::json results = outcome.json().at("results");
  ASSERT_EQ(results.size(), 2u);
  for (const nlohmann::json& r : results) {
    EXPECT_LE(r.at("min_ms").get<double>(), r.at("mean_ms").get<double>());
    EXPECT_LE(r.at("mean_ms").get<double>(), r.at("max_ms").get<double>());
    EXPECT_LE(r.at("p95_ms").get<double>(), r.at("max_ms").get<double>());
    EXPECT_GE(r.at("calls").get<int>(), 5);
    EXPECT_GT(r.at("naive_ms").get<double>(), 0);
    EXPECT_LT(r.at("max_abs_difference").get<double>(), 1e-5)
        << "the naive computation must give the same numbers";
    EXPECT_NEAR(r.at("flops").get<double>() / (2.0 * 2 * r.at("seq").get<double>() *
                                               (r.at("seq").get<double>() + 1) / 2 * 2 * 16),
                1, 1e-9);
  }
}

TEST(Bench, NaiveKnowsGroupsAndTypes) {
  for (const std::string dtype : {"fp16", "bf16"}) {
    const Outcome outcome =
        run_tessera({"bench", "--seq", "65", "--heads", "4", "--heads-k", "2", "--head-dim", "40",
                     "--mask", "none", "--dtype", dtype, "--seconds", "0", "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_LT(outcome.json().at("results").at(0).at("max_abs_difference").get<double>(), 0.02);
  }
  const Outcome alone =
      run_tessera({"bench", "--seq", "64", "--no-naive", "--seconds", "0", "--json"});
  EXPECT_EQ(alone.status, 0);
  EXPECT_FALSE(alone.json().at("results").at(0).contains("naive_ms"));
}

/// A result is not written over what is no result.
TEST(Bench, WritesJsonFilesOnly) {
  const Folder folder;
  const auto other = folder.write("in.safetensors", "before");
  for (const auto& output : {other.string(), (folder.path() / "out").string(), std::string{}}) {
    const Outcome outcome = run_tessera({"bench", "--seq", "16", "--seconds", "0", "-o", output});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.error, "tessera: --output: is '" + output + "'; must end in .json\n");
  }
  EXPECT_EQ(read_file(other), "before");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Bench, UnsupportedHeadDimension) {
  const Outcome outcome = run_tessera({"bench", "--head-dim", "12"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.error, HasSubstr("12"));
}

/// On a terminal, long work tells how far it is; the line is rubbed out at the end and the numbers
/// stay the same.
TEST(Progress, OnlyOnATerminal) {
  const Words words{"bench", "--seq",     "64",  "--heads",    "1",     "--head-dim",
                    "16",    "--seconds", "1.5", "--no-naive", "--json"};
  const Outcome shown = run_tessera(words, {}, Terminal::Yes);
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.error, HasSubstr("bench: 1 s"));
  EXPECT_THAT(shown.error, ::testing::EndsWith("\r\x1b[K"));
  shown.json();
  EXPECT_EQ(run_tessera(words).error, "");
}

}  // namespace
}  // namespace tessera::testing
