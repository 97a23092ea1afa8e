/// run: numbers equal the examples' stored answers, from every format and layout.
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

}  // namespace
}  // namespace tessera::testing
