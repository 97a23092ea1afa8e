/// run, check, bench and info on good input: numbers equal the examples' stored answers, every
/// option reaches the kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/tools/command.hpp"
#include "tests/tools/folder.hpp"
#include "tests/tools/tensors.hpp"
#include "tools/io/npy.hpp"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

std::vector<float> floats(const io::Array& array) {
  EXPECT_EQ(array.element, io::Element::f32);
  std::vector<float> values(array.bytes.size() / sizeof(float));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

/// Largest absolute difference of two F32 tensors of one shape.
double difference(const io::Array& a, const io::Array& b) {
  EXPECT_EQ(a.shape, b.shape);
  const std::vector<float> x = floats(a);
  const std::vector<float> y = floats(b);
  double largest = x.size() == y.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const double d = std::abs(double{x[i]} - double{y[i]});
    largest = d <= largest ? largest : d;
  }
  return largest;
}

io::Array load(const std::filesystem::path& path, const std::string& name) {
  return io::SafetensorsFile(path).load(name);
}

TEST(Info, TextAndJson) {
  const Outcome text = run_tessera({"info"});
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(text.error, "");
  EXPECT_THAT(text.out, HasSubstr("backend"));
  for (const Words& arguments : {Words{"info", "--json"}, Words{"--json", "info"}}) {
    const Outcome outcome = run_tessera(arguments);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.error, "");
    const nlohmann::json json = outcome.json();
    EXPECT_FALSE(json.at("backend").get<std::string>().empty());
    EXPECT_GE(json.at("devices").size(), 1u);
  }
}

TEST(Info, SaysWhetherTheForcedKernelExists) {
  for (const auto& [name, known] : {std::pair<std::string, bool>{"generic", true},
                                    {"forward.generic", true},
                                    {"nope", false},
                                    {"gener", false}}) {
    SCOPED_TRACE(name);
    const std::map<std::string, std::string> forced{{"TESSERA_KERNEL", name}};
    const Outcome text = run_tessera({"info"}, forced);
    EXPECT_EQ(text.status, 0);
    EXPECT_THAT(text.out, HasSubstr("restricted to '" + name + "' by TESSERA_KERNEL"));
    EXPECT_EQ(text.out.find("names no kernel of this build") == std::string::npos, known);
    const nlohmann::json json = run_tessera({"info", "--json"}, forced).json();
    EXPECT_EQ(json.at("kernel_forced"), name);
    EXPECT_EQ(json.at("kernel_known"), known);
  }
  EXPECT_FALSE(run_tessera({"info", "--json"}).json().contains("kernel_known"));
}

TEST(Info, Threads) {
  const auto threads = [](const Words& arguments,
                          const std::map<std::string, std::string>& variables) {
    return run_tessera(arguments, variables).json().at("devices").at(0).at("threads").get<int>();
  };
  const auto device = run_tessera({"info", "--json"}).json().at("devices").at(0);
  // One thread runs Serial, and queues what a GPU runs.
  const int most = device.at("space") == "OpenMP" || device.at("space") == "Threads" ? 2 : 1;
  const std::map<std::string, std::string> one = {{"OMP_NUM_THREADS", "1"},
                                                  {"KOKKOS_NUM_THREADS", "1"}};
  EXPECT_EQ(threads({"info", "--json"}, one), 1);
  EXPECT_EQ(threads({"info", "--json", "--threads", "1"}, {}), 1);
  EXPECT_EQ(threads({"info", "--json", "--threads", "2"}, one), most);
}

/// The float64 answers that PyTorch gave, rounded to float32. Scores reach 18, where float32
/// has steps of 2e-6, and values 3.9.
TEST(Run, DenseEqualsTheStoredAnswers) {
  const Folder folder;
  const std::string in = example("minilm_dense.safetensors");
  for (const std::string kind : {"full", "causal"}) {
    const auto out = folder.path() / (kind + ".safetensors");
    const Outcome outcome = run_tessera(
        {"run", in, "-o", out.string(), "--mask", kind == "full" ? "none" : "causal", "--json"});
    ASSERT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.json().at("output"), out.string());
    EXPECT_LT(difference(load(out, "out"), load(in, "out_" + kind)), 5e-6);
    EXPECT_LT(difference(load(out, "lse"), load(in, "lse_" + kind)), 1e-5);
    EXPECT_EQ(io::SafetensorsFile(out).header().metadata.at("layout"), "bshd");
  }
  EXPECT_GT(difference(load(folder.path() / "full.safetensors", "out"), load(in, "out_causal")),
            1e-2);
}

