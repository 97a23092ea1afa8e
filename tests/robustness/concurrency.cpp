// Eight threads at once: what each of them gets is, to the bit, what it gets alone.

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <tessera/buffer.hpp>
#include <tessera/plan.hpp>
#include <tessera/tessera.hpp>

#include "tests/conformance/runner.hpp"

namespace tessera::testing {
namespace {

constexpr int kThreads = 8;
#if defined(__SANITIZE_ADDRESS__)
constexpr int kTimes = 2;  // each takes ten times as long
#else
constexpr int kTimes = 10;
#endif

// A call of its own operands, which it can make again and again.
class Caller {
 public:
  enum class Way : std::uint8_t { own_arena, own_workspace, planning };

  Caller(const Case& c, Way way) : what_(name(c)), way_(way), operands_(c) {
    if (c.operation == Operation::backward) operands_.fill_results();
    operands_.keep = c.keep;
    operands_.upload();
    args_ = operands_.args(Side::device);
    plan_ = std::make_unique<Plan>(tessera::plan(describe(args_, operands_.options, c.operation)));
  }

  // With a plan that serves its operands, too.
  void use(const Plan& plan) { *plan_ = plan; }
  const Plan& plan() const { return *plan_; }

  // Fills the outputs with NaN, before.
  void call() {
    operands_.poison_outputs();
    Args args = args_;
    if (way_ == Way::planning) {
      const Plan made =
          tessera::plan(describe(args, operands_.options, plan_->problem().operation));
      return execute(made, args);
    }
    if (way_ == Way::own_workspace) {
      if (workspace_.size() == 0) workspace_ = Buffer(plan_->workspace_size());
      args.workspace = {workspace_.data(), workspace_.size()};
    }
    execute(*plan_, args);
  }

  void remember() { expected_ = bits(); }
  bool as_remembered() { return bits() == expected_; }
  const std::string& what() const { return what_; }

 private:
  std::vector<std::uint8_t> bits() {
    operands_.download_outputs();
    return operands_.result_bits();
  }

  std::string what_;
  Way way_;
  Operands operands_;
  Args args_{};
  std::unique_ptr<Plan> plan_{};
  Buffer workspace_{};
  std::vector<std::uint8_t> expected_{};
};

// Each alone, then all at once, `times` times each.
void expect_same_bits(std::vector<std::unique_ptr<Caller>>& callers, int times) {
  for (auto& caller : callers) {
    caller->call();
    caller->remember();
  }
  std::atomic<int> waiting = static_cast<int>(callers.size());
  std::vector<std::string> failures(callers.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < callers.size(); ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      try {
        for (int time = 0; time < times && failures[i].empty(); ++time) {
          callers[i]->call();
          if (!callers[i]->as_remembered()) failures[i] = "other bits";
        }
      } catch (const std::exception& error) {
        failures[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < callers.size(); ++i) {
    EXPECT_EQ(failures[i], "") << "thread " << i << ": " << callers[i]->what() << ", "
                               << callers[i]->plan().kernel();
  }
}

// Large enough to be spread over threads, small enough to be called often.
Case case_of(Operation operation, std::uint64_t fill) {
  Case c{.label = "concurrent",
         .dtype = DType::fp32,
         .batch = 2,
         .head_q = 2,
         .head_k = 1,
         .seq_q = operation == Operation::decode ? 2 : 70,
         .seq_k = operation == Operation::decode ? 1500 : 90,
         .dim = 32,
         .dim_v = 32};
  c.operation = operation;
  c.fill = fill;
  return c;
}

constexpr Operation kOperations[] = {Operation::forward, Operation::backward, Operation::decode};

TEST(Concurrency, OnePlanOnOperandsOfEachThread) {
  for (const Operation operation : kOperations) {
    for (const Kernel& kernel : kernels(operation)) {
      if (!kernel.computes(DType::fp32)) continue;
      const OnlyKernel only(kernel.selector);
      std::vector<std::unique_ptr<Caller>> callers;
      for (int i = 0; i < kThreads; ++i) {
        const auto way = i % 2 == 0 ? Caller::Way::own_arena : Caller::Way::own_workspace;
        callers.push_back(
            std::make_unique<Caller>(case_of(operation, static_cast<std::uint64_t>(i)), way));
        callers.back()->use(callers.front()->plan());
      }
      expect_same_bits(callers, kTimes);
    }
  }
}

// Shapes, types, options and operations differ, and with them the size of the scratch memory that
// all share; three plan anew each time, three bring a workspace.
TEST(Concurrency, AnotherProblemInEachThread) {
  for (const Kernel& kernel : kernels(Operation::backward)) {  // the others have a namesake
    if (!kernel.computes(DType::fp32)) continue;
    const OnlyKernel only(kernel.selector);
    std::vector<std::unique_ptr<Caller>> callers;
    for (int i = 0; i < kThreads; ++i) {
      Case c = case_of(kOperations[i % 3], static_cast<std::uint64_t>(i));
      c.dtype = i < 4 ? DType::fp32 : i < 6 ? DType::fp16 : DType::bf16;
      c.dim = c.dim_v = 8 * (i + 1);
      if (c.operation == Operation::backward && i > 3) c.keep = Keep::nothing;
      if (i % 2 == 1) {
        c.mask = Mask::causal(Alignment::BottomRight);
        c.bias = Bias::fp32;
        c.sinks = true;
        c.dropout = 0.25;
      }
      if (i == 6) {
        c.packed = true;
        c.lengths_q = {40, 0, 33};
        c.lengths_k = {20, 7, 70};
      }
      callers.push_back(std::make_unique<Caller>(c, static_cast<Caller::Way>(i / 3)));
    }
    expect_same_bits(callers, kTimes);
  }
}

}  // namespace
}  // namespace tessera::testing
