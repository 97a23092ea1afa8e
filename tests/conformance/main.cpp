// Registers a test a case, and prints at the end what ran and what did not. Beside GoogleTest's
// flags:
//
//     --kernels=WORD       only kernels whose names hold the word
//     --adapter=PATH.so    somebody else's implementation, behind <tessera/adapter.h>, in the place
//                          of our kernels
//
// or --kernels WORD, --adapter PATH.so. Exit status: 0 all passed; 1 something failed, or an
// adapter computed nothing at all; 2 an argument is wrong, or that file is no adapter.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/adapter.hpp"
#include "tests/conformance/covering.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

constexpr std::int64_t kMostExpensiveCases = 30;

class CaseTest : public ::testing::Test {
 public:
  explicit CaseTest(Case c) : case_(std::move(c)) {}
  void TestBody() override {
    for (const std::string& text : run(case_)) ADD_FAILURE() << text;
  }

 private:
  Case case_;
};

// A name that is taken gets a number: two cases may differ in what a name does not say.
std::string unique(const std::string& wanted, std::set<std::string>& taken) {
  std::string name = wanted;
  for (int i = 2; !taken.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

// One in eight of those that can, once more with Accumulate::fp16.
bool rounds_products(const Case& c, std::size_t index) {
  return c.dtype == DType::fp16 && c.operation != Operation::backward && index % 8 == 1;
}

void register_covering_cases() {
  std::set<std::string> taken;
  const auto add = [&](const Case& c) {
    ::testing::RegisterTest("Covering", unique(name(c), taken).c_str(), nullptr, nullptr, __FILE__,
                            __LINE__, [c]() -> CaseTest* { return new CaseTest(c); });
  };
  const std::vector<Row> rows = covering_rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (const Operation operation : {Operation::forward, Operation::backward, Operation::decode}) {
      const Case c = covering_case(rows[i], i, operation);
      add(c);
      if (!rounds_products(c, i)) continue;
      Case rounded = c;
      rounded.accumulate = Accumulate::fp16;
      add(rounded);
    }
  }
}

void print_counts(const char* title, const std::map<std::string, std::int64_t>& counts) {
  std::printf("%s\n", title);
  for (const auto& [what, count] : counts) {
    std::printf("  %-44s %8lld\n", what.c_str(), static_cast<long long>(count));
  }
}

std::int64_t total(const std::map<std::string, std::int64_t>& counts) {
  std::int64_t sum = 0;
  for (const auto& [what, count] : counts) sum += count;
  return sum;
}

// What is skipped is listed with its reason: it must not pass for what ran. (Not OnTestPartResult,
// in which GoogleTest holds the lock that asking for the current test waits for.)
class SkipListener : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo& test) override {
    for (int i = 0; i < test.result()->total_part_count(); ++i) {
      const ::testing::TestPartResult& part = test.result()->GetTestPartResult(i);
      if (!part.skipped()) continue;
      tally().left_out[std::string(test.test_suite_name()) + "." + test.name()] = part.message();
    }
  }
};

// Marks tests of which an adapter computed nothing: skipped, they do not pass for what ran.
class AdapterListener : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { runs_ = total(tally().runs); }
  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (test.result()->Passed() && total(tally().runs) == runs_)
      GTEST_SKIP() << "the adapter computes none of it";
  }

  std::int64_t runs_ = 0;
};

// What an adapter is not asked: what is about our plans and their promises, or about this program.
constexpr const char* kNotForAdapters =
    "AccumulateFp16.IsRefusedElsewhere:AnswerFile.*:Decode.AnsweredBitsDependOnTheShapeAlone:"
    "Deterministic.*:Generator.*:Kernels.*:Plans.*:SideStream.*:Unsupported.*";

void leave_out_what_is_not_for_adapters() {
  std::string filter = ::testing::GTEST_FLAG(filter);
  filter += filter.find('-') == std::string::npos ? '-' : ':';
  ::testing::GTEST_FLAG(filter) = filter + kNotForAdapters;
}

