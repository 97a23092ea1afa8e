#pragma once
/// Runs cases: every kernel of the build, judged by the reference.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <tessera/stream.hpp>

#include "tests/conformance/answer.hpp"
#include "tests/conformance/case.hpp"
#include "tests/conformance/kernels.hpp"
#include "tests/conformance/operands.hpp"

namespace tessera::testing {

/// Seconds that the reference of a case should take. The summary counts the cases beyond it; one
/// that is not marked expensive fails beyond kAnswerTolerance times as much, twice in a row, for
/// the machine may be busy.
inline constexpr double kAnswerLimit = 0.1;
inline constexpr double kAnswerTolerance = kEmulatedProcessor ? 100 : 5;

/// What has been run: printed at the end, for a case that did not run must not pass for one that
/// did.
struct Tally {
  std::map<std::string, std::int64_t> cases{};  ///< by operation
  std::int64_t expensive = 0;                   ///< of these, allowed to take the reference longer
  std::map<std::string, std::int64_t> runs{};   ///< a kernel's executions that were judged
  std::map<std::string, std::int64_t>
      not_run{};  ///< cases that a kernel did not run, for the machine lacks it
  std::map<std::string, std::int64_t>
      unsupported{};  ///< answers Unsupported where that is right, by what was asked
  std::map<std::string, std::int64_t>
      skipped{};  ///< what an adapter does not compute, by its own words
  std::map<std::string, std::string> left_out{};  ///< tests that did not run here, and why
  std::map<std::string, double> worst{};  ///< largest error ÷ allowed error of a kernel and type
  std::map<std::string, std::string> worst_case{};
  std::int64_t answers_computed = 0;
  std::int64_t answers_read = 0;
  std::int64_t slow_answers = 0;  ///< took more than kAnswerLimit when computed
  double answer_seconds = 0;
  double slowest_answer = 0;
  std::string slowest_case{};
};
Tally& tally();

/// One execution.
struct Execution {
  enum class Status : std::uint8_t { done, unsupported, failed };
  Status status = Status::done;
  std::string text{};  ///< why not done
};

enum class Scratch : std::uint8_t { none, given };

/// Plans the operands' problem for one kernel, of its operation, and executes it, on `stream`, on
/// poisoned outputs, which are downloaded. Fails if memory around the outputs, or of a given
/// workspace's surroundings, was written, or another kernel was planned. An adapter is called
/// instead, without a workspace; what it answers Unsupported to is counted as skipped.
Execution execute_on(const Kernel& kernel, Operands& operands, Scratch scratch = Scratch::none,
                     Stream stream = {});

/// The same without a look at memory: executes on the arguments as they are, and waits. False: an
/// adapter answered Unsupported. Throws what else went wrong.
bool call(const Kernel& kernel, const Args& args, const Options& options);

/// Runs a case on every kernel of its operation, one of forward on those of decode, too; twice, the
/// second time with a workspace of ours: both must give the same bits and pass the judge. An
/// adapter runs once, with those of out and lse that the case keeps. Returns what is wrong, a text
/// each; empty: all is well.
std::vector<std::string> run(const Case& c, Operands& operands);

/// The same with operands as the case describes them, after `edit` has changed some.
std::vector<std::string> run(
    const Case& c, const std::function<void(Operands&)>& edit = [](Operands&) {});

/// Calls `body(kernel)` for every kernel that this machine runs and that computes the dtype.
void for_each_kernel(const std::function<void(const Kernel&)>& body,
                     Operation operation = Operation::forward, DType dtype = DType::fp32);

/// Kernels that compute what the operation does: decode computes what forward does.
std::vector<Kernel> kernels_for(Operation operation);

/// Does the kernel leave the problem to others, as it is known to (gap_of)? That is counted.
/// Throws std::logic_error if it plans it nevertheless.
bool leaves_out(const Kernel& kernel, const Problem& problem);

}  // namespace tessera::testing
