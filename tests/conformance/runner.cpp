#include "tests/conformance/runner.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <tessera/attention.hpp>
#include <tessera/error.hpp>
#include <tessera/plan.hpp>
#include <tessera/stream.hpp>

#include "bench/adapter.hpp"

namespace tessera::testing {
namespace {

constexpr std::size_t kGuardBytes = 256;

class GuardedWorkspace {
 public:
  explicit GuardedWorkspace(std::size_t size) : size_(size), block_(size + 2 * kGuardBytes) {
    block_.upload();
  }

  Workspace workspace() {
    return {static_cast<std::byte*>(block_.data(Side::device)) + kGuardBytes, size_};
  }

  bool intact() {
    block_.download();
    const std::byte* bytes = block_.host();
    const auto poisoned = [](std::byte byte) { return byte == std::byte{kPoison}; };
    return std::all_of(bytes, bytes + kGuardBytes, poisoned) &&
           std::all_of(bytes + kGuardBytes + size_, bytes + block_.size(), poisoned);
  }

 private:
  std::size_t size_;
  Block block_;
};

template <class Test>
bool any(std::initializer_list<const std::vector<double>*> all, Test test) {
  return std::any_of(all.begin(), all.end(), [&](const std::vector<double>* numbers) {
    return std::any_of(numbers->begin(), numbers->end(), test);
  });
}

bool holds_nan(const Answer& a) {
  const reference::Backward& g = a.gradients;
  return any({&a.ref.out, &a.ref.lse, &g.dq, &g.dk, &g.dv, &g.dbias, &g.dsink},
             [](double number) { return std::isnan(number); });
}

// `low` is rounded to the output type: is there a number that is not 0 even then?
bool holds_nonzero(const Answer& a) {
  const reference::Backward& g = a.low_gradients;
  return any({&a.low.out, &g.dq, &g.dk, &g.dv}, [](double number) { return number != 0; });
}

// A build made for short heads only says so, and so does backward of the longest; any other refusal
// of a legal problem is a failure.
bool may_be_refused(const Case& c) {
  const std::int64_t longest = c.operation == Operation::backward ? 256 : 512;
  return std::max(c.dim, c.dim_v) > std::min(longest, largest_head_dim());
}

void record_answer(const std::string& case_name, const Answer& answer) {
  Tally& t = tally();
  ++(answer.cached ? t.answers_read : t.answers_computed);
  t.answer_seconds += answer.seconds;
  if (answer.seconds > kAnswerLimit) ++t.slow_answers;
  if (answer.seconds > t.slowest_answer) {
    t.slowest_answer = answer.seconds;
    t.slowest_case = case_name;
  }
}

void record_verdict(const Kernel& kernel, const Case& c, const std::string& case_name,
                    const reference::Verdict& verdict) {
  Tally& t = tally();
  ++t.runs[kernel.name];
  const std::string key = kernel.name + " " + std::string(to_string(c.dtype));
  if (verdict.worst_ratio >= t.worst[key]) {
    t.worst[key] = verdict.worst_ratio;
    t.worst_case[key] = case_name;
  }
}

// Counts what an adapter does not compute: not as passed, and not as a failure either.
Execution skip(const Kernel& kernel, const std::string& why) {
  ++tally().skipped[to_string(kernel.operation) + ", " + why];
  return {Execution::Status::unsupported, kernel.name + ": Unsupported: " + why};
}

// As execute_on. An adapter may change its mind when it is called.
Execution call_adapter(const Kernel& kernel, Operands& operands, const Stream& stream) {
  const Args args = operands.args(Side::device);
  const Support support = kernel.adapter->supports(kernel.operation, args, operands.options);
  if (!support) return skip(kernel, support.reason);
  operands.poison_outputs();
  try {
    kernel.adapter->call(kernel.operation, args, operands.options, stream);
    stream.synchronize();
  } catch (const Unsupported& error) {
    return skip(kernel, error.what());
  }
  operands.download_outputs();
  if (const std::string text = operands.damage(); !text.empty()) {
    return {Execution::Status::failed, kernel.name + ": " + text};
  }
  return {};
}

std::vector<Kernel> kernels_of(const Case& c) {
  // Of the covering cases, decode has its own.
  const bool with_decode = !c.label.empty() || c.fill % 4 == 0;
  return with_decode ? kernels_for(c.operation) : kernels(c.operation);
}

// Whether an adapter is alone and computes nothing of the case, which is counted then: nobody needs
// the right answer.
bool declined(const Case& c, Operands& operands) {
  if (chosen_adapter() == nullptr) return false;
  operands.keep = Keep::both;
  const Args args = operands.args(Side::device);
  std::vector<std::pair<Kernel, std::string>> answers;
  for (const Kernel& kernel : kernels_of(c)) {
    const Support support = kernel.adapter->supports(kernel.operation, args, operands.options);
    if (support) return false;
    answers.emplace_back(kernel, support.reason);
  }
  ++tally().cases[to_string(c.operation)];
  for (const auto& [kernel, why] : answers) skip(kernel, why);
  return true;
}

// Whether nobody is there for the case: no kernel that --kernels chose, or no function of an
// adapter, which is counted.
bool lacking(const Case& c) {
  if (!kernels_of(c).empty()) return false;
  if (chosen_adapter() == nullptr) return true;
  const std::string operation = to_string(c.operation);
  ++tally().cases[operation];
  ++tally().skipped[operation + ", which the adapter lacks"];
  return true;
}

class CaseRun {
 public:
  CaseRun(const Case& c, Operands& operands)
      : case_(c), operands_(operands), name_(name(c)), answer_(answer(operands)) {}

