// One plan for many calls, many plans side by side.

#include <algorithm>
#include <vector>

#include <tessera/attention.hpp>
#include <tessera/plan.hpp>
#include <tessera/stream.hpp>

#include "tests/call_in_one.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

constexpr std::array kOperations{Operation::forward, Operation::backward, Operation::decode};

void on_kernels_of_all(const std::function<void(const Kernel&)>& body, DType dtype = DType::fp32) {
  for (const Operation operation : kOperations) for_each_kernel(body, operation, dtype);
}

// Executes a plan on operands and judges the result.
void expect_plan_serves(const Plan& made, Operands& operands, const Kernel& kernel) {
  const Answer right = answer(operands);
  operands.upload();
  operands.poison_outputs();
  execute(made, operands.args(Side::device));
  Stream().synchronize();
  operands.download_outputs();
  EXPECT_EQ(operands.damage(), "");
  const auto verdict = judge(operands, right);
  EXPECT_TRUE(verdict.pass) << kernel.name << ": " << verdict.text;
  ++tally().runs[kernel.name];
}

TEST(Plans, ServeOtherDataScaleSoftcapAndSeed) {
  for (const DType dtype : kTypes) {
    on_kernels_of_all(
        [&](const Kernel& kernel) {
          const OnlyKernel only(kernel.selector);
          Case c{.label = "reuse",
                 .dtype = dtype,
                 .batch = 2,
                 .head_q = 2,
                 .head_k = 1,
                 .seq_q = 65,
                 .seq_k = 130,
                 .mask = Mask::causal(Alignment::BottomRight),
                 .scale = 0.125f,
                 .softcap = 3,
                 .alibi = Alibi::per_head,
                 .sinks = true,
                 .dropout = 0.25,
                 .seed = 1,
                 .operation = kernel.operation,
                 .dlse = true,
                 .dsink = true};
          c.key_end = {130, 70};
          Operands first(c);
          if (leaves_out(kernel,
                         describe(first.args(Side::device), first.options, kernel.operation)))
            return;
          const Plan made =
              plan(describe(first.args(Side::device), first.options, kernel.operation));
          expect_plan_serves(made, first, kernel);
          for (int call = 0; call < 4; ++call) {
            c.fill += 1;
            c.scale = call == 1 ? std::optional<float>{}
                                : std::optional<float>{-0.05f * static_cast<float>(call)};
            c.softcap *= 2;
            c.seed += 7;
            c.offset += std::uint64_t{1} << 33;
            c.key_end = {60 + call, 130};
            Operands other(c);
            expect_plan_serves(made, other, kernel);
          }
          expect_plan_serves(made, first, kernel);
        },
        dtype);
  }
}

TEST(Plans, ServeOtherPackedLengths) {
  on_kernels_of_all(
      [&](const Kernel& kernel) {
        const OnlyKernel only(kernel.selector);
        Case c{.label = "reuse_packed",
               .dtype = DType::bf16,
               .head_q = 4,
               .head_k = 2,
               .mask = Mask::causal(Alignment::BottomRight),
               .layout = Layout::bshd,
               .packed = true,
               .lengths_q = {70, 0, 30},
               .lengths_k = {20, 60, 70},
               .states_maximum = false,
               .operation = kernel.operation};
        Operands first(c);
        const Problem problem = describe(first.args(Side::device), first.options, kernel.operation);
        if (leaves_out(kernel, problem)) return;
        const Plan made = plan(problem);
        expect_plan_serves(made, first, kernel);
        c.lengths_q = {1, 98, 1};
        c.lengths_k = {0, 150, 0};
        Operands second(c);
        expect_plan_serves(made, second, kernel);
        c.lengths_q = {0, 0, 100};
        c.lengths_k = {149, 1, 0};
        Operands third(c);
        expect_plan_serves(made, third, kernel);
      },
      DType::bf16);
}

std::int64_t largest_up_to(std::int64_t dim) { return std::min(dim, largest_head_dim()); }

std::vector<Case> assorted(Operation operation) {
  std::vector<Case> cases{
      {.label = "small", .dtype = DType::fp32, .seq_q = 16, .seq_k = 16, .dim = 8, .dim_v = 8},
      {.label = "wide",
       .dtype = DType::bf16,
       .head_q = 2,
       .head_k = 1,
       .seq_q = 65,
       .seq_k = 257,
       .dim = largest_up_to(128),
       .dim_v = largest_up_to(128),
       .mask = Mask::causal(Alignment::BottomRight)},
      {.label = "general",
       .dtype = DType::fp16,
       .batch = 2,
       .head_q = 3,
       .head_k = 3,
       .seq_q = 33,
       .seq_k = 127,
       .dim = largest_up_to(72),
       .dim_v = largest_up_to(72),
       .softcap = 4,
       .bias = Bias::fp32,
       .dropout = 0.5,
       .seed = 3},
      {.label = "packed",
       .dtype = DType::bf16,
       .layout = Layout::bshd,
       .packed = true,
       .lengths_q = {3, 65, 0},
       .lengths_k = {9, 65, 4}}};
  for (Case& c : cases) {
    c.operation = operation;
    c.dlse = c.dbias = true;
  }
  return cases;
}

