#include "tools/io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tools/io/error.hpp"
#include "tools/io/signals.hpp"

namespace tessera::io {
namespace {

namespace fs = std::filesystem;

/// A single read or write takes at most so much; Linux stops a little above 2 GiB.
constexpr std::size_t kChunk = std::size_t{1} << 30;

[[noreturn]] void fail_with_errno(const fs::path& path, std::string_view action) {
  const int error = errno;
  throw FileError(path.string(), fmt::format("cannot {}: {}", action, std::strerror(error)));
}

const char* kind_of(mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

/// The file that a write to `path` would replace: links are followed, so that they stay links.
fs::path resolve(const fs::path& path) {
  std::error_code ignored;
  const fs::path target = fs::canonical(path, ignored);
  return target.empty() ? path : target;
}

fs::path directory_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

void check_not_empty(const fs::path& path) {
  if (path.empty()) throw FileError("", "is empty; must be a file name");
}

void check_target(const fs::path& path) {
  check_not_empty(path);
  struct stat status{};
  if (!path.has_filename()) throw FileError(path.string(), "is not a file name");
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw FileError(path.string(), fmt::format("is {}; must be a regular file or not exist",
                                               kind_of(status.st_mode)));
  }
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string result;
  for (const char c : text.substr(0, kLongest)) {
    if (c >= 0x20 && c < 0x7f) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > kLongest) result += "...";
  return result;
}

InputFile::InputFile(const fs::path& path) : path_(path) {
  check_not_empty(path_);
  // Without O_NONBLOCK, opening a pipe would wait for somebody to write to it.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (descriptor_ < 0) fail_with_errno(path_, "open it");
  struct stat status{};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw FileError(path_.string(),
                    fmt::format("is {}; must be a regular file", kind_of(status.st_mode)));
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::pread(descriptor_, bytes.data(), std::min(bytes.size(), kChunk),
                                  static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with_errno(path_, "read it");
    if (count == 0)
      throw FileError(path_.string(), "ended early: it became shorter while it was read");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

AtomicFile::AtomicFile(const fs::path& path) : path_(resolve(path)) {
  check_target(path_);
  const SignalsWait until_remembered;
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ =
        directory_of(path_) /
        fmt::format(".{}.{}.{}.tmp", path_.filename().string().substr(0, 200), ::getpid(), attempt);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == 100))
      fail_with_errno(path_, "create a file beside it");
  }
  remember_temporary(temporary_.c_str());
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (temporary_.empty()) return;
  const SignalsWait until_forgotten;
  ::unlink(temporary_.c_str());
  forget_temporary(temporary_.c_str());
}

void AtomicFile::fail(const char* action) const { fail_with_errno(path_, action); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kChunk));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write it");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::flush() {
  if (::fsync(descriptor_) != 0) fail("write it");
}

void AtomicFile::commit() {
  flush();
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("write it");
  const SignalsWait until_forgotten;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("replace it");
  forget_temporary(temporary_.c_str());
  temporary_.clear();
}

void check_writable(const fs::path& path) {
  const fs::path target = resolve(path);
  check_target(target);
  if (::access(directory_of(target).c_str(), W_OK | X_OK) != 0)
    fail_with_errno(path, "write to its directory");
}

bool same_file(const fs::path& a, const fs::path& b) noexcept {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

}  // namespace tessera::io
