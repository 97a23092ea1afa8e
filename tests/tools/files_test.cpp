/// Wrong files, and outputs that cannot be written: exit status, one line on stderr, nothing lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/tools/command.hpp"
#include "tests/tools/failure.hpp"
#include "tests/tools/folder.hpp"
#include "tests/tools/samples.hpp"
#include "tests/tools/tensors.hpp"
#include "tools/io/npy.hpp"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Whatever is wrong with a file, the command names it and ends with 2; depth and length are no
/// exception.
TEST(Files, EveryWrongFile) {
  const Folder folder;
  for (const Sample& sample : safetensors_samples()) {
    if (sample.message.empty()) continue;
    SCOPED_TRACE(sample.name);
    const auto path = folder.write(sample.name, sample.bytes).string();
    const Outcome outcome = run_tessera({"check", path});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.error, StartsWith("tessera: " + path + ": "));
    EXPECT_THAT(outcome.error, HasSubstr(sample.message));
  }
  for (const Sample& sample : npy_samples()) {
    if (sample.message.empty()) continue;
    SCOPED_TRACE(sample.name);
    const auto path = folder.write(sample.name, sample.bytes).string();
    const Outcome outcome =
        run_tessera({"run", path, path, path, "-o", (folder.path() / "out.npy").string()});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.error, StartsWith("tessera: " + path + ": "));
    EXPECT_THAT(outcome.error, HasSubstr(sample.message));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out.npy"));
}

/// A name that is empty is not seen in a message unless it stands in quotes.
TEST(Files, EmptyFileNames) {
  const Folder folder;
  const std::string in = example("minilm_dense.safetensors");
  const std::string out = (folder.path() / "out.npy").string();
  const std::string q =
      folder.write("q.npy", npy_bytes("{'descr':'<f4','fortran_order':False,'shape':(6,)}", 24))
          .string();
  for (const Words& arguments : {Words{"check", ""},
                                 {"run", "", "-o", out},
                                 {"check", "", q, q},
                                 {"check", q, "", q},
                                 {"check", q, q, ""},
                                 {"check", "", "", ""}}) {
    expect_failure(arguments, 2, "'': is empty; must be a file name");
  }
  expect_failure({"run", in, "-o", ""}, 2, "--output: is ''");
  expect_failure({"bench", "-o", ""}, 2, "--output: is ''; must end in .json");
}

TEST(Files, SpecialFiles) {
  const Folder folder;
  const std::string pipe = folder.make_pipe("pipe").string();
  expect_failure({"check", folder.path().string()}, 2, "is a directory");
  expect_failure({"check", pipe}, 2, "is a pipe");
  expect_failure({"check", "/dev/zero"}, 2, "is a device");
  expect_failure({"check", "/proc/self/maps"}, 2, "has 0 bytes");
  expect_failure({"check", (folder.path() / "missing").string()}, 2, "No such file");
  expect_failure({"run", pipe, pipe, pipe, "-o", (folder.path() / "o.npy").string()}, 2,
                 "is a pipe");
}