TEST(Run, PackedEqualsTheStoredAnswers) {
  const Folder folder;
  const std::string in = example("minilm_packed.safetensors");
  const auto out = folder.path() / "out.safetensors";
  const Outcome outcome = run_tessera({"run", in, "-o", out.string(), "--dtype", "fp32"});
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("10 packed segments, 826 tokens"));
  EXPECT_LT(difference(load(out, "out"), load(in, "out_full")), 5e-6);
  EXPECT_LT(difference(load(out, "lse"), load(in, "lse_full")), 1e-5);
  // As the file has them, in bf16: the answer has the inputs' type.
  ASSERT_EQ(run_tessera({"run", in, "-o", out.string()}).status, 0);
  EXPECT_EQ(load(out, "out").element, io::Element::bf16);
  EXPECT_LT(difference(load(out, "lse"), load(in, "lse_full")), 1e-5);
}

/// Rows behind the last segment belong to nobody: they are as rows that see nothing, not what was
/// in memory before.
TEST(Run, RowsOfNoSegmentSeeNothing) {
  const Folder folder;
  auto tensors = qkv({9, 2, 16});
  tensors["cu_seqlens"] = numbers({0, 3, 5});
  const std::string in = write_tensors(folder.path() / "in.safetensors", tensors);
  const auto out = folder.path() / "out.safetensors";
  ASSERT_EQ(run_tessera({"run", in, "-o", out.string()}).status, 0);
  const std::vector<float> numbers = floats(load(out, "out"));
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i] == 0, i >= 5 * 2 * 16) << i;
  const std::vector<float> lse = floats(load(out, "lse"));
  for (std::size_t i = 0; i < lse.size(); ++i) EXPECT_EQ(lse[i] == -HUGE_VALF, i % 9 >= 5) << i;
}

/// The same tensors from .npy files give the same bytes.
TEST(Run, NpyEqualsSafetensors) {
  const Folder folder;
  const std::string in = example("minilm_dense.safetensors");
  Words words{"run"};
  for (const char* name : {"q", "k", "v"}) {
    words.push_back((folder.path() / (std::string(name) + ".npy")).string());
    io::AtomicFile file(words.back());
    io::write_npy(file, load(in, name));
    file.commit();
  }
  words.insert(words.end(), {"-o", (folder.path() / "out.npy").string()});
  const Outcome outcome = run_tessera(words);
  ASSERT_EQ(outcome.status, 0) << outcome.error;
  const auto other = folder.path() / "out.safetensors";
  ASSERT_EQ(run_tessera({"run", in, "-o", other.string()}).status, 0);
  EXPECT_EQ(io::read_npy(folder.path() / "out.npy").bytes, load(other, "out").bytes);
  EXPECT_EQ(io::read_npy(folder.path() / "out.lse.npy").bytes, load(other, "lse").bytes);
  EXPECT_EQ(folder.entries(), 6) << "no temporary may stay";
}

/// bhsd is bshd with two axes exchanged.
TEST(Run, LayoutsAgree) {
  const Folder folder;
  const auto run = [&](const Shape& shape, const std::string& layout) {
    const auto tensors = qkv(shape);
    const std::string in =
        write_tensors(folder.path() / "in.safetensors", tensors, {{"layout", layout}});
    const auto out = folder.path() / (layout + ".out.safetensors");
    EXPECT_EQ(run_tessera({"run", in, "-o", out.string()}).status, 0);
    EXPECT_EQ(load(out, "out").shape, shape);
    return floats(load(out, "out"));
  };
  // One head, so that both layouts hold the same numbers in the same order.
  EXPECT_EQ(run({1, 9, 1, 16}, "bshd"), run({1, 1, 9, 16}, "bhsd"));
  EXPECT_EQ(run({9, 1, 16}, "packed shd"), run({1, 9, 16}, "hsd"));
}

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

