/// check on good input: every option reaches the kernel; what passes, and what must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/command.hpp"
#include "tests/tools/folder.hpp"
#include "tests/tools/tensors.hpp"
#include "tools/io/npy.hpp"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

/// Every option passes the check against float64, and gives other numbers than without it.
TEST(Check, EveryOption) {
  const Folder folder;
  auto tensors = qkv({2, 33, 4, 16}, {2, 33, 2, 16});
  const auto file = [&](const std::string& name, io::Array array) {
    auto more = tensors;
    more[name] = std::move(array);
    return write_tensors(folder.path() / (name + ".safetensors"), more);
  };
  io::Array half = gaussian({33, 33}, 8);
  half.element = io::Element::boolean;
  half.shape = {2, 1, 33, 33};
  half.bytes.resize(2 * 33 * 33);
  for (std::size_t i = 0; i < half.bytes.size(); ++i)
    half.bytes[i] = static_cast<std::byte>(i % 3 == 0);
  const std::string plain = write_tensors(folder.path() / "plain.safetensors", tensors);
  const std::pair<std::string, Words> cases[] = {
      {plain, {}},
      {plain, {"--mask", "causal"}},
      {plain, {"--mask", "causal", "--alignment", "top-left", "--scale", "-0.5"}},
      {plain, {"--mask", "window", "--left", "3"}},
      {plain, {"--mask", "window", "--left", "2", "--right", "1"}},
      {plain, {"--softcap", "2.5"}},
      {plain, {"--scale", "0.5"}},
      {plain, {"--dropout", "0.25", "--seed", "7"}},
      {plain, {"--dropout", "0.25", "--seed", "7", "--offset", "18446744073709551615"}},
      {plain, {"--dtype", "fp16"}},
      {plain, {"--dtype", "bf16"}},
      {file("bias", gaussian({1, 4, 33, 33}, 4)), {}},
      {file("mask", half), {}},
      {file("alibi_slopes", gaussian({4}, 5)), {}},
      {file("sinks", gaussian({4}, 6)), {}},
      {file("key_begin", numbers({0, 5})), {}},
      {file("key_end", numbers({20, 33})), {}},
      {file("query_end", numbers({20, 33})), {"--mask", "causal", "--alignment", "bottom-right"}},
  };
  std::vector<std::string> answers;
  for (const auto& [in, flags] : cases) {
    SCOPED_TRACE(in + ::testing::PrintToString(flags));
    Words check{"check", in, "--json"};
    check.insert(check.end(), flags.begin(), flags.end());
    const Outcome outcome = run_tessera(check);
    ASSERT_EQ(outcome.status, 0) << outcome.error << outcome.out;
    EXPECT_EQ(outcome.json().at("pass"), true);
    EXPECT_LE(outcome.json().at("worst_ratio").get<double>(), 1);
    const auto out = folder.path() / "out.safetensors";
    Words run{"run", in, "-o", out.string()};
    run.insert(run.end(), flags.begin(), flags.end());
    ASSERT_EQ(run_tessera(run).status, 0);
    answers.push_back(tensor_bytes(out.string(), "out"));
    for (std::size_t i = 0; i + 1 < answers.size(); ++i)
      EXPECT_NE(answers[i], answers.back()) << "as in case " << i;
  }
}

TEST(Check, EmptyIsLegal) {
  const Folder folder;
  for (const auto& [q, k] : {std::pair<Shape, Shape>{{0, 4, 2, 8}, {0, 4, 2, 8}},
                             {{1, 0, 2, 8}, {1, 4, 2, 8}},
                             {{1, 4, 2, 8}, {1, 0, 2, 8}}}) {
    const std::string in = write_tensors(folder.path() / "in.safetensors", qkv(q, k));
    const Outcome outcome = run_tessera({"check", in});
    EXPECT_EQ(outcome.status, 0) << outcome.error << outcome.out;
    const auto out = folder.path() / "out.safetensors";
    EXPECT_EQ(run_tessera({"run", in, "-o", out.string()}).status, 0);
    EXPECT_EQ(load(out, "out").shape, q);
  }
}