TEST(Files, WrongTensors) {
  const Folder folder;
  using io::Element;
  const auto expect = [&](const std::map<std::string, io::Array>& tensors,
                          const std::string& message, Words flags = {},
                          const io::Metadata& metadata = {}, int status = 2) {
    const std::string path = write_tensors(folder.path() / "in.safetensors", tensors, metadata);
    flags.insert(flags.begin(), {"check", path});
    expect_failure(flags, status, message);
  };
  const auto good = qkv({1, 4, 2, 8});
  const auto with = [&](const std::string& name, io::Array array) {
    auto tensors = good;
    tensors[name] = std::move(array);
    return tensors;
  };
  ASSERT_EQ(run_tessera({"check", write_tensors(folder.path() / "good.safetensors", good)}).status,
            0);
  expect({}, "has no tensor 'q'; must have q, k and v");
  expect({{"q", good.at("q")}, {"k", good.at("k")}}, "has no tensor 'v'");
  expect(with("q", zeros(Element::i32, {1, 4, 2, 8})), "q is I32; must be F32, F16 or BF16");
  expect(with("q", zeros(Element::f64, {1, 4, 2, 8})),
         "q is F64; must be F32, F16 or BF16, or converted with --dtype");
  expect(with("k", zeros(Element::f16, {1, 4, 2, 8})),
         "in.safetensors: k is F16; must be F32, as q is, or converted with --dtype");
  expect(with("q", zeros(Element::f8_e4m3, {1, 4, 2, 8})), "q is F8_E4M3");
  expect(with("q", zeros(Element::f32, {4, 2, 8})), "see --layout");
  expect(good, "layout shd has 3 axes", {"--layout", "shd"});
  expect(good, "its metadata says layout 'sdh'", {}, {{"layout", "sdh"}});
  expect(with("k", zeros(Element::f32, {1, 4, 2, 16})),
         "in.safetensors: k.extent.dim is 16; must equal q.extent.dim (8)");
  expect(with("v", zeros(Element::f32, {1, 5, 2, 8})),
         "in.safetensors: v.extent.seq is 5; must equal k.extent.seq (4)");
  expect(with("mask", zeros(Element::boolean, {4, 3})), "in.safetensors: mask.extent.dim is 3; ");
  expect(with("k", zeros(Element::f32, {2, 4, 2, 8})), "batch");
  expect(with("bias", zeros(Element::i32, {4, 4})), "bias is I32; must be F32, F16 or BF16");
  expect(with("bias", zeros(Element::f32, {3, 4})), "bias");
  expect(with("bias", zeros(Element::f32, {1, 1, 1, 4, 4})), "must have 1 to 4 axes");
  expect(with("mask", zeros(Element::f32, {4, 4})), "mask is F32; must be BOOL or U8");
  expect(with("alibi_slopes", zeros(Element::f32, {3})), "alibi_slopes");
  expect(with("alibi_slopes", zeros(Element::f32, {1, 1, 2})),
         "must be [head_q] or [batch, head_q]");
  expect(with("sinks", zeros(Element::f32, {2, 2})), "must be [head_q]");
  expect(with("sinks", zeros(Element::i8, {2})), "sinks is I8");
  expect(with("key_end", zeros(Element::f32, {1})), "key_end is F32 [1]; must be I32");
  expect(with("key_end", zeros(Element::i32, {3})), "key_end");
  expect(with("key_begin", numbers({-1})), "key_begin[0]");
  expect(with("cu_seqlens_q", numbers({0, 4})),
         "must have cu_seqlens, or cu_seqlens_q and cu_seqlens_k");
  expect(with("cu_seqlens", zeros(Element::f32, {2})), "must be I32 or I64 with one axis");
  expect(with("cu_seqlens", numbers({})), "cu_seqlens is empty");
  expect(with("cu_seqlens", numbers({1, 4})), "cu_seqlens[0] is 1; must be 0");
  expect(with("cu_seqlens", numbers({0, 3, 2})), "cu_seqlens[2] is 2; must be from 3");
  expect(with("cu_seqlens", numbers({0, 5})),
         "cu_seqlens[1] is 5; must be from 0 (the one before) to 4");
  expect(with("cu_seqlens", numbers({0, -1})), "cu_seqlens[1] is -1");
  auto longer = qkv({1, 4, 2, 8}, {1, 6, 2, 8});
  expect(longer, "--mask causal needs --alignment", {"--mask", "causal"});
  expect(longer, "--mask window needs --alignment", {"--mask", "window", "--left", "2"});
  expect(with("out_full", zeros(Element::f32, {1, 4, 2, 9})),
         "out_full has shape [1, 4, 2, 9]; must have [1, 4, 2, 8]");
  expect(with("lse_full", zeros(Element::i32, {1, 2, 4})), "lse_full is I32");
  expect(qkv({1, 4, 2, 12}),
         "q.extent.dim is 12; must be a multiple of 8 from 8 to 256, or 512: pad query and key "
         "with zeros to 16, and set scale to 1/√12",
         {}, {}, 3);
  expect(qkv({1, 4, 3, 8}, {1, 4, 2, 8}),
         "q.extent.head is 3; must be a multiple of k.extent.head (2)");
  expect(qkv({1, 4, 3, 8}, {1, 4, 0, 8}), "k.extent.head is 0; must be at least 1");
  expect(qkv({1, 4, 2, 0}), "q.extent.dim is 0; must be a multiple of 8 from 8 to 256, or 512", {},
         {}, 3);
}

