/// Both readers on every sample, from memory and from files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "tests/tools/folder.hpp"
#include "tests/tools/samples.hpp"
#include "tools/io/error.hpp"
#include "tools/io/npy.hpp"
#include "tools/io/safetensors.hpp"

namespace tessera::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The message with which `read` refuses; empty if it does not. Anything but the reader's own
/// exceptions ends the test.
std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const io::FormatError& error) {
    return error.what();
  } catch (const io::FileError& error) {
    return error.what();
  }
  return {};
}

/// `parse` reads memory, `load` reads a file and every tensor in it.
void test_samples(const std::vector<Sample>& samples,
                  const std::function<void(std::span<const std::byte>)>& parse,
                  const std::function<void(const std::filesystem::path&)>& load) {
  const Folder folder;
  for (const Sample& sample : samples) {
    SCOPED_TRACE(sample.name);
    const auto path = folder.write(sample.name, sample.bytes);
    const std::string from_memory = refusal([&] { parse(as_bytes(sample.bytes)); });
    const std::string from_file = refusal([&] { load(path); });
    if (sample.message.empty()) {
      EXPECT_EQ(from_memory, "");
      EXPECT_EQ(from_file, "");
    } else {
      EXPECT_THAT(from_memory, HasSubstr(sample.message));
      EXPECT_EQ(from_file, path.string() + ": " + from_memory);
      EXPECT_EQ(from_memory.find('\n'), std::string::npos) << "must be one line";
      EXPECT_LT(from_memory.size(), 300u);
    }
  }
}

TEST(Safetensors, Samples) {
  test_samples(
      safetensors_samples(), [](auto bytes) { io::parse_safetensors(bytes); },
      [](const auto& path) {
        const io::SafetensorsFile file(path);
        for (const auto& [name, entry] : file.header().tensors) {
          EXPECT_EQ(file.load(name).bytes.size(), entry.end - entry.begin);
        }
      });
}

TEST(Npy, Samples) {
  test_samples(
      npy_samples(), [](auto bytes) { io::parse_npy(bytes); },
      [](const auto& path) { io::read_npy(path); });
}

/// A file cut anywhere is refused.
TEST(Safetensors, EveryTruncation) {
  const std::string whole =
      safetensors_bytes(R"({"q":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24);
  ASSERT_EQ(refusal([&] { io::parse_safetensors(as_bytes(whole)); }), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal([&] { io::parse_safetensors(as_bytes(whole).first(size)); }), "") << size;
  }
}

TEST(Npy, EveryTruncation) {
  const std::string whole =
      npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24);
  ASSERT_EQ(refusal([&] { io::parse_npy(as_bytes(whole)); }), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal([&] { io::parse_npy(as_bytes(whole).first(size)); }), "") << size;
  }
}

TEST(Safetensors, ReadsWhatIsThere) {
  const Folder folder;
  const auto path = folder.write(
      "file", safetensors_bytes(R"({"__metadata__":{"layout":"bshd"},)"
                                R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                R"("b":{"dtype":"I16","shape":[1,2],"data_offsets":[1,5]}})",
                                5));
  const io::SafetensorsFile file(path);
  EXPECT_EQ(file.header().metadata.at("layout"), "bshd");
  EXPECT_FALSE(file.contains("layout"));
  const io::Array b = file.load("b");
  EXPECT_EQ(b.element, io::Element::i16);
  EXPECT_THAT(b.shape, ElementsAre(1, 2));
  EXPECT_THAT(b.bytes, ElementsAre(std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}));
}

TEST(Npy, ReadsWhatIsThere) {
  const Folder folder;
  const io::Array array = io::read_npy(
      folder.write("file", npy_bytes("{'descr':'<i2','fortran_order':False,'shape':(2,1)}", 4)));
  EXPECT_EQ(array.element, io::Element::i16);
  EXPECT_THAT(array.shape, ElementsAre(2, 1));
  EXPECT_THAT(array.bytes, ElementsAre(std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3}));
}

/// Neither waits nor reads for ever.
TEST(Readers, RefuseWhatIsNoRegularFile) {
  const Folder folder;
  const auto pipe = folder.make_pipe("pipe");
  const std::pair<std::filesystem::path, const char*> cases[] = {
      {folder.path(), "is a directory; must be a regular file"},
      {pipe, "is a pipe; must be a regular file"},
      {"/dev/zero", "is a device; must be a regular file"},
      {"/dev/null", "is a device; must be a regular file"},
      {folder.path() / "missing", "cannot open it: No such file or directory"},
      {"", "'': is empty; must be a file name"},
      {std::string(5000, 'x'), "cannot open it: File name too long"},
  };
  for (const auto& [file, message] : cases) {
    const std::filesystem::path& path = file;  // a lambda cannot capture a structured binding
    SCOPED_TRACE(path);
    EXPECT_THAT(refusal([&] { io::SafetensorsFile{path}; }), HasSubstr(message));
    EXPECT_THAT(refusal([&] { io::read_npy(path); }), HasSubstr(message));
    EXPECT_THAT(refusal([&] { io::read_npy(path); }), StartsWith(path.string()));
  }
}

/// Files in /proc say that they have 0 bytes.
TEST(Readers, RefuseFilesOfUnknownSize) {
  EXPECT_THAT(refusal([] { io::SafetensorsFile{"/proc/self/maps"}; }), HasSubstr("has 0 bytes"));
  EXPECT_THAT(refusal([] { io::read_npy("/proc/self/maps"); }), HasSubstr("is not a .npy file"));
}

/// A header that promises gigabytes costs nothing: the file's size is looked at first.
TEST(Readers, FileThatShrinks) {
  const Folder folder;
  const auto path = folder.write(
      "file", safetensors_bytes(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 8));
  const io::SafetensorsFile file(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THAT(refusal([&] { file.load("a"); }), HasSubstr("ended early"));
}

TEST(Printable, EscapesAndCuts) {
  EXPECT_EQ(io::printable("a b~"), "a b~");
  EXPECT_EQ(io::printable("\x1b\n\xc3"), "\\x1b\\x0a\\xc3");
  EXPECT_EQ(io::printable(std::string(61, 'x')), std::string(60, 'x') + "...");
}

}  // namespace
}  // namespace tessera::testing