/// A huge axis beside one of 0 is no element: nothing to do, in no time and no memory.
TEST(Check, EmptyBesideHuge) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const Folder folder;
  auto packed = qkv({0, kHuge, 8});
  packed["cu_seqlens"] = numbers({0, 0, 0});
  // 2^38 pairs of a segment without rows and a head that no row of it has.
  auto segments = qkv({1, 1 << 18, 8});
  segments["cu_seqlens"] = numbers(std::vector<std::int32_t>(1 << 20, 0));
  for (const auto& tensors :
       {qkv({2, 0, kHuge, 8}), qkv({kHuge, 0, 2, 8}), qkv({kHuge, 5, 0, 8}), qkv({0, kHuge, 2, 8}),
        qkv({0, 3, kHuge, 8}), qkv({1, 0, kHuge, 8}), packed, segments}) {
    const std::string in = write_tensors(folder.path() / "in.safetensors", tensors);
    SCOPED_TRACE(io::to_string(tensors.at("q").shape));
    const Outcome outcome = run_tessera({"check", in});
    ASSERT_FALSE(outcome.timed_out);
    ASSERT_EQ(outcome.status, 0) << outcome.error << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("out has no elements to compare"));
    EXPECT_THAT(outcome.out, HasSubstr("PASS"));
    const nlohmann::json json = run_tessera({"check", in, "--json"}).json();
    EXPECT_EQ(json.at("pass"), true);
    EXPECT_EQ(json.at("out").at("numbers"), 0);
    EXPECT_EQ(json.at("lse").at("numbers"), 0);
  }
  const auto npy = folder.path() / "q.npy";
  io::AtomicFile file(npy);
  io::write_npy(file, zeros(io::Element::f32, {kHuge, 0, 1, 8}));
  file.commit();
  const Outcome outcome = run_tessera({"check", npy.string(), npy.string(), npy.string()});
  ASSERT_FALSE(outcome.timed_out);
  EXPECT_EQ(outcome.status, 0) << outcome.error << outcome.out;
}

TEST(Check, ExamplesAndTheirAnswers) {
  const std::tuple<std::string, Words, double> cases[] = {
      {"minilm_dense.safetensors", {"--mask", "none"}, 5e-6},
      {"minilm_dense.safetensors", {"--mask", "causal"}, 5e-6},
      {"minilm_packed.safetensors", {}, 0.05},  // out is bf16: half a step at 4 is 2^-7
  };
  for (const auto& [name, flags, bound] : cases) {
    Words words{"check", example(name), "--json"};
    words.insert(words.end(), flags.begin(), flags.end());
    const Outcome outcome = run_tessera(words);
    EXPECT_EQ(outcome.status, 0) << outcome.error << outcome.out;
    const nlohmann::json json = outcome.json();
    EXPECT_EQ(json.at("pass"), true);
    EXPECT_EQ(json.at("stored").at("compared"), true);
    EXPECT_EQ(json.at("stored").at("pass"), true);
    EXPECT_LT(json.at("stored").at("out").at("max_abs_error").get<double>(), bound);
    EXPECT_LT(json.at("stored").at("lse").at("max_abs_error").get<double>(), 1e-5);
    EXPECT_LT(json.at("out").at("max_abs_error").get<double>(), bound);
  }
  const Outcome converted =
      run_tessera({"check", example("minilm_dense.safetensors"), "--dtype", "bf16", "--json"});
  EXPECT_EQ(converted.status, 0);
  EXPECT_EQ(converted.json().at("stored").at("compared"), false);
}

/// NaN in q makes every number of the answer NaN, ours, the reference's and the file's alike: that
/// is no agreement. NaN in one row leaves the others to be compared.
TEST(Check, NothingComparedIsNoPass) {
  const Folder folder;
  auto tensors = qkv({1, 8, 2, 16});
  const auto fill_with_nan = [](io::Array& array, std::size_t numbers) {
    const float nan = NAN;
    for (std::size_t i = 0; i < numbers; ++i)
      std::memcpy(array.bytes.data() + i * sizeof nan, &nan, sizeof nan);
  };
  const auto check = [&] {
    return run_tessera(
        {"check", write_tensors(folder.path() / "in.safetensors", tensors), "--json"});
  };
  fill_with_nan(tensors.at("q"), 16);
  Outcome outcome = check();
  EXPECT_EQ(outcome.status, 0) << outcome.error << outcome.out;
  EXPECT_EQ(outcome.json().at("reference_nan"), 17);

  fill_with_nan(tensors.at("v"), 8 * 2 * 16);  // lse has numbers, out has none
  outcome = check();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.json().at("pass"), false);
  EXPECT_THAT(outcome.json().at("failure").get<std::string>(),
              ::testing::StartsWith("nothing to compare with: all of out is NaN"));

  fill_with_nan(tensors.at("q"), 8 * 2 * 16);
  tensors["out_full"] = tensors["q"];
  outcome = check();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.json().at("pass"), false);
  EXPECT_THAT(outcome.json().at("failure").get<std::string>(),
              ::testing::StartsWith("nothing to compare with: all of out and lse is NaN"));
  EXPECT_EQ(outcome.json().at("stored").at("compared"), false);
  const Outcome text = run_tessera({"check", (folder.path() / "in.safetensors").string()});
  EXPECT_THAT(text.out, ::testing::Not(HasSubstr("PASS")));
  EXPECT_THAT(text.out, HasSubstr("FAIL"));

  tensors["cu_seqlens"] = numbers({0, 3, 5});  // rows of no segment are no comparison either
  for (const auto& name : {"q", "k", "v", "out_full"}) tensors[name].shape = {8, 2, 16};
  outcome = check();
  EXPECT_EQ(outcome.status, 1) << outcome.out << outcome.error;

  // The file's answer alone is NaN: it is wrong.
  tensors = qkv({1, 8, 2, 16});
  tensors["out_full"] = tensors["q"];
  fill_with_nan(tensors["out_full"], 8 * 2 * 16);
  outcome = check();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.json().at("stored").at("pass"), false);
}