/// Of three files, the one that holds the wrong tensor is named, and the right one beside it.
TEST(Files, WrongTensorOfThreeFiles) {
  const Folder folder;
  using io::Element;
  const auto expect = [&](const std::map<std::string, io::Array>& tensors,
                          const std::string& blamed, const std::string& message, int status = 2) {
    Words words{"check"};
    for (const auto* name : {"q", "k", "v"}) {
      words.push_back((folder.path() / (std::string(name) + ".npy")).string());
      io::AtomicFile file(words.back());
      io::write_npy(file, tensors.at(name));
      file.commit();
    }
    expect_failure(words, status, (folder.path() / (blamed + ".npy")).string() + ": " + message);
  };
  const auto with = [](const std::string& name, const io::Array& array) {
    auto tensors = qkv({1, 4, 2, 8});
    tensors[name] = array;
    return tensors;
  };
  const std::string q = (folder.path() / "q.npy").string();
  const std::string converted = ", or converted with --dtype";
  expect(with("k", zeros(Element::f16, {1, 4, 2, 8})), "k",
         "k is F16; must be F32, as q is in " + q + converted);
  expect(with("v", zeros(Element::f16, {1, 4, 2, 8})), "v",
         "v is F16; must be F32, as q is in " + q + converted);
  expect(with("q", zeros(Element::f16, {1, 4, 2, 8})), "k",
         "k is F32; must be F16, as q is in " + q + converted);
  expect(with("v", zeros(Element::i32, {1, 4, 2, 8})), "v", "v is I32; must be F32, F16 or BF16");
  expect(with("k", zeros(Element::f64, {1, 4, 2, 8})), "k", "k is F64; must be F32, F16 or BF16");
  expect(with("k", zeros(Element::f32, {4, 2, 8})), "k",
         "k has shape [4, 2, 8]; layout bshd has 4");
  expect(with("k", zeros(Element::f32, {1, 4, 2, 16})), "k",
         "k.extent.dim is 16; must equal q.extent.dim (8)");
  expect(with("v", zeros(Element::f32, {1, 5, 2, 8})), "v",
         "v.extent.seq is 5; must equal k.extent.seq (4)");
  expect(with("v", zeros(Element::f32, {1, 4, 2, 12})), "v", "v.extent.dim is 12", 3);
}

TEST(Files, AlmostNpy) {
  const Folder folder;
  const std::string npy =
      folder.write("q.npy", npy_bytes("{'descr':'<f4','fortran_order':False,'shape':(6,)}", 24))
          .string();
  expect_failure({"check", npy}, 2, "is a .npy file; three of them are needed: q k v");
  expect_failure({"check", npy, npy, npy}, 2, "q has shape [6]");
  const std::string in = example("minilm_dense.safetensors");
  expect_failure({"check", in, in, in}, 2, "is not a .npy file");
}