  std::vector<std::string> run() {
    ++tally().cases[to_string(case_.operation)];
    if (case_.expensive) ++tally().expensive;
    record_answer(name_, answer_);
    check_answer();
    operands_.upload();
    for (const Kernel& kernel : kernels_of(case_)) {
      if (!kernel.runs) {
        ++tally().not_run[kernel.name];
        continue;
      }
      if (kernel.adapter != nullptr) {
        run_adapter(kernel);
      } else if (kernel.computes(case_.dtype)) {
        run_on(kernel);
      } else {
        check_refused(kernel);
      }
    }
    if (const std::string text = operands_.changed_input(); !text.empty()) fail(text);
    return std::move(failures_);
  }

 private:
  void fail(const std::string& text) { failures_.push_back(name_ + ": " + text); }

  void check_answer() {
    if (holds_nan(answer_) != case_.expects_nan) {
      fail(case_.expects_nan ? "the reference holds no NaN" : "the reference holds NaN");
    }
    if (case_.expensive || answer_.seconds <= kAnswerTolerance * kAnswerLimit) return;
    const double seconds = std::min(answer_.seconds, compute_answer(operands_).seconds);
    if (seconds > kAnswerTolerance * kAnswerLimit) {
      fail("its reference takes " + std::to_string(seconds) + " s; a case should have " +
           std::to_string(kAnswerLimit) + " s, and fails beyond " +
           std::to_string(kAnswerTolerance * kAnswerLimit) + " s unless it is marked expensive");
    }
  }

  // A kernel of other dtypes.
  void check_refused(const Kernel& kernel) {
    const OnlyKernel only(kernel.selector);
    const Args args = operands_.args(Side::device);
    const Problem problem = describe(args, operands_.options, kernel.operation);
    if (!supports(problem)) {
      ++tally().unsupported["dtype that " + kernel.name + " does not compute"];
    } else if (!plan(problem).kernel().ends_with(".empty")) {
      fail(kernel.name + " does not refuse a dtype that it does not compute");
    }
  }

  void run_on(const Kernel& kernel) {
    operands_.keep = Keep::both;
    const Args args = operands_.args(Side::device);
    if (leaves_out(kernel, describe(args, operands_.options, kernel.operation))) return;
    if (case_.operation == Operation::backward && !may_be_refused(case_)) give_results(kernel);
    const Execution first = execute_on(kernel, operands_);
    if (first.status == Execution::Status::unsupported) {
      if (!may_be_refused(case_)) return fail(first.text);
      ++tally().unsupported["head dimension above the largest built"];
      return;
    }
    if (first.status == Execution::Status::failed) return fail(first.text);
    const std::vector<std::uint8_t> bits = operands_.result_bits();
    const Execution second = execute_on(kernel, operands_, Scratch::given);
    if (second.status != Execution::Status::done) return fail("second time: " + second.text);
    if (operands_.result_bits() != bits) {
      fail(kernel.name + ": a second execution, with a workspace given, has other bits");
    }
    judge_results(kernel, answer_);
    if (case_.operation == Operation::backward && case_.keep != Keep::both) {
      check_recomputed(kernel);
    }
  }