class Summary : public ::testing::Environment {
 public:
  void TearDown() override {
    const Tally& t = tally();
    std::printf("\n==== conformance: %lld cases ====\n", static_cast<long long>(total(t.cases)));
    print_counts("cases by operation", t.cases);
    print_counts("judged executions by kernel", t.runs);
    print_counts("not run here, for this machine lacks the kernel", t.not_run);
    for (const Operation operation : {Operation::forward, Operation::backward, Operation::decode}) {
      for (const Kernel& kernel : kernels(operation)) {
        if (!kernel.runs) std::printf("  %s: %s\n", kernel.name.c_str(), kernel.why_not.c_str());
      }
    }
    print_counts("Unsupported, as it should be", t.unsupported);
    if (chosen_adapter() != nullptr) print_counts("skipped by the adapter", t.skipped);
    std::printf("tests not run here\n");
    for (const auto& [test, why] : t.left_out) std::printf("  %s: %s\n", test.c_str(), why.c_str());
    std::printf("largest error, as a share of what is allowed\n");
    for (const auto& [key, worst] : t.worst) {
      std::printf("  %-32s %6.3f  %s\n", key.c_str(), worst, t.worst_case.at(key).c_str());
    }
    std::printf("references: %lld computed, %lld read from %s; slowest %.3f s, %s\n",
                static_cast<long long>(t.answers_computed), static_cast<long long>(t.answers_read),
                answer_folder().c_str(), t.slowest_answer, t.slowest_case.c_str());
    std::printf(
        "references that took more than %.1f s: %lld; %lld cases may, the others fail beyond "
        "%.1f s\n",
        kAnswerLimit, static_cast<long long>(t.slow_answers), static_cast<long long>(t.expensive),
        kAnswerTolerance * kAnswerLimit);
    // A few may take longer than the limit; that must not become a habit.
    EXPECT_LE(t.expensive, kMostExpensiveCases) << "cases marked expensive";
    if (const bench::Adapter* adapter = chosen_adapter()) {
      EXPECT_GT(total(t.runs), 0) << "nothing ran: adapter " << adapter->name()
                                  << " computes none of these cases";
      record("skipped", total(t.skipped));
    } else if (total(t.cases) > 0 && total(t.unsupported) == 0) {
      EXPECT_GT(total(t.runs), 0) << "no kernel ran: this machine lacks those that were asked for";
    }
    record("cases", total(t.cases));
    for (const auto& [operation, count] : t.cases) record("cases." + operation, count);
    record("executions", total(t.runs));
    record("not_run_here", total(t.not_run));
    record("unsupported", total(t.unsupported));
    record("slow_references", t.slow_answers);
    record("tests_not_run_here", static_cast<std::int64_t>(t.left_out.size()));
    for (const auto& [kernel, count] : t.runs) record("executions." + kernel, count);
    for (const auto& [kernel, count] : t.not_run) record("not_run_here." + kernel, count);
  }

 private:
  // Into the JSON or XML that --gtest_output writes.
  static void record(const std::string& key, std::int64_t count) {
    ::testing::Test::RecordProperty(key, std::to_string(count));
  }
};

constexpr const char* kHelp =
    R"(This program runs every case of attention on every kernel of the build and judges it.

  --kernels=WORD
      Only kernels whose names hold the word.
  --adapter=PATH.so
      Somebody else's implementation, behind <tessera/adapter.h>, in the place of
      our kernels.

Exit status: 0 all passed; 1 something failed, or an adapter computed nothing at
all; 2 an argument is wrong, or that file is no adapter. What follows is
GoogleTest's.

)";

bool asks_for_help(const std::vector<std::string>& arguments) {
  return std::ranges::find(arguments, "--help") != arguments.end() ||
         std::ranges::find(arguments, "-h") != arguments.end();
}

// The value of --NAME=VALUE or --NAME VALUE, at argument `i`, which moves to the last it takes.
// `meaning` is what the value must be.
std::optional<std::string> value_of(const std::string& flag, const std::string& meaning,
                                    const std::vector<std::string>& all, std::size_t& i) {
  std::string value;
  if (all[i].starts_with(flag + '=')) {
    value = all[i].substr(flag.size() + 1);
  } else if (all[i] != flag) {
    return {};
  } else if (i + 1 < all.size()) {
    value = all[++i];
  }
  if (value.empty())
    throw std::invalid_argument(flag + " has no value; must be " + flag + '=' + meaning);
  return value;
}

int run_all(const std::vector<std::string>& arguments) {
  std::optional<bench::Adapter> adapter;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (const auto word = value_of("--kernels", "WORD", arguments, i)) {
      choose_kernels(*word);
    } else if (const auto path = value_of("--adapter", "PATH.so", arguments, i)) {
      adapter.emplace(*path);
    } else {
      std::fprintf(stderr,
                   "conformance: unknown argument '%s'; must be --kernels=WORD, --adapter=PATH.so "
                   "or GoogleTest's (see --help)\n",
                   arguments[i].c_str());
      return 2;
    }
  }
  if (!adapter && kernels(Operation::forward).empty() && kernels(Operation::backward).empty() &&
      kernels(Operation::decode).empty()) {
    std::fprintf(stderr, "conformance: no kernel's name holds the word of --kernels\n");
    return 2;
  }
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (adapter) {
    choose_adapter(*adapter);
    leave_out_what_is_not_for_adapters();
    listeners.Append(new AdapterListener);
  }
  register_covering_cases();
  ::testing::AddGlobalTestEnvironment(new Summary);
  listeners.Append(new SkipListener);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace tessera::testing

int main(int argc, char** argv) try {
  const bool help = tessera::testing::asks_for_help({argv + 1, argv + argc});
  if (help) std::fputs(tessera::testing::kHelp, stdout);
  ::testing::InitGoogleTest(&argc, argv);  // prints its own help too
  if (help) return 0;
  return tessera::testing::run_all(std::vector<std::string>(argv + 1, argv + argc));
} catch (const std::exception& error) {
  std::fprintf(stderr, "conformance: %s\n", error.what());
  return 2;
}
