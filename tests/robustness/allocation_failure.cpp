// Every allocation of every call fails once, alone and with all that follow. What a call may do
// then is succeed, with the right bits, or throw std::bad_alloc or DeviceError with its outputs as
// they were. In neither case is anything lost, and the next call is as if nothing had been.

#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <tessera/tessera.h>
#include <tessera/buffer.hpp>
#include <tessera/error.hpp>
#include <tessera/info.hpp>
#include <tessera/tessera.hpp>

#include "tests/call_in_one.hpp"
#include "tests/conformance/runner.hpp"
#include "tests/robustness/failing_new.hpp"

namespace tessera::testing {
namespace {

enum class Ended : std::uint8_t { done, refused, otherwise };

// What a call came to. Allocates nothing itself.
template <class Call>
Ended end_of(const Call& call) noexcept {
  try {
    call();
    return Ended::done;
  } catch (const std::bad_alloc&) {
    return Ended::refused;
  } catch (const DeviceError&) {
    return Ended::refused;
  } catch (...) {
    return Ended::otherwise;
  }
}

Ended end_of_status(tessera_status status) noexcept {
  if (status == tessera_ok) return Ended::done;
  if (*tessera_last_error() == '\0') return Ended::otherwise;
  return status == tessera_out_of_memory || status == tessera_device_error ? Ended::refused
                                                                           : Ended::otherwise;
}

// A call and what must be seen after it; what is wrong is said by a text.
struct Trial {
  std::function<Ended()> call{};
  std::function<void()> prepare = [] {};
  std::function<std::string()> when_done = [] { return std::string(); };
  std::function<std::string()> when_refused = [] { return std::string(); };
};

std::string run_unharmed(const Trial& trial) {
  trial.prepare();
  if (trial.call() != Ended::done) return "fails without a failing allocation";
  return trial.when_done();
}

// Lets allocation `n` fail. `over`: there were fewer.
std::string run_harmed(const Trial& trial, std::int64_t n, FailingNew::Which which, bool& over) {
  trial.prepare();
  const std::int64_t before = live_allocations();
  Ended ended{};
  {
    const FailingNew failing(n, which);
    ended = trial.call();
    over = !failing.failed();
  }
  const std::int64_t lost = live_allocations() - before;
  if (lost != 0) return std::to_string(lost) + " allocations are not freed";
  switch (ended) {
    case Ended::done:
      return trial.when_done();
    case Ended::refused:
      return over ? "fails without a failing allocation" : trial.when_refused();
    default:
      return "ends with something else than std::bad_alloc or DeviceError";
  }
}

// Returns how many allocations the call makes.
std::int64_t fail_each_allocation(const std::string& what, const Trial& trial) {
  constexpr std::int64_t kMost = 100'000;
  // Twice: what is allocated once and kept is no loss.
  for (int i = 0; i < 2; ++i) {
    const std::string text = run_unharmed(trial);
    EXPECT_EQ(text, "") << what;
    if (!text.empty()) return 0;
  }
  for (const auto which : {FailingNew::Which::one, FailingNew::Which::all_from}) {
    bool over = false;
    for (std::int64_t n = 1; !over; ++n) {
      std::string text = run_harmed(trial, n, which, over);
      if (text.empty() && !over) text = run_unharmed(trial);
      if (text.empty() && n < kMost) {
        if (over && which == FailingNew::Which::all_from) return n - 1;
        continue;
      }
      ADD_FAILURE() << what << ": with allocation " << n
                    << (which == FailingNew::Which::one ? "" : " and all that follow")
                    << " failing: " << text;
      break;
    }
  }
  return 0;
}

// A call that writes outputs of operands, which lie in memory of the device.
Trial writing(Operands& operands, std::function<Ended()> call) {
  operands.poison_outputs();
  operands.download_outputs();
  const std::vector<std::uint8_t> poisoned = operands.result_bits();
  EXPECT_EQ(call(), Ended::done);
  operands.download_outputs();
  const std::vector<std::uint8_t> right = operands.result_bits();
  const auto expect = [&operands](const std::vector<std::uint8_t>& bits, const char* wrong) {
    operands.download_outputs();
    const std::string damage = operands.damage();
    return damage.empty() && operands.result_bits() != bits ? std::string(wrong) : damage;
  };
  return {.call = std::move(call),
          .prepare = [&operands] { operands.poison_outputs(); },
          .when_done = [=] { return expect(right, "the results have other bits"); },
          .when_refused = [=] { return expect(poisoned, "it failed and outputs were written"); }};
}

Case small(std::string label, DType dtype) {
  return {.label = std::move(label),
          .dtype = dtype,
          .batch = 2,
          .head_q = 4,
          .head_k = 2,
          .seq_q = 37,
          .seq_k = 70,
          .dim = 16,
          .dim_v = 24};
}

Case everything() {
  Case c = small("everything", DType::bf16);
  c.mask = Mask::causal(Alignment::BottomRight);
  c.key_begin = {0, 3};
  c.key_end = {60, 70};
  c.query_end = {37, 30};
  c.softcap = 10;
  c.alibi = Alibi::per_head;
  c.bias = Bias::fp32;
  c.boolean_mask = true;
  c.sinks = true;
  c.dropout = 0.25;
  return c;
}

Case packed() {
  Case c = small("packed", DType::fp16);
  c.packed = true;
  c.lengths_q = {5, 0, 40};
  c.lengths_k = {40, 3, 33};
  return c;
}

// As much work as is spread over threads.
Case wide() {
  Case c = small("wide", DType::fp32);
  c.head_q = c.head_k;
  c.seq_q = c.seq_k = 130;
  return c;
}

std::vector<Case> cases(Operation operation) {
  std::vector<Case> all;
  for (Case c : {small("plain", DType::fp32), everything(), packed(), wide()}) {
    c.operation = operation;
    if (operation == Operation::decode && !c.packed) c.seq_q = 3;
    if (operation == Operation::decode && !c.packed && c.label == "wide") c.seq_k = 3000;
    all.push_back(c);
    if (operation != Operation::backward) continue;
    for (const Keep keep : {Keep::lse, Keep::nothing}) {
      all.push_back(c);
      all.back().keep = keep;
    }
  }
  return all;
}

class AllocationFailure : public ::testing::TestWithParam<Operation> {
 protected:
  // Calls `body(operands, kernel, what)` for all cases of the operation on all kernels.
  template <class Body>
  static void for_each_case(Body body) {
    for (const Case& c : cases(GetParam())) {
      Operands operands(c);
      if (c.operation == Operation::backward) operands.fill_results();
      operands.keep = c.keep;
      operands.upload();
      for (const Kernel& kernel : kernels(c.operation)) {
        if (!kernel.computes(c.dtype)) continue;
        const OnlyKernel only(kernel.selector);
        body(operands, kernel.name + ", " + name(c));
        if (HasFailure()) return;
      }
    }
  }
};

TEST_P(AllocationFailure, Execute) {
  for_each_case([](Operands& operands, const std::string& what) {
    Args args = operands.args(Side::device);
    const Plan made = plan(describe(args, operands.options, GetParam()));
    const auto call = [&] { return end_of([&] { execute(made, args); }); };
    fail_each_allocation("execute: " + what, writing(operands, call));
    const Buffer workspace(made.workspace_size());
    args.workspace = {const_cast<void*>(workspace.data()), workspace.size()};
    fail_each_allocation("execute with a workspace: " + what, writing(operands, call));
  });
}

TEST_P(AllocationFailure, InOneCall) {
  for_each_case([](Operands& operands, const std::string& what) {
    const Args args = operands.args(Side::device);
    const auto call = [&] {
      return end_of([&] { call_in_one(GetParam(), args, operands.options); });
    };
    EXPECT_GT(fail_each_allocation(what, writing(operands, call)), 0);
  });
}

TEST_P(AllocationFailure, Plan) {
  for_each_case([](Operands& operands, const std::string& what) {
    const Args args = operands.args(Side::device);
    const std::string expected = plan(describe(args, operands.options, GetParam())).describe();
    bool same = false;
    const auto planning = [&] {
      return end_of([&] {
        const Plan made = plan(describe(args, operands.options, GetParam()));
        same = made.describe() == expected;
      });
    };
    const Trial trial{.call = planning, .when_done = [&] {
                        return same ? "" : "the plan describes itself otherwise";
                      }};
    EXPECT_GT(fail_each_allocation("plan: " + what, trial), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(, AllocationFailure,
                         ::testing::Values(Operation::forward, Operation::backward,
                                           Operation::decode),
                         [](const auto& given) { return to_string(given.param); });

// It never throws; what it cannot find out for want of memory is Unsupported.
TEST(AllocationFailureOf, Supports) {
  const Problem plain = plainest_problem();
  Problem wrong = plain;
  wrong.value.extent.seq = 15;
  Problem unsupported = plain;
  unsupported.paged = true;
  using Status = Support::Status;
  for (const auto& [problem, status] :
       {std::pair{plain, Status::Supported}, std::pair{wrong, Status::InvalidArgument},
        std::pair{unsupported, Status::Unsupported}}) {
    Status answer{};
    bool explained = false;
    const auto asking = [&] {
      return end_of([&] {
        const Support support = supports(problem);
        answer = support.status;
        explained = support || !support.reason.empty();
      });
    };
    const auto check = [&] {
      if (!explained) return "no reason is given";
      return answer == status || answer == Status::Unsupported ? "" : "the answer is another";
    };
    fail_each_allocation("supports", {.call = asking, .when_done = check});
    EXPECT_EQ(answer, status);
  }
}

// Whose texts take memory themselves.
TEST(AllocationFailureOf, WhatIsRefused) {
  Operands operands(small("refused", DType::fp32));
  operands.upload();
  for (const bool wrong : {true, false}) {
    Args args = operands.args(Side::device);
    Options options = operands.options;
    (wrong ? args.value.extent.seq : args.query.extent.dim) = wrong ? 69 : 12;
    bool refused = false;
    const auto calling = [&] {
      return end_of([&] {
        try {
          forward(args, options);
        } catch (const InvalidArgument&) {
          refused = true;
        } catch (const Unsupported&) {
          refused = true;
        }
      });
    };
    operands.poison_outputs();
    operands.download_outputs();
    const std::vector<std::uint8_t> poisoned = operands.result_bits();
    const auto untouched = [&] {
      operands.download_outputs();
      return operands.result_bits() == poisoned ? "" : "outputs were written";
    };
    fail_each_allocation("refused", {.call = calling,
                                     .when_done = [&] { return refused ? untouched() : "done"; },
                                     .when_refused = untouched});
  }
}

TEST(AllocationFailureOf, Buffers) {
  const std::vector<std::byte> data(300, std::byte{7});
  std::vector<std::byte> back(300);
  const auto using_them = [&] {
    return end_of([&] {
      Buffer first(data.size());
      Buffer second(data.size());
      copy(first.data(), data.data(), data.size());
      copy(second.data(), first.data(), data.size());
      copy(back.data(), second.data(), data.size());
      Stream().synchronize();
    });
  };
  const auto same = [&] { return back == data ? "" : "other bytes came back"; };
  EXPECT_GT(fail_each_allocation("buffers", {.call = using_them, .when_done = same}), 1);
  const auto too_large = [&] {
    return end_of([&] {
      try {
        const Buffer buffer(std::size_t{1} << 60);
      } catch (const DeviceError&) {
      }
    });
  };
  fail_each_allocation("a buffer that is too large", {.call = too_large});
}

TEST(AllocationFailureOf, DeviceInfo) {
  const DeviceInfo expected = device_info();
  bool same = false;
  const auto asking = [&] {
    return end_of([&] {
      const DeviceInfo info = device_info();
      same = info.name == expected.name && info.isa == expected.isa &&
             info.space == expected.space && info.threads == expected.threads &&
             info.memory == expected.memory;
    });
  };
  fail_each_allocation("device_info", {.call = asking, .when_done = [&] {
                                         return same ? "" : "the device is described otherwise";
                                       }});
}

tessera_tensor to_c(const ConstTensor& t) {
  return {.data = const_cast<void*>(t.data),
          .dtype = static_cast<tessera_dtype>(t.dtype),
          .reserved = 0,
          .extent = {t.extent.batch, t.extent.head, t.extent.seq, t.extent.dim},
          .stride = {t.stride.batch, t.stride.head, t.stride.seq, t.stride.dim}};
}

// Of a case without options.
tessera_args to_c(const Args& args) {
  tessera_args c{};
  c.size = sizeof c;
  c.query = to_c(args.query);
  c.key = to_c(args.key);
  c.value = to_c(args.value);
  c.out = to_c(args.out);
  c.lse = to_c(args.lse);
  if (args.dout.data == nullptr) return c;
  c.dout = to_c(args.dout);
  c.dq = to_c(args.dq);
  c.dk = to_c(args.dk);
  c.dv = to_c(args.dv);
  return c;
}

tessera_status call_c(Operation operation, const tessera_args& args) {
  switch (operation) {
    case Operation::forward:
      return tessera_forward(&args, nullptr, nullptr);
    case Operation::backward:
      return tessera_backward(&args, nullptr, nullptr);
    case Operation::decode:
      return tessera_decode(&args, nullptr, nullptr);
  }
  return tessera_internal_error;
}

class AllocationFailureInC : public ::testing::TestWithParam<Operation> {};

TEST_P(AllocationFailureInC, Calls) {
  const Operation operation = GetParam();
  Case c = small("in_c", DType::fp32);
  c.operation = operation;
  Operands operands(c);
  if (operation == Operation::backward) operands.fill_results();
  operands.upload();
  const tessera_args args = to_c(operands.args(Side::device));
  EXPECT_GT(fail_each_allocation(
                "call", writing(operands, [&] { return end_of_status(call_c(operation, args)); })),
            0);

  const auto number = static_cast<tessera_operation>(operation);
  tessera_plan* plan = nullptr;
  ASSERT_EQ(tessera_plan_create(&plan, number, &args, nullptr), tessera_ok);
  fail_each_allocation("execute", writing(operands, [&] {
                         return end_of_status(tessera_plan_execute(plan, &args, nullptr));
                       }));
  const std::string description = tessera_plan_describe(plan);
  tessera_plan_destroy(plan);

  bool same = true;
  const auto planning = [&] {
    tessera_plan* made = plan;
    const Ended ended = end_of_status(tessera_plan_create(&made, number, &args, nullptr));
    same = (made != nullptr) == (ended == Ended::done) &&
           (made == nullptr || description == tessera_plan_describe(made));
    tessera_plan_destroy(made);
    return ended;
  };
  const auto as_before = [&] { return same ? "" : "the plan is another"; };
  EXPECT_GT(fail_each_allocation(
                "plan", {.call = planning, .when_done = as_before, .when_refused = as_before}),
            0);
  fail_each_allocation("supports", {.call = [&] {
                         return end_of_status(tessera_supports(number, &args, nullptr));
                       }});
}

INSTANTIATE_TEST_SUITE_P(, AllocationFailureInC,
                         ::testing::Values(Operation::forward, Operation::backward,
                                           Operation::decode),
                         [](const auto& given) { return to_string(given.param); });

TEST(AllocationFailureInCOf, WhatIsRefused) {
  Operands operands(small("in_c", DType::fp32));
  tessera_args args = to_c(operands.args(Side::device));
  args.value.extent[2] = 69;
  const auto calling = [&] {
    const tessera_status status = tessera_forward(&args, nullptr, nullptr);
    const std::string_view argument = tessera_last_error_argument();
    if (status == tessera_invalid_argument && argument == "value.extent.seq") return Ended::done;
    return end_of_status(status);
  };
  EXPECT_GT(fail_each_allocation("refused", {.call = calling}), 0);
}

TEST(AllocationFailureInCOf, TheRest) {
  const auto buffers = [] {
    char byte = 1;
    tessera_buffer* buffer = nullptr;
    Ended ended = end_of_status(tessera_buffer_create(&buffer, 100, 0));
    if ((buffer != nullptr) != (ended == Ended::done)) return Ended::otherwise;
    if (ended == Ended::done) {
      ended = end_of_status(tessera_copy(tessera_buffer_data(buffer), &byte, sizeof byte, nullptr));
    }
    tessera_buffer_destroy(buffer);
    return ended;
  };
  EXPECT_GT(fail_each_allocation("buffers", {.call = buffers}), 0);
  fail_each_allocation("synchronize",
                       {.call = [] { return end_of_status(tessera_synchronize(nullptr)); }});
  fail_each_allocation("build_info", {.call = [] {
                         tessera_build build{};
                         build.size = sizeof build;
                         return end_of_status(tessera_build_info(&build));
                       }});
  fail_each_allocation("device_count", {.call = [] {
                         std::int32_t count = 0;
                         return end_of_status(tessera_device_count(&count));
                       }});
  fail_each_allocation("device_info", {.call = [] {
                         tessera_device info{};
                         info.size = sizeof info;
                         return end_of_status(tessera_device_info(0, &info));
                       }});
}

}  // namespace
}  // namespace tessera::testing