/// Rows of no segment are no part of a stored answer.
TEST(Check, StoredAnswerEndsWithTheLastSegment) {
  const Folder folder;
  auto tensors = qkv({8, 2, 16});
  tensors["cu_seqlens"] = numbers({0, 3, 5});
  const std::string in = write_tensors(folder.path() / "in.safetensors", tensors);
  const std::string out = (folder.path() / "out.safetensors").string();
  ASSERT_EQ(run_tessera({"run", in, "-o", out}).status, 0);
  io::Array stored = load(out, "out");
  const float nan = NAN;
  for (std::size_t i = 5 * 2 * 16; i < 8 * 2 * 16; ++i)
    std::memcpy(stored.bytes.data() + i * sizeof nan, &nan, sizeof nan);
  tensors["out_full"] = stored;
  const Outcome outcome = run_tessera(
      {"check", write_tensors(folder.path() / "stored.safetensors", tensors), "--json"});
  EXPECT_EQ(outcome.status, 0) << outcome.error << outcome.out;
  EXPECT_EQ(outcome.json().at("stored").at("out").at("max_abs_error"), 0);
}

/// A stored causal answer does not say which alignment it is for.
TEST(Check, StoredCausalAnswerNeedsAsManyKeysAsQueries) {
  const Folder folder;
  auto tensors = qkv({10, 2, 16});
  tensors["cu_seqlens_q"] = numbers({0, 4, 10});
  tensors["cu_seqlens_k"] = numbers({0, 6, 10});
  tensors["out_causal"] = tensors["q"];
  const Outcome outcome =
      run_tessera({"check", write_tensors(folder.path() / "in.safetensors", tensors), "--mask",
                   "causal", "--alignment", "top-left", "--json"});
  EXPECT_EQ(outcome.status, 0) << outcome.error << outcome.out;
  EXPECT_EQ(outcome.json().at("stored").at("compared"), false);
}

/// float64 holds scores that float32 does not: said as that, by check and by run.
TEST(Check, ScoresBeyondFloat32) {
  const Folder folder;
  const std::string in = example("minilm_dense.safetensors");
  const Outcome outcome = run_tessera({"check", in, "--scale", "1e38"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.out, HasSubstr("scores leave float32"));
  EXPECT_THAT(outcome.out, HasSubstr("use a smaller --scale\n"));
  EXPECT_THAT(outcome.out,
              ::testing::ContainsRegex("  out +none of 196608 numbers is finite in both\n"));
  for (const char* confusing : {"-nan", "inf ", "PASS"})
    EXPECT_THAT(outcome.out, ::testing::Not(HasSubstr(confusing)));
  const Outcome run = run_tessera(
      {"run", in, "--scale", "1e38", "-o", (folder.path() / "out.safetensors").string(), "--json"});
  EXPECT_EQ(run.status, 0);
  EXPECT_GT(run.json().at("nan"), 0);
  EXPECT_EQ(run_tessera({"check", in, "--scale", "1e30"}).status, 0);
}

/// A stored answer that is wrong in one element of 100,000 fails the check.
TEST(Check, WrongStoredAnswerFails) {
  const Folder folder;
  const io::SafetensorsFile file(example("minilm_dense.safetensors"));
  std::map<std::string, io::Array> tensors;
  for (const char* name : {"q", "k", "v", "out_full", "lse_full"}) tensors[name] = file.load(name);
  io::Array& out = tensors.at("out_full");
  float value = 0;
  std::memcpy(&value, out.bytes.data() + 40'000, sizeof value);
  value += 0.01f;
  std::memcpy(out.bytes.data() + 40'000, &value, sizeof value);
  const std::string in = write_tensors(folder.path() / "in.safetensors", tensors);
  const Outcome outcome = run_tessera({"check", in});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, HasSubstr("FAIL"));
  EXPECT_THAT(outcome.out, HasSubstr("the stored answer is wrong"));
  const Outcome json = run_tessera({"check", in, "--json"});
  EXPECT_EQ(json.status, 1);
  EXPECT_EQ(json.json().at("pass"), false);
  EXPECT_EQ(json.json().at("stored").at("pass"), false);
}

TEST(Check, ForcedKernel) {
  const std::string in = example("minilm_packed.safetensors");
  const Outcome outcome = run_tessera({"check", in, "--json"}, {{"TESSERA_KERNEL", "generic"}});
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.json().at("kernel"), "forward.generic");
}

}  // namespace
}  // namespace tessera::testing
