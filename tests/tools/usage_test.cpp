/// Help and wrong usage: exit status, one line on stderr, one JSON document where
/// asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/tools/command.hpp"
#include "tests/tools/failure.hpp"
#include "tests/tools/folder.hpp"
#include "tests/tools/tensors.hpp"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;

TEST(Usage, Help) {
  const std::pair<Words, Words> cases[] = {
      {{"--help"}, {"info", "run", "check", "bench", "--json", "--threads", "Exit status"}},
      {{"run", "--help"},
       {"--output", "--layout", "--mask", "--alignment", "--left", "--softcap", "--scale",
        "--dropout", "--seed", "--dtype", "cu_seqlens", "alibi_slopes", "key_begin"}},
      {{"check", "--help"}, {"--layout", "--mask", "out_full"}},
      {{"bench", "--help"}, {"--seq", "--batch", "--heads", "--head-dim", "--dtype", "--no-naive"}},
      {{"info", "--help"}, {"What this build is"}},
  };
  for (const auto& [arguments, mentioned] : cases) {
    const Outcome outcome = run_tessera(arguments);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.error, "");
    for (const std::string& word : mentioned) EXPECT_THAT(outcome.out, HasSubstr(word));
  }
}

/// Everything is in its place in 80 columns, and the parser's own words are nowhere.
TEST(Usage, HelpReadsWell) {
  for (const Words& arguments : {Words{"--help"},
                                 {"info", "-h"},
                                 {"run", "-h"},
                                 {"check", "-h"},
                                 {"bench", "-h"},
                                 {"--json", "check", "in", "--help"}}) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    const Outcome outcome = run_tessera(arguments);
    EXPECT_EQ(outcome.status, 0);
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80u) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
    for (const char* artefact : {"{", "}", "REQUIRED", "TEXT", "(1x)", " ... ", "INT", "FLOAT"})
      EXPECT_THAT(outcome.out, ::testing::Not(HasSubstr(artefact)));
    const std::string name = subcommand_in(arguments);
    EXPECT_THAT(outcome.out, HasSubstr(name.empty() ? "Usage: tessera SUBCOMMAND [OPTIONS]\n"
                                                    : "Usage: tessera " + name));
    for (const char* common : {"\n  --json ", "\n  --threads N ", "\n  -h, --help ", "Exit status"})
      EXPECT_THAT(outcome.out, HasSubstr(common));
  }
  EXPECT_THAT(run_tessera({"run", "-h"}).out,
              HasSubstr("Usage: tessera run IN... --output OUT [OPTIONS]\n"));
  EXPECT_THAT(run_tessera({"bench", "-h"}).out, HasSubstr("\n  --no-naive "));
  EXPECT_THAT(run_tessera({"bench", "-h"}).out, HasSubstr("\n  --seq N,N,... "));
}

