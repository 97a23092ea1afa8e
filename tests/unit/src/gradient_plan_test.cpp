// Plans of backward and decode: what they refuse, hold and describe, and which calls are legal.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/unit/src/call.hpp"

namespace tessera::testing {
namespace {

// What a plan was made for is what it takes: no operand more or less, no other strides.
TEST(GradientPlan, RefusesOtherProblems) {
  const Plan made = plan(Call::gradients().problem());
  struct Change {
    void (*apply)(Call&);
    const char* text;
  };
  const Change changes[] = {
      {[](Call& c) { c.args.dlse = {}; },
       "dlse is absent; the plan was made with it: plan again with describe(args, options)"},
      {[](Call& c) { c.args.dbias = {}; },
       "dbias is absent; the plan was made with it: plan again with describe(args, options)"},
      {[](Call& c) { c.args.dsink = {}; },
       "dsink is absent; the plan was made with it: plan again with describe(args, options)"},
      {[](Call& c) { c.args.out = {}; },
       "out is absent; the plan was made with it: plan again with describe(args, options)"},
      {[](Call& c) { c.args.out = {}, c.args.lse = {}; },
       "out is absent; the plan was made with it: plan again with describe(args, options)"},
      {[](Call& c) { c.args.dout.stride.batch = 0; },
       "dout.stride.batch is 0; the plan was made for 160: plan again for other shapes"},
      {[](Call& c) {
         c.args.dq.data = c.outputs(16384);
         c.args.dq.stride.batch = 400;
       },
       "dq.stride.batch is 400; the plan was made for 320: plan again for other shapes"},
  };
  for (const Change& change : changes) {
    Call call = Call::gradients();
    change.apply(call);
    const Thrown thrown = thrown_by([&] { execute(made, call.args); });
    EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument);
    EXPECT_EQ(thrown.text, change.text);
    EXPECT_TRUE(call.outputs_are_untouched());
  }
  Call without = Call::gradients();
  without.args.dlse = {};
  const Thrown thrown =
      thrown_by([&] { execute(plan(without.problem()), Call::gradients().args); });
  EXPECT_EQ(thrown.text,
            "dlse is given; the plan was made without it: plan again with describe(args, options)");
}

TEST(GradientPlan, HoldsAndDescribesItsProblem) {
  Call call = Call::gradients();
  call.options.dropout = 0.1;
  const Plan made = plan(call.problem());
  EXPECT_EQ(made.problem(), call.problem());
  EXPECT_TRUE(made.kernel().starts_with("backward."));
  EXPECT_GE(made.splits(), 1);
  const std::string head =
      "problem    backward fp32, query [2, 4, 5, 16], key [2, 2, 7, 16], dim_v 8, ";
  const std::string options =
      "window 4 left 2 right bottom-right, key_begin, key_end, query_end, alibi_slopes, bias, "
      "boolean_mask, sinks, softcap, dropout, ";
  const auto first_line = [](const Plan& plan) {
    const std::string text = plan.describe();
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first_line(made), head + options + "dlse, dbias, dsink");
  const std::string text = made.describe();
  EXPECT_NE(text.find("kernel     " + std::string(made.kernel()) + "\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("workspace  " + std::to_string(made.workspace_size()) + " bytes\n"),
            std::string::npos)
      << text;
  call.args.out = {};
  EXPECT_EQ(first_line(plan(call.problem())),
            head + options + "out recomputed, dlse, dbias, dsink");
  call.args.lse = {};
  call.args.dlse = {};
  call.args.dbias = {};
  EXPECT_EQ(first_line(plan(call.problem())), head + options + "out and lse recomputed, dsink");
}

TEST(DecodePlan, DescribesItsProblem) {
  Call call = Call::dense();
  call.operation = Operation::decode;
  const Plan made = plan(call.problem());
  EXPECT_TRUE(made.kernel().starts_with("decode."));
  EXPECT_TRUE(made.describe().starts_with(
      "problem    decode fp32, query [2, 4, 5, 16], key [2, 2, 7, 16], dim_v 8, lse\n"))
      << made.describe();
}

TEST(GradientDescribe, TakesWhatIsGiven) {
  Call call = Call::gradients();
  const Problem all = call.problem();
  EXPECT_EQ(all.operation, Operation::backward);
  for (const auto& [spec, tensor] :
       {std::pair{all.dout, call.args.dout}, std::pair{all.dlse, call.args.dlse},
        std::pair{all.dq, ConstTensor(call.args.dq)}, std::pair{all.dk, ConstTensor(call.args.dk)},
        std::pair{all.dv, ConstTensor(call.args.dv)},
        std::pair{all.dbias, ConstTensor(call.args.dbias)},
        std::pair{all.dsink, ConstTensor(call.args.dsink)},
        std::pair{all.out, ConstTensor(call.args.out)},
        std::pair{all.lse, ConstTensor(call.args.lse)}}) {
    ASSERT_TRUE(spec);
    EXPECT_EQ(spec->dtype, tensor.dtype);
    EXPECT_EQ(spec->extent, tensor.extent);
    EXPECT_EQ(spec->stride, tensor.stride);
  }
  call.args.out = {};
  call.args.dlse = {};
  call.args.dbias = {};
  call.args.dsink = {};
  const Problem few = call.problem();
  EXPECT_FALSE(few.out);
  EXPECT_TRUE(few.lse);
  EXPECT_FALSE(few.dlse);
  EXPECT_FALSE(few.dbias);
  EXPECT_FALSE(few.dsink);
  // Forward and decode do not look at gradients.
  const Problem forward = describe(Call::gradients().args, {}, Operation::forward);
  const Problem decode = describe(Call::gradients().args, {}, Operation::decode);
  for (const Problem* problem : {&forward, &decode}) {
    for (const auto& spec : {problem->dout, problem->dlse, problem->dq, problem->dk, problem->dv,
                             problem->dbias, problem->dsink}) {
      EXPECT_FALSE(spec);
    }
    EXPECT_TRUE(problem->out);
  }
}

TEST(GradientLegal, WithoutWhatIsOptional) {
  for (const bool lse : {false, true}) {
    Call call = Call::gradients();
    call.args.out = {};
    if (!lse) call.args.lse = {};
    call.args.dlse = {};
    call.args.dbias = {};
    call.args.dsink = {};
    EXPECT_NO_THROW(call.run());
  }
}

TEST(GradientLegal, NothingToWriteLaunchesNothing) {
  Call call;
  call.operation = Operation::backward;
  const Extents q{.batch = 0, .head = 4, .seq = 5, .dim = 16};
  const auto input = [](const Extents& e) { return ConstTensor::bhsd(nullptr, DType::fp32, e); };
  const auto output = [](const Extents& e) { return Tensor::bhsd(nullptr, DType::fp32, e); };
  call.args.query = call.args.key = call.args.value = call.args.dout = input(q);
  call.args.dq = call.args.dk = call.args.dv = output(q);
  EXPECT_EQ(plan(call.problem()).kernel(), "backward.empty");
  EXPECT_EQ(plan(call.problem()).workspace_size(), 0u);
  EXPECT_NO_THROW(call.run());
  call.operation = Operation::decode;
  call.args.out = output(q);
  EXPECT_EQ(plan(call.problem()).kernel(), "decode.empty");
  EXPECT_NO_THROW(call.run());
}

// dout read from one number a row, batch or head.
TEST(GradientLegal, DoutAndDlseOfStrideZero) {
  Call call = Call::gradients();
  call.args.dout.stride = {.dim = 1};
  call.args.dlse.stride = {.dim = 1};
  EXPECT_NO_THROW(call.run());
}

}  // namespace
}  // namespace tessera::testing