TEST(Files, OutputIsRefusedBeforeTheWork) {
  const Folder folder;
  const std::string in = (folder.path() / "in.safetensors").string();
  std::filesystem::copy_file(example("minilm_dense.safetensors"), in);
  const std::string before = read_file(in);
  std::filesystem::create_symlink("in.safetensors", folder.path() / "link.safetensors");
  std::filesystem::create_directory(folder.path() / "folder.safetensors");
  expect_failure({"run", in, "-o", in}, 2, "is an input; is not overwritten");
  expect_failure({"run", in, "-o", (folder.path() / "link.safetensors").string()}, 2,
                 "is an input");
  expect_failure({"run", in, "-o", (folder.path() / "folder.safetensors").string()}, 2,
                 "is a directory");
  expect_failure({"run", in, "-o", (folder.path() / "missing" / "out.npy").string()}, 2,
                 "No such file or directory");
  expect_failure({"run", in, "--dtype", "bf16", "-o", (folder.path() / "out.npy").string()}, 2,
                 ".npy cannot hold bf16");
  EXPECT_EQ(read_file(in), before);
  EXPECT_EQ(folder.entries(), 3);
}

/// What cannot be written whole is not written, and what was there stays. (The limit leaves room
/// for what an instrumented program writes when it ends.)
TEST(Files, OutputThatBecomesTooLarge) {
  const Folder folder;
  const std::string in = write_tensors(folder.path() / "in.safetensors",
                                       qkv({1, 16'384, 1, 32}, {1, 1, 1, 32}));  // 2 MiB of out
  for (const std::string name : {"out.safetensors", "out.npy"}) {
    const auto out = folder.write(name, "before");
    const Outcome outcome =
        run_tessera_in({.longest_file = 1 << 20}, {"run", in, "-o", out.string()});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.error, "tessera: " + out.string() + ": cannot write it: File too large\n");
    EXPECT_EQ(read_file(out), "before");
  }
  EXPECT_EQ(folder.entries(), 3) << "no temporary may stay";
}

/// Wherever the command is when it is told to end, it ends by that signal and leaves the old output
/// or the new one.
TEST(Files, SignalsLeaveNoTemporary) {
  const Folder folder;
  const std::string in = write_tensors(folder.path() / "in.safetensors",
                                       qkv({1, 16'384, 4, 64}, {1, 1, 4, 64}));  // 16 MiB of out
  const auto out = folder.path() / "out.safetensors";
  ASSERT_EQ(run_tessera({"run", in, "-o", out.string()}).status, 0);
  const std::string whole = read_file(out);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    folder.write("out.safetensors", "before");
    const auto once_there_is_a_temporary = [&]() -> std::optional<int> {
      if (folder.entries() < 3) return std::nullopt;
      return signal;
    };
    const Outcome outcome =
        run_tessera_in({.interrupt = once_there_is_a_temporary}, {"run", in, "-o", out.string()});
    const bool ended = outcome.status == 128 + signal;
    EXPECT_TRUE(ended || outcome.status == 0) << outcome.status;
    EXPECT_TRUE(read_file(out) == "before" || read_file(out) == whole);
    EXPECT_EQ(folder.entries(), 2) << "no temporary may stay";
  }
}

/// The system would end a program that takes more memory than there is; the command does not try.
TEST(Files, TooLarge) {
  expect_failure({"bench", "--seq", "16777216", "--batch", "16777216"}, 3, "GiB of memory");
  const Folder folder;
  constexpr std::int64_t kBytes = std::int64_t{1} << 43;  // a sparse file of 8 TiB
  std::string header =
      R"({"q":{"dtype":"F32","shape":[1,2147483648,16,64],"data_offsets":[0,8796093022208]})";
  for (const std::string name : {"k", "v"}) {
    header +=
        ",\"" + name +
        R"(":{"dtype":"F32","shape":[1,0,16,64],"data_offsets":[8796093022208,8796093022208]})";
  }
  const auto path = folder.write("in.safetensors", safetensors_bytes(header + "}"));
  std::error_code error;
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + kBytes, error);
  // Where scratch files lie, and how large they may be, is known only when the test runs; a smaller
  // file might fit into the memory of some machine.
  if (error) GTEST_SKIP() << "this file system has no files of 8 TiB";
  expect_failure({"check", path.string()}, 3, "GiB of memory");
}

}  // namespace
}  // namespace tessera::testing