TEST(Plans, Interleaved) {
  on_kernels_of_all([&](const Kernel& kernel) {
    const OnlyKernel only(kernel.selector);
    std::vector<Operands> operands;
    std::vector<Plan> plans;
    std::vector<std::vector<std::uint8_t>> alone;
    for (const Case& c : assorted(kernel.operation)) {
      if (!kernel.computes(c.dtype)) continue;
      operands.emplace_back(c);
      if (leaves_out(kernel, describe(operands.back().args(Side::device), operands.back().options,
                                      kernel.operation))) {
        operands.pop_back();
        continue;
      }
      plans.push_back(plan(
          describe(operands.back().args(Side::device), operands.back().options, kernel.operation)));
      expect_plan_serves(plans.back(), operands.back(), kernel);
      alone.push_back(operands.back().result_bits());
    }
    for (std::size_t step = 0; step < 24; ++step) {
      const std::size_t i = (step * 7 ^ (step / 4 % 2)) % plans.size();
      operands[i].poison_outputs();
      execute(plans[i], operands[i].args(Side::device));
      Stream().synchronize();
      operands[i].download_outputs();
      EXPECT_EQ(operands[i].result_bits(), alone[i]) << kernel.name << " plan " << i;
    }
  });
}

TEST(Plans, OutHasTheSameBitsWithAndWithoutLse) {
  for (const DType dtype : kTypes) {
    for (const bool general : {false, true}) {
      Case c{.label = "lse",
             .dtype = dtype,
             .batch = 2,
             .head_q = 4,
             .head_k = 2,
             .seq_q = 65,
             .seq_k = 130,
             .mask = Mask::causal(Alignment::BottomRight),
             .sinks = general};
      Operands with(c);
      c.lse = false;
      Operands without(c);
      without.upload();
      on_each_kernel(with, [&](const Kernel& kernel) {
        ASSERT_EQ(execute_on(kernel, without).status, Execution::Status::done);
        std::vector<std::uint8_t> bits = with.result_bits();
        bits.resize(without.result_bits().size());  // out comes first
        EXPECT_EQ(bits, without.result_bits()) << kernel.name;
      });
    }
  }
}

// Whatever kernels are chosen: forward and backward may come from different instruction sets.
TEST(Plans, GradientsHaveTheSameBitsWhateverWasKept) {
  for (const DType dtype : kTypes) {
    Operands operands({.dtype = dtype,
                       .head_q = 4,
                       .head_k = 2,
                       .seq_q = 70,
                       .seq_k = 150,
                       .dim = 48,
                       .dim_v = 32,
                       .mask = Mask::causal(Alignment::BottomRight),
                       .operation = Operation::backward});
    const auto problem = [&] {
      return describe(operands.args(Side::device), operands.options, Operation::backward);
    };
    if (!supports(problem())) {
      ++tally().unsupported["backward of " + std::string(to_string(dtype))];
      continue;
    }
    operands.fill_results();
    operands.upload();
    std::vector<std::uint8_t> kept;
    for (const Keep keep : {Keep::both, Keep::lse, Keep::nothing}) {
      operands.keep = keep;
      operands.poison_outputs();
      execute(plan(problem()), operands.args(Side::device));
      Stream().synchronize();
      operands.download_outputs();
      if (keep == Keep::both) kept = operands.result_bits();
      EXPECT_EQ(operands.result_bits(), kept) << to_string(dtype);
    }
  }
}

TEST(Plans, OneCallIsPlanAndExecute) {
  for (const Operation operation : kOperations) {
    if (!computes(operation)) {
      ++tally().unsupported[to_string(operation) + ", which this backend has no kernel for"];
      continue;
    }
    for (const Case& c : assorted(operation)) {
      const std::vector<Kernel>& all = kernels(operation);
      const auto computes_it = [&](const Kernel& kernel) { return kernel.computes(c.dtype); };
      if (std::none_of(all.begin(), all.end(), computes_it)) {
        ++tally().unsupported[to_string(operation) + " of " + std::string(to_string(c.dtype))];
        continue;
      }
      Operands operands(c);
      prepare(operands);
      const Args args = operands.args(Side::device);
      operands.poison_outputs();
      execute(plan(describe(args, operands.options, operation)), args);
      Stream().synchronize();
      operands.download_outputs();
      const std::vector<std::uint8_t> bits = operands.result_bits();
      operands.poison_outputs();
      call_in_one(operation, args, operands.options);
      Stream().synchronize();
      operands.download_outputs();
      EXPECT_EQ(operands.result_bits(), bits) << name(c);
    }
  }
}

TEST(Plans, ReportTheRealisedDropout) {
  for (const auto& [asked, realised] : std::initializer_list<std::pair<double, double>>{
           {0.0, 0.0},
           {0.1, 6554.0 / 65536},
           {0.5, 0.5},
           {1.0, 1.0},
           {1e-9, 0.0},
           {1.5 / 65536, 2.0 / 65536},
           {2.5 / 65536, 2.0 / 65536}}) {  // ties to even
    Problem problem = plainest_problem();
    problem.options.dropout = asked;
    EXPECT_EQ(plan(problem).realised_dropout(), realised) << asked;
  }
}

TEST(Plans, NameTheirKernelInTheDescription) {
  on_kernels_of_all([](const Kernel& kernel) {
    const OnlyKernel only(kernel.selector);
    const Plan made = plan(plainest_problem(kernel.operation));
    EXPECT_EQ(made.kernel(), kernel.name);
    EXPECT_NE(made.describe().find(kernel.name), std::string::npos) << made.describe();
    EXPECT_GE(made.splits(), 1);
  });
}

}  // namespace
}  // namespace tessera::testing