  // Backward is given out and lse as our kernels are, or, of an adapter without that forward, the
  // reference's lse, rounded.
  void run_adapter(const Kernel& kernel) {
    operands_.keep = Keep::both;
    if (case_.operation == Operation::backward) give_adapters_lse();
    const Execution done = execute_on(kernel, operands_);
    if (done.status == Execution::Status::failed) return fail(done.text);
    if (done.status == Execution::Status::done) judge_results(kernel, answer_);
    if (case_.operation == Operation::backward && case_.keep != Keep::both) {
      run_recomputing_adapter(kernel);
    }
  }

  // What is not kept an adapter computes again, as its own forward rounds it: the right answer is
  // that to its own out.
  void run_recomputing_adapter(const Kernel& kernel) {
    const std::vector<Kernel>& forward = kernels(Operation::forward);
    if (forward.empty()) {
      skip(kernel, "without a forward to judge by out and lse are given, always");
      return;
    }
    bool computed = false;
    try {
      operands_.fill_results(
          [&](const Args& args) { computed = call(forward.front(), args, operands_.options); });
    } catch (const std::exception& error) {
      return fail(forward.front().name + ": " + error.what());
    }
    if (!computed) return;
    operands_.keep = case_.keep;
    const Execution done = execute_on(kernel, operands_);
    if (done.status == Execution::Status::failed) return fail("recomputing: " + done.text);
    if (done.status == Execution::Status::done)
      judge_results(kernel, answer_to_out(operands_, answer_));
  }

  // The answer at hand has the weights of an exact lse. How backward's lse was rounded, which
  // exp(score − lse) magnifies, is none of its faults: where that decides, so does the answer to
  // the lse that it was given.
  void judge_results(const Kernel& kernel, const Answer& right) {
    reference::Verdict verdict = judge(operands_, right);
    if (!verdict.pass && case_.operation == Operation::backward && operands_.keep != Keep::nothing)
      verdict = judge(operands_, answer_to_results(operands_, right));
    record_verdict(kernel, case_, name_, verdict);
    if (!verdict.pass) fail(kernel.name + ": " + verdict.text);
    if (!judged_zeros_) check_zeros();
  }

  // The lse of the kernel's own forward, whose scores are rounded as backward's are, and the
  // reference's out, which the answer is made of. Hidden rows stay so.
  void give_results(const Kernel& kernel) {
    {
      const OnlyKernel only(kernel.selector);
      operands_.fill_results();
    }
    give_reference_out();
  }

  void give_adapters_lse() {
    const std::vector<Kernel>& forward = kernels(Operation::forward);
    if (forward.empty()) return;
    const bench::Adapter& adapter = *forward.front().adapter;
    bool computed = false;
    try {
      operands_.fill_results([&](const Args& args) {
        computed = static_cast<bool>(adapter.supports(Operation::forward, args, operands_.options));
        if (computed) adapter.call(Operation::forward, args, operands_.options);
      });
    } catch (const std::exception&) {  // what is wrong with its forward, forward's cases tell
      computed = false;
    }
    if (computed) return give_reference_out();
    operands_.set_results(answer_.ref);
    operands_.upload();
  }

  void give_reference_out() {
    const Slot& out = operands_.out;
    std::size_t i = 0;
    out.each([&](auto b, auto h, auto s, auto d) {
      const double number = answer_.ref.out[i++];
      if (!std::isnan(out.get(b, h, s, d))) out.set(b, h, s, d, number);
    });
    out.block->upload();
  }

  // What is not kept is computed again: to the bit what forward gives, and so are gradients then.
  void check_recomputed(const Kernel& kernel) {
    {
      const OnlyKernel only(kernel.selector);
      operands_.fill_results();
    }
    std::vector<std::uint8_t> kept;
    for (const Keep keep : {Keep::both, case_.keep}) {
      operands_.keep = keep;
      const Execution done = execute_on(kernel, operands_);
      if (done.status != Execution::Status::done) return fail("recomputing: " + done.text);
      const std::vector<std::uint8_t> bits = operands_.result_bits();
      if (keep == Keep::both) {
        kept = bits;
      } else if (bits != kept) {
        fail(kernel.name + ": gradients have other bits where out and lse are computed again");
      }
    }
  }

