// A plan serves every call of its problem, from any thread, and no other.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <regex>
#include <thread>

#include "tests/unit/src/call.hpp"
#include "tests/unit/src/environment.hpp"

namespace tessera::testing {
namespace {

TEST(Plan, HoldsItsProblem) {
  const Call call = Call::everything();
  const Plan made = plan(call.problem());
  EXPECT_EQ(made.problem(), call.problem());
  EXPECT_TRUE(made.kernel().starts_with("forward."));
  EXPECT_GE(made.splits(), 1);
  EXPECT_EQ(made.realised_dropout(), 0);
}

TEST(Plan, DescribesItself) {
  Call call = Call::everything();
  call.options.dropout = 0.1;
  const Plan made = plan(call.problem());
  const std::string text = made.describe();
  for (const std::string& part :
       {std::string("problem    forward fp32, query [2, 4, 5, 16], key [2, 2, 7, 16], dim_v 8, "
                    "window 4 left 2 right "
                    "bottom-right, key_begin, key_end, query_end, alibi_slopes, bias, "
                    "boolean_mask, sinks, softcap, "
                    "dropout, lse\n"),
        "kernel     " + std::string(made.kernel()) + "\n", std::string("tile       "),
        "splits     " + std::to_string(made.splits()) + "\n",
        "workspace  " + std::to_string(made.workspace_size()) + " bytes\n",
        std::string("dropout    0.100006103515625 realised, 0.1 asked for\n")}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  }
  const std::string causal =
      plan(describe(Call::dense().args, {.mask = Mask::causal(Alignment::TopLeft)})).describe();
  EXPECT_NE(causal.find("dim_v 8, causal top-left, lse\n"), std::string::npos) << causal;
  const std::string packed = plan(Call::packed().problem()).describe();
  EXPECT_NE(packed.find("packed 3 segments of at most 3 x 3"), std::string::npos) << packed;
}

TEST(Plan, DescribesOneAsOne) {
  const std::regex one_of_many(R"(\b1 (panels|rows|blocks|bytes|keys packed))");
  for (const std::int64_t rows : {1, 5, 16, 48, 100, 1000}) {
    const Extents q{.batch = 2, .head = 4, .seq = rows, .dim = 64};
    const TensorSpec spec{.extent = q, .stride = bhsd_strides(q)};
    const std::string text =
        plan({.query = spec, .key = spec, .value = spec, .out = spec}).describe();
    EXPECT_FALSE(std::regex_search(text, one_of_many)) << text;
  }
}

TEST(Plan, RealisesDropoutToTheNearestEven) {
  const auto realised = [](double p) {
    return plan(describe(Call::dense().args, {.dropout = p})).realised_dropout();
  };
  EXPECT_EQ(realised(0), 0);
  EXPECT_EQ(realised(1), 1);
  EXPECT_EQ(realised(0.5), 0.5);
  EXPECT_EQ(realised(0.1), 6554 / 65536.0);
  EXPECT_EQ(realised(0.5 / 65536), 0);            // halfway, to even
  EXPECT_EQ(realised(1.5 / 65536), 2 / 65536.0);  // halfway, to even
  EXPECT_EQ(realised(2.5 / 65536), 2 / 65536.0);
  EXPECT_EQ(realised(1 - 0.25 / 65536), 1);
  EXPECT_EQ(realised(1e-12), 0);
}

TEST(Plan, ServesManyCalls) {
  Call first = Call::dense(), second = Call::dense(), fresh = Call::dense();
  const Plan made = plan(first.problem());
  second.args.query.data = second.inputs(4096);
  second.args.scale = fresh.args.scale = 2;
  fresh.args.query = second.args.query;
  execute(made, first.args);
  execute(made, second.args);
  execute(made, first.args);
  fresh.run();
  EXPECT_EQ(second.out(), fresh.out());
  EXPECT_NE(first.out(), second.out());
}

TEST(Plan, CopiesAndMovesStayPlans) {
  Call call = Call::dense(), other = Call::dense();
  Plan original = plan(call.problem());
  Plan copied = original;
  const Plan moved = std::move(original);  // NOLINT(performance-move-const-arg): moving copies
  copied = moved;
  Stream stream;
  // NOLINTNEXTLINE(bugprone-use-after-move): there is no empty plan
  execute(original, call.args, stream);
  execute(copied, other.args, stream);
  EXPECT_EQ(call.out(), other.out());
  EXPECT_EQ(copied.kernel(), moved.kernel());
  EXPECT_FALSE(call.outputs_are_untouched());
}

TEST(Plan, OutlivesTheFirstCopy) {
  Call call = Call::dense();
  auto first = std::make_unique<Plan>(plan(call.problem()));
  const Plan second = *first;
  first.reset();
  EXPECT_NO_THROW(execute(second, call.args));
}

TEST(Plan, RunsFromSeveralThreads) {
  Call expected = Call::dense();
  expected.run();
  const Plan made = plan(expected.problem());
  std::vector<Call> calls;
  calls.reserve(4);
  for (int i = 0; i < 4; ++i) calls.push_back(Call::dense());
  std::vector<std::thread> threads;
  threads.reserve(calls.size());
  for (Call& call : calls) {
    threads.emplace_back([&made, &call] {
      const Plan own = made;  // NOLINT(performance-unnecessary-copy-initialization): on purpose
      for (int i = 0; i < 50; ++i) execute(own, call.args);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Call& call : calls) EXPECT_EQ(call.out(), expected.out());
}

TEST(Plan, TakesAWorkspaceOfItsSize) {
  Call call = Call::dense(), without = Call::dense();
  const std::size_t size = plan(call.problem()).workspace_size();
  call.args.workspace = {.data = call.outputs(size + 64), .size = size};
  call.run();
  without.run();
  EXPECT_EQ(call.out(), without.out());
}

struct Other {
  const char* name;
  void (*change)(Call&);
  const char* text;
};

// Sound calls that are not the plan's problem.
const Other kOthers[] = {
    {"dtype",
     [](Call& c) {
       for (ConstTensor* tensor : {&c.args.query, &c.args.key, &c.args.value})
         tensor->dtype = DType::bf16;
       c.args.out.dtype = DType::bf16;
     },
     "query.dtype is bf16; the plan was made for fp32"},
    {"seq_k",
     [](Call& c) {
       c.args.key.extent.seq = c.args.value.extent.seq = 6;
       c.args.bias = c.args.boolean_mask = {};
     },
     "key.extent.seq is 6; the plan was made for 7: plan again for other shapes"},
    {"seq_q",
     [](Call& c) {
       c.args.query.extent.seq = c.args.out.extent.seq = c.args.lse.extent.seq = 4;
       c.args.bias = c.args.boolean_mask = {};
     },
     "query.extent.seq is 4; the plan was made for 5: plan again for other shapes"},
    {"stride", [](Call& c) { c.args.key.stride.head = 0; },
     "key.stride.head is 0; the plan was made for 112: plan again for other shapes"},
    {"out_stride", [](Call& c) { c.args.out.stride = bshd_strides(c.args.out.extent); },
     "out.stride.head is 8; the plan was made for 40: plan again for other shapes"},
    {"without_lse", [](Call& c) { c.args.lse = {}; },
     "lse is absent; the plan was made with it: plan again with describe(args, options)"},
    {"without_bias", [](Call& c) { c.args.bias = {}; },
     "bias is absent; the plan was made with it: plan again with describe(args, options)"},
    {"without_boolean_mask", [](Call& c) { c.args.boolean_mask = {}; },
     "boolean_mask is absent; *"},
    {"without_alibi_slopes", [](Call& c) { c.args.alibi_slopes = {}; },
     "alibi_slopes is absent; *"},
    {"without_sinks", [](Call& c) { c.args.sinks = {}; }, "sinks is absent; *"},
    {"without_key_begin", [](Call& c) { c.args.key_begin = {}; }, "key_begin is absent; *"},
    {"without_key_end", [](Call& c) { c.args.key_end = {}; }, "key_end is absent; *"},
    {"without_query_end", [](Call& c) { c.args.query_end = {}; }, "query_end is absent; *"},
    {"without_softcap", [](Call& c) { c.args.softcap = 0; }, "softcap is absent; *"},
    {"bias_extent", [](Call& c) { c.args.bias.extent.head = 1; },
     "bias.extent.head is 1; the plan was made for 4: plan again for other shapes"},
    {"alignment",
     [](Call& c) { c.args.query.data = static_cast<const char*>(c.inputs(1 << 14)) + 4; },
     "query.data is 0x*; the plan was made for addresses that are multiples of 16: *"},
};

TEST(Plan, RefusesOtherProblems) {
  const Call sound = Call::everything();
  const Plan made = plan(sound.problem());
  for (const Other& other : kOthers) {
    Call call = Call::everything();
    other.change(call);
    const Thrown thrown = thrown_by([&] { execute(made, call.args); });
    EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument) << other.name;
    EXPECT_TRUE(matches(thrown.text, other.text)) << other.name << ": " << thrown.text;
    EXPECT_TRUE(call.outputs_are_untouched()) << other.name;
    EXPECT_NO_THROW(call.run()) << other.name;
  }
}

TEST(Plan, RefusesWhatItWasMadeWithout) {
  const Plan made = plan(Call::dense().problem());
  Call call = Call::everything();
  EXPECT_EQ(thrown_by([&] { execute(made, call.args); }).text,
            "alibi_slopes is given; the plan was made without it: plan again with describe(args, "
            "options)");
  call = Call::packed();
  const Plan packed = plan(call.problem());
  call.args.cu_seqlens_q = call.vector<std::int64_t>(DType::int64, {0, 2, 5});
  call.args.cu_seqlens_k = call.vector<std::int32_t>(DType::int32, {0, 3, 6});
  EXPECT_EQ(thrown_by([&] { execute(packed, call.args); }).text,
            "cu_seqlens_q.size is 3; the plan was made for 4: plan again for other shapes");
  call = Call::packed();
  call.args.cu_seqlens_q = call.vector<std::int32_t>(DType::int32, {0, 2, 2, 5});
  EXPECT_EQ(thrown_by([&] { execute(packed, call.args); }).text,
            "cu_seqlens_q.dtype is int32; the plan was made for int64");
}

TEST(Plan, ServesPointersThatAreMoreAligned) {
  Call call = Call::dense();
  Problem problem = call.problem();
  for (TensorSpec* spec :
       {&problem.query, &problem.key, &problem.value, &*problem.out, &*problem.lse}) {
    spec->alignment = 4;
  }
  const Plan made = plan(problem);
  EXPECT_NO_THROW(execute(made, call.args));
  call.args.query.data = static_cast<const char*>(call.inputs(1 << 14)) + 4;
  EXPECT_NO_THROW(execute(made, call.args));
}

// As far as TensorSpec goes: describe() states no more than 16.
TEST(Plan, MadeForMoreAlignmentServesWhatHasIt) {
  for (const std::int64_t alignment : {32, 64, 128}) {
    Call call = Call::dense();
    Problem problem = call.problem();
    problem.query.alignment = alignment;
    const Plan made = plan(problem);
    auto* const aligned = static_cast<const char*>(call.inputs(1 << 14));
    const std::uintptr_t beyond = reinterpret_cast<std::uintptr_t>(aligned) % 128;
    call.args.query.data = aligned + (beyond == 0 ? 0 : 128 - beyond);
    EXPECT_NO_THROW(execute(made, call.args)) << alignment;
    call.args.query.data = static_cast<const char*>(call.args.query.data) + alignment / 2;
    EXPECT_NE(thrown_by([&] { execute(made, call.args); })
                  .text.find("the plan was made for addresses that are multiples of " +
                             std::to_string(alignment)),
              std::string::npos);
  }
}

TEST(Plan, KernelIsForcedByEnvironment) {
  const Problem problem = Call::dense().problem();
  {
    const Environment forced("TESSERA_KERNEL", "generic");
    const Plan made = plan(problem);
    EXPECT_EQ(made.kernel(), "forward.generic");
    EXPECT_NE(made.describe().find("TESSERA_KERNEL=generic"), std::string::npos);
  }
  {
    const Environment forced("TESSERA_KERNEL", "forward.generic");
    EXPECT_EQ(plan(problem).kernel(), "forward.generic");
  }
  for (const char* unknown : {"gener", "generic.forward", ".", "cutlass"}) {
    const Environment forced("TESSERA_KERNEL", unknown);
    const Thrown thrown = thrown_by([&] { plan(problem); });
    EXPECT_EQ(thrown.kind, Thrown::Kind::Unsupported);
    EXPECT_TRUE(matches(thrown.text,
                        "TESSERA_KERNEL is " + std::string(unknown) +
                            ", which names no kernel of forward: this build has *forward.generic*"))
        << thrown.text;
    EXPECT_EQ(supports(problem).status, Support::Status::Unsupported);
  }
  const Environment forced("TESSERA_KERNEL", "");
  EXPECT_NO_THROW(plan(problem));
}

}  // namespace
}  // namespace tessera::testing
