/// What is written reads back the same, appears whole or not at all, and replaces nothing that is
/// no file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "tests/tools/folder.hpp"
#include "tests/tools/samples.hpp"
#include "tools/io/error.hpp"
#include "tools/io/npy.hpp"
#include "tools/io/safetensors.hpp"
#include "tools/io/signals.hpp"

namespace tessera::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

io::Array ramp(io::Element element, std::vector<std::int64_t> shape) {
  io::Array array{element, std::move(shape), {}};
  array.bytes.resize(static_cast<std::size_t>(io::byte_size(array.shape, element).value()));
  for (std::size_t i = 0; i < array.bytes.size(); ++i)
    array.bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return array;
}

constexpr io::Element kElements[] = {io::Element::f64,  io::Element::f32,     io::Element::f16,
                                     io::Element::bf16, io::Element::f8_e4m3, io::Element::f8_e5m2,
                                     io::Element::i64,  io::Element::i32,     io::Element::i16,
                                     io::Element::i8,   io::Element::u64,     io::Element::u32,
                                     io::Element::u16,  io::Element::u8,      io::Element::boolean};

TEST(Safetensors, RoundTripOfEveryElement) {
  const Folder folder;
  std::map<std::string, io::Array> arrays;
  for (const io::Element element : kElements)
    arrays[std::string(io::name_of(element))] = ramp(element, {3, 1, 5});
  arrays["scalar"] = ramp(io::Element::f32, {});
  arrays["empty"] = ramp(io::Element::f32, {2, 0});
  arrays["quote\"\n\xc3\xa4"] = ramp(io::Element::u8, {3});
  const std::map<std::string, io::ArrayView> views(arrays.begin(), arrays.end());
  const io::Metadata metadata{{"layout", "bshd"}, {"note", "a \"b\" \\ \n"}};
  const auto path = folder.path() / "file.safetensors";
  io::write_safetensors(path, views, metadata);

  const io::SafetensorsFile file(path);
  EXPECT_EQ(file.header().metadata, metadata);
  ASSERT_EQ(file.header().tensors.size(), arrays.size());
  for (const auto& [name, array] : arrays) {
    const io::Array back = file.load(name);
    EXPECT_EQ(back.element, array.element) << name;
    EXPECT_EQ(back.shape, array.shape) << name;
    EXPECT_EQ(back.bytes, array.bytes) << name;
    const auto begin = file.header().data_start + file.header().tensors.at(name).begin;
    EXPECT_EQ(begin % static_cast<std::uint64_t>(io::size_of(array.element)), 0u)
        << name << " must be aligned";
  }
}

TEST(Safetensors, RoundTripOfNothing) {
  const Folder folder;
  io::write_safetensors(folder.path() / "file", {}, {});
  EXPECT_TRUE(io::SafetensorsFile(folder.path() / "file").header().tensors.empty());
}

TEST(Npy, RoundTripOfEveryElement) {
  const Folder folder;
  for (const io::Element element : kElements) {
    if (io::descr_of(element).empty()) {
      EXPECT_THAT([&] { io::npy_prefix(ramp(element, {1})); },
                  ThrowsMessage<io::FormatError>(HasSubstr("write .safetensors")));
      continue;
    }
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{}, {5}, {2, 0}, {3, 1, 5}}) {
      const io::Array array = ramp(element, shape);
      const auto path = folder.path() / "file.npy";
      {
        io::AtomicFile file(path);
        io::write_npy(file, array);
        file.commit();
      }
      const io::Array back = io::read_npy(path);
      EXPECT_EQ(back.element, array.element);
      EXPECT_EQ(back.shape, array.shape);
      EXPECT_EQ(back.bytes, array.bytes);
    }
  }
}

/// Byte for byte what numpy.save writes for numpy.zeros((2, 3), "<f4") and numpy.zeros(3, "<f4").
TEST(Npy, HeaderIsNumPys) {
  const std::string two = io::npy_prefix(ramp(io::Element::f32, {2, 3}));
  EXPECT_EQ(two, std::string("\x93NUMPY\1\0\x76\0", 10) +
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" +
                     std::string(58, ' ') + "\n");
  const std::string one = io::npy_prefix(ramp(io::Element::f32, {3}));
  EXPECT_THAT(one, HasSubstr("'shape': (3,), }"));
  EXPECT_EQ(one.size() % 64, 0u);
}