  // A judge that lets zeros through would let anything through.
  void check_zeros() {
    judged_zeros_ = true;
    if (case_.expects_nan || !holds_nonzero(answer_)) return;
    for (const Slot* slot : operands_.outputs()) {
      if (slot == &operands_.lse) continue;
      slot->each([&](auto b, auto h, auto s, auto d) { slot->set(b, h, s, d, 0); });
    }
    if (judge(operands_, answer_).pass) {
      fail("an output of zeros passes, too: the case tests nothing");
    }
  }

  const Case& case_;
  Operands& operands_;
  std::string name_;
  Answer answer_;
  std::vector<std::string> failures_{};
  bool judged_zeros_ = false;
};

}  // namespace

Tally& tally() {
  static Tally instance;
  return instance;
}

Execution execute_on(const Kernel& kernel, Operands& operands, Scratch scratch, Stream stream) {
  using Status = Execution::Status;
  try {
    if (kernel.adapter != nullptr) return call_adapter(kernel, operands, stream);
    const OnlyKernel only(kernel.selector);
    Args args = operands.args(Side::device);
    const Plan made = plan(describe(args, operands.options, kernel.operation));
    if (made.kernel() != kernel.name && !made.kernel().ends_with(".empty")) {
      return {Status::failed,
              kernel.name + " was asked for and " + std::string(made.kernel()) + " planned"};
    }
    GuardedWorkspace workspace(scratch == Scratch::given ? made.workspace_size() : 0);
    if (scratch == Scratch::given) args.workspace = workspace.workspace();
    operands.poison_outputs();
    execute(made, args, stream);
    stream.synchronize();
    operands.download_outputs();
    if (const std::string text = operands.damage(); !text.empty()) {
      return {Status::failed, kernel.name + ": " + text};
    }
    if (!workspace.intact()) {
      return {Status::failed, kernel.name + ": memory around the workspace was written"};
    }
  } catch (const Unsupported& error) {
    return {Status::unsupported, kernel.name + ": Unsupported: " + error.what()};
  } catch (const std::exception& error) {
    return {Status::failed, kernel.name + ": " + error.what()};
  }
  return {};
}

bool call(const Kernel& kernel, const Args& args, const Options& options) {
  if (kernel.adapter == nullptr) {
    if (leaves_out(kernel, describe(args, options, kernel.operation))) return false;
    const OnlyKernel only(kernel.selector);
    execute(plan(describe(args, options, kernel.operation)), args);
  } else {
    const Support support = kernel.adapter->supports(kernel.operation, args, options);
    if (!support) return skip(kernel, support.reason), false;
    try {
      kernel.adapter->call(kernel.operation, args, options);
    } catch (const Unsupported& error) {
      return skip(kernel, error.what()), false;
    }
  }
  Stream().synchronize();
  return true;
}

std::vector<Kernel> kernels_for(Operation operation) {
  std::vector<Kernel> all;
  const auto add = [&](Operation of) {
    for (const Kernel& kernel : kernels(of)) all.push_back(kernel);
  };
  add(operation);
  if (operation == Operation::forward) add(Operation::decode);
  return all;
}

bool leaves_out(const Kernel& kernel, const Problem& problem) {
  if (kernel.adapter != nullptr) return false;
  const std::string gap = gap_of(kernel, problem);
  if (gap.empty()) return false;
  const OnlyKernel only(kernel.selector);
  const Support support = supports(problem);
  if (support && !plan(problem).kernel().ends_with(".empty"))
    throw std::logic_error(kernel.name + " does not refuse " + gap);
  ++tally().unsupported[gap + ", which " + kernel.name + " leaves to others"];
  return true;
}

std::vector<std::string> run(const Case& c, Operands& operands) {
  if (lacking(c) || declined(c, operands)) return {};
  return CaseRun(c, operands).run();
}

std::vector<std::string> run(const Case& c, const std::function<void(Operands&)>& edit) {
  if (lacking(c)) return {};
  Operands operands(c);
  edit(operands);
  return run(c, operands);
}

void for_each_kernel(const std::function<void(const Kernel&)>& body, Operation operation,
                     DType dtype) {
  for (const Kernel& kernel : kernels(operation)) {
    if (kernel.computes(dtype)) body(kernel);
  }
}

}  // namespace tessera::testing