TEST(Usage, Version) {
  const Outcome outcome = run_tessera({"--version"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, ::testing::MatchesRegex("tessera [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Usage, WrongFlags) {
  const std::string in = example("minilm_dense.safetensors");
  const std::pair<Words, std::string> cases[] = {
      {{}, "subcommand is required: info, run, check or bench (see tessera --help)"},
      {{"frobnicate"}, "'frobnicate' is no subcommand; must be info, run, check or bench"},
      {{"info", "--frobnicate"},
       "--frobnicate is no option of tessera info (see tessera info --help)"},
      {{"info", "extra"},
       "'extra' is one word too many; tessera info takes options only (see tessera info --help)"},
      {{"bench", in}, "is one word too many; tessera bench takes options only"},
      {{"run"}, "IN is required (see tessera run --help)"},
      {{"run", in}, "--output is required (see tessera run --help)"},
      {{"check"}, "IN is required (see tessera check --help)"},
      {{"check", in, in}, "IN is 2 files; must be one .safetensors or three .npy"},
      {{"check", in, in, in, in}, "IN is 4 files; must be one .safetensors or three .npy"},
      {{"check", in, "--mask"},
       "--mask: has no value; must be --mask none|causal|window (see tessera check --help)"},
      {{"check", in, "--threads"}, "--threads: has no value; must be --threads N"},
      {{"check", in, "--mask", "caused"}, "--mask: is 'caused'; must be none|causal|window"},
      {{"check", in, "--layout", "sbhd"}, "must be bshd|bhsd|shd|hsd"},
      {{"check", in, "--dtype", "fp8"}, "must be fp32|fp16|bf16"},
      {{"check", in, "--alignment", "left"}, "must be top-left|bottom-right"},
      {{"check", in, "--alignment", "top-left"}, "--alignment needs --mask"},
      {{"check", in, "--left", "3"}, "need --mask window"},
      {{"check", in, "--mask", "window"}, "needs --left, --right or both"},
      {{"check", in, "--mask", "window", "--left", "-1"},
       "--left: is '-1'; must be a whole number from 0 to 2^63 - 1"},
      {{"check", in, "--mask", "window", "--left", "99999999999999999999"},
       "--left: is '99999999999999999999'; must be a whole number from 0 to 2^63 - 1"},
      {{"check", in, "--mask", "window", "--right", "9223372036854775808"},
       "--right: is '9223372036854775808'; must be a whole number from 0 to 2^63 - 1"},
      {{"check", in, "--scale", "nan"}, "is 'nan'; must be a number from -2.358e38 to 2.358e38"},
      {{"check", in, "--scale", "1e99"}, "must be a number from -2.358e38 to 2.358e38"},
      {{"check", in, "--scale", "3e38"}, "--scale: is '3e38'; must be a number from -2.358e38 to"},
      {{"check", in, "--scale", "1.5x"}, "must be a number from -2.358e38 to 2.358e38"},
      {{"check", in, "--scale", ""}, "--scale: is ''; must be a number from"},
      {{"check", in, "--scale", "1", "--scale", "2"},
       "--scale: is given 2 times; must be given once (see tessera check --help)"},
      {{"run", in, "-o", "a.npy", "--output", "b.npy"}, "--output: is given 2 times"},
      {{"check", in, "--softcap", "-1"}, "must be a number from 0 to 2.358e38"},
      {{"check", in, "--softcap", "inf"}, "must be a number from 0 to 2.358e38"},
      {{"check", in, "--softcap", "3e38"}, "must be a number from 0 to 2.358e38"},
      {{"check", in, "--dropout", "1.01"}, "from 0 to 1"},
      {{"check", in, "--dropout", "-0.1"}, "from 0 to 1"},
      {{"check", in, "--seed", "-1"}, "from 0 to 2^64 - 1"},
      {{"check", in, "--seed", "18446744073709551616"}, "from 0 to 2^64 - 1"},
      {{"check", in, "--offset", "0x10"}, "from 0 to 2^64 - 1"},
      {{"info", "--threads", "0"}, "--threads: is '0'; must be a whole number from 1 to 512"},
      {{"info", "--threads", "513"}, "--threads: is '513'; must be a whole number from 1 to 512"},
      {{"info", "--threads", "many"}, "from 1 to 512"},
      {{"bench", "--seq", "0"}, "from 1 to"},
      {{"bench", "--seq", "512,x"}, "is 'x'"},
      {{"bench", "--heads", "8", "--heads-k", "3"}, "--heads-k: is 3; must divide --heads (8)"},
      {{"bench", "--mask", "window"}, "must be none|causal"},
      {{"bench", "--seconds", "-1"}, "from 0 to 3600"},
      {{"run", in, "-o", "out.txt"}, "must end in .safetensors or .npy"},
      {{"run", in, "-o", ""}, "--output: is ''; must end in .safetensors or .npy"},
  };
  for (const auto& [arguments, message] : cases) expect_failure(arguments, 2, message);
}

/// A flag that does not exist is said first, wherever it stands and whatever else is wrong: what is
/// missing may be what it was meant to be.
TEST(Usage, UnknownFlagsComeFirst) {
  const std::string in = example("minilm_dense.safetensors");
  for (const std::string name : kSubcommands) {
    const std::string message =
        "--frob is no option of tessera " + name + " (see tessera " + name + " --help)";
    expect_failure({name, "--frob"}, 2, message);
    expect_failure({name, "--frob=3"}, 2, message);
    expect_failure({"--frob", name}, 2, message);
    expect_failure({name, "-f", "3"}, 2, "-f is no option of tessera " + name);
  }
  expect_failure({"check", "--frob", "--mask", "caused"}, 2,
                 "--frob is no option of tessera check");
  expect_failure({"check", in, "--frob", "--mask"}, 2, "--frob is no option of tessera check");
  expect_failure({"run", in, "--frob"}, 2, "--frob is no option of tessera run");
  expect_failure({"bench", in, "--seq", "x", "--frob"}, 2, "--frob is no option of tessera bench");
  expect_failure({"--frob"}, 2, "--frob is no option of tessera (see tessera --help)");
  expect_failure({"chekc", "--frob"}, 2, "'chekc' is no subcommand");
}

/// fp32 has no number between 0 and 1.4e-45, and below 1.2e-38 only few bits: what is asked for
/// does not become something else unseen.
TEST(Usage, NumbersThatWouldBecomeZero) {
  const std::string in = example("minilm_dense.safetensors");
  const std::string fp32 = ", which fp32 rounds to 0; must be ";
  const std::string least = ", and 0 or at least 1.2e-38 in magnitude";
  for (const std::string number : {"1e-50", "-1e-50", "7e-46", "1e-400", "1e-99999"}) {
    expect_failure(
        {"check", in, "--scale=" + number}, 2,
        "--scale: is '" + number + "'" + fp32 + "a number from -2.358e38 to 2.358e38" + least);
  }
  expect_failure({"check", in, "--softcap", "1e-50"}, 2,
                 "--softcap: is '1e-50'" + fp32 + "a number from 0 to 2.358e38" + least);
  for (const std::string flag : {"--dropout", "--seconds"}) {
    expect_failure({flag == "--seconds" ? "bench" : "check", flag, "1e-400"}, 2,
                   flag + ": is '1e-400', which fp64 rounds to 0; must be a number from 0 to ");
  }
  expect_failure({"check", in, "--softcap", "1e400"}, 2, "must be a number from 0 to 2.358e38");
  for (const std::string number : {"1.4e-45", "1e-40", "-1e-38"}) {
    expect_failure({"run", in, "--scale=" + number}, 2, "--scale: is '");
    expect_failure({"check", in, "--scale=" + number}, 2,
                   "; must be 0 or at least 1.1754944e-38 in size");
  }
  for (const std::string number : {"1.2e-38", "-1e-37", "0", "0e-999"})
    EXPECT_EQ(run_tessera({"check", in, "--scale=" + number}).status, 0) << number;
}

/// Nothing between commas is no number that could be left out.
TEST(Usage, ListsWithoutANumber) {
  const std::string allowed = "; must be N,N,..., each a whole number from 1 to 16777216";
  for (const std::string list : {"16,", "16,,17", ",16", ",", ""})
    expect_failure({"bench", "--seq", list}, 2, "--seq: is '" + list + "'" + allowed);
  expect_failure({"bench", "--seq", "16, 17"}, 2, "--seq: is ' 17'");
}

/// Whatever stdout is, what cannot be printed is no success.
TEST(Usage, OutputThatCannotBePrinted) {
  const Folder folder;
  const std::string in = write_tensors(folder.path() / "in.safetensors", qkv({1, 4, 2, 8}));
  const std::string out = (folder.path() / "out.safetensors").string();
  const Words bench{"bench",      "--seq", "16",        "--heads", "1",
                    "--head-dim", "8",     "--seconds", "0",       "--no-naive"};
  for (const Words& arguments : {Words{"--version"},
                                 {"--help"},
                                 {"run", "--help"},
                                 {"--json", "info", "--help"},
                                 {"info"},
                                 {"info", "--json"},
                                 {"run", in, "-o", out},
                                 {"check", in},
                                 {"check", in, "--json"},
                                 bench}) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    const Outcome outcome = run_tessera_in({.standard_output = "/dev/full"}, arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.error, "tessera: standard output cannot be written\n");
  }
  EXPECT_EQ(run_tessera_in({.standard_output = "/dev/full"}, {"frobnicate", "--json"}).status, 2);
  const Outcome json = run_tessera_in({.standard_error = "/dev/full"}, {"frobnicate", "--json"});
  EXPECT_EQ(json.status, 2);
  EXPECT_EQ(json.json().value("exit_status", -1), 2);
  for (const Words& arguments : {Words{"frobnicate"}, {"--version"}}) {
    const Outcome both =
        run_tessera_in({.standard_output = "/dev/full", .standard_error = "/dev/full"}, arguments);
    EXPECT_EQ(both.status, 2);
  }
}

TEST(Usage, UnknownKernelIsUnsupported) {
  const Outcome outcome =
      run_tessera({"check", example("minilm_dense.safetensors")}, {{"TESSERA_KERNEL", "quantum"}});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.error, HasSubstr("tessera: TESSERA_KERNEL is quantum"));
}

}  // namespace
}  // namespace tessera::testing