TEST(Npy, ManyAxesNeedVersion2) {
  const io::Array array = ramp(io::Element::u8, std::vector<std::int64_t>(30'000, 1));
  std::string file = io::npy_prefix(array);
  EXPECT_EQ(file[6], 2);
  file += '\1';
  EXPECT_EQ(io::parse_npy(as_bytes(file)).shape, array.shape);
}

TEST(AtomicFile, NothingUntilCommitted) {
  const Folder folder;
  const auto path = folder.write("file", "before");
  {
    io::AtomicFile file(path);
    file.write(as_bytes("after"));
    EXPECT_EQ(folder.entries(), 2);
    EXPECT_EQ(read_file(path), "before");
  }
  EXPECT_EQ(read_file(path), "before");
  EXPECT_EQ(folder.entries(), 1) << "the temporary must be gone";
  {
    io::AtomicFile file(path);
    file.write(as_bytes("after"));
    file.commit();
  }
  EXPECT_EQ(read_file(path), "after");
  EXPECT_EQ(folder.entries(), 1);
}

/// How a child ends that handles signals and does `work`.
int ending_of(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    io::handle_signals();
    work();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(AtomicFile, SignalsRemoveTheTemporary) {
  const Folder folder;
  const auto path = folder.write("file", "before");
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU}) {
    const int status = ending_of([&] {
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_CORE, &no_core);
      io::AtomicFile first(path), second(folder.path() / "other");
      first.write(as_bytes("after"));
      second.write(as_bytes("after"));
      if (folder.entries() != 3) ::_exit(1);
      ::raise(signal);
      ::_exit(2);
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << signal << ": " << status;
    EXPECT_EQ(folder.entries(), 1) << "the temporaries must be gone";
    EXPECT_EQ(read_file(path), "before");
  }
}

TEST(AtomicFile, SignalsThatAreIgnoredStayIgnored) {
  const Folder folder;
  const auto path = folder.path() / "file";
  const int status = ending_of([&] {
    std::signal(SIGHUP, SIG_IGN);
    io::handle_signals();
    io::AtomicFile file(path);
    file.write(as_bytes("after"));
    ::raise(SIGHUP);
    file.commit();
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(read_file(path), "after");
}

TEST(AtomicFile, SignalsWaitForFilesThatBelongTogether) {
  const Folder folder;
  const int status = ending_of([&] {
    io::AtomicFile first(folder.path() / "first"), second(folder.path() / "second");
    const io::SignalsWait until_both_are_there;
    first.commit();
    ::raise(SIGTERM);
    second.commit();
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "first"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "second"));
  EXPECT_EQ(folder.entries(), 2);
}

TEST(AtomicFile, TooLargeIsAnError) {
  const Folder folder;
  const auto path = folder.write("file", "before");
  const int status = ending_of([&] {
    const rlimit limit{100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      io::AtomicFile file(path);
      file.write(as_bytes(std::string(1000, 'x')));
    } catch (const io::FileError& error) {
      ::_exit(std::string_view(error.what()).ends_with("cannot write it: File too large") ? 7 : 8);
    }
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  EXPECT_EQ(read_file(path), "before");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(AtomicFile, FollowsLinks) {
  const Folder folder;
  const auto path = folder.write("file", "before");
  std::filesystem::create_symlink("file", folder.path() / "link");
  io::AtomicFile file(folder.path() / "link");
  file.write(as_bytes("after"));
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / "link"));
  EXPECT_EQ(read_file(path), "after");
}

TEST(AtomicFile, RefusesWhatIsNoRegularFile) {
  const Folder folder;
  const auto pipe = folder.make_pipe("pipe");
  const std::pair<std::filesystem::path, const char*> cases[] = {
      {folder.path(), "is a directory; must be a regular file or not exist"},
      {pipe, "is a pipe"},
      {"/dev/null", "is a device"},
      {"", "'': is empty; must be a file name"},
      {folder.path() / "missing" / "file", "No such file or directory"},
      {folder.path() / "", "is "},
  };
  for (const auto& [file, message] : cases) {
    const std::filesystem::path& path = file;  // a lambda cannot capture a structured binding
    SCOPED_TRACE(path);
    EXPECT_THAT([&] { io::AtomicFile{path}; }, ThrowsMessage<io::FileError>(HasSubstr(message)));
    EXPECT_THAT([&] { io::check_writable(path); },
                ThrowsMessage<io::FileError>(HasSubstr(message)));
  }
  EXPECT_EQ(folder.entries(), 1);
}

TEST(SameFile, ThroughLinks) {
  const Folder folder;
  const auto path = folder.write("file", "x");
  std::filesystem::create_symlink("file", folder.path() / "soft");
  std::filesystem::create_hard_link(path, folder.path() / "hard");
  EXPECT_TRUE(io::same_file(path, folder.path() / "soft"));
  EXPECT_TRUE(io::same_file(path, folder.path() / "hard"));
  EXPECT_TRUE(io::same_file(path, folder.path() / "." / "file"));
  EXPECT_FALSE(io::same_file(path, folder.write("other", "x")));
  EXPECT_FALSE(io::same_file(path, folder.path() / "missing"));
}

}  // namespace
}  // namespace tessera::testing