TEST(Bench, TableAndJson) {
  const Words words{"bench",      "--seq", "64,96",     "--heads", "2",
                    "--head-dim", "16",    "--seconds", "0"};
  const Outcome text = run_tessera(words);
  EXPECT_EQ(text.status, 0) << text.error;
  EXPECT_THAT(text.out, HasSubstr("GFLOP/s"));
  Words with_json = words;
  with_json.emplace_back("--json");
  const Folder folder;
  const std::string file = (folder.path() / "bench.json").string();
  with_json.insert(with_json.end(), {"-o", file});
  const Outcome outcome = run_tessera(with_json);
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(read_file(file), outcome.out);
  const nlohmann::json results = outcome.json().at("results");
  ASSERT_EQ(results.size(), 2u);
  for (const nlohmann::json& r : results) {
    EXPECT_LE(r.at("min_ms").get<double>(), r.at("mean_ms").get<double>());
    EXPECT_LE(r.at("mean_ms").get<double>(), r.at("max_ms").get<double>());
    EXPECT_LE(r.at("p95_ms").get<double>(), r.at("max_ms").get<double>());
    EXPECT_GE(r.at("calls").get<int>(), 5);
    EXPECT_GT(r.at("naive_ms").get<double>(), 0);
    EXPECT_LT(r.at("max_abs_difference").get<double>(), 1e-5)
        << "the naive computation must give the same numbers";
    EXPECT_NEAR(r.at("flops").get<double>() / (2.0 * 2 * r.at("seq").get<double>() *
                                               (r.at("seq").get<double>() + 1) / 2 * 2 * 16),
                1, 1e-9);
  }
}

TEST(Bench, NaiveKnowsGroupsAndTypes) {
  for (const std::string dtype : {"fp16", "bf16"}) {
    const Outcome outcome =
        run_tessera({"bench", "--seq", "65", "--heads", "4", "--heads-k", "2", "--head-dim", "40",
                     "--mask", "none", "--dtype", dtype, "--seconds", "0", "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    EXPECT_LT(outcome.json().at("results").at(0).at("max_abs_difference").get<double>(), 0.02);
  }
  const Outcome alone =
      run_tessera({"bench", "--seq", "64", "--no-naive", "--seconds", "0", "--json"});
  EXPECT_EQ(alone.status, 0);
  EXPECT_FALSE(alone.json().at("results").at(0).contains("naive_ms"));
}

/// A result is not written over what is no result.
TEST(Bench, WritesJsonFilesOnly) {
  const Folder folder;
  const auto other = folder.write("in.safetensors", "before");
  for (const auto& output : {other.string(), (folder.path() / "out").string(), std::string{}}) {
    const Outcome outcome = run_tessera({"bench", "--seq", "16", "--seconds", "0", "-o", output});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.error, "tessera: --output: is '" + output + "'; must end in .json\n");
  }
  EXPECT_EQ(read_file(other), "before");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Bench, UnsupportedHeadDimension) {
  const Outcome outcome = run_tessera({"bench", "--head-dim", "12"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.error, HasSubstr("12"));
}

/// On a terminal, long work tells how far it is; the line is rubbed out at the end and the numbers
/// stay the same.
TEST(Progress, OnlyOnATerminal) {
  const Words words{"bench", "--seq",     "64",  "--heads",    "1",     "--head-dim",
                    "16",    "--seconds", "1.5", "--no-naive", "--json"};
  const Outcome shown = run_tessera(words, {}, Terminal::Yes);
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.error, HasSubstr("bench: 1 s"));
  EXPECT_THAT(shown.error, ::testing::EndsWith("\r\x1b[K"));
  shown.json();
  EXPECT_EQ(run_tessera(words).error, "");
}

}  // namespace
}  // namespace tessera::testing
