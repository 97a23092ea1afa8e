#pragma once
/// Files as the readers and writers need them: regular ones only, read at offsets, written whole or
/// not at all.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace tessera::io {

/// A regular file, open for reading. Everything throws FileError.
class InputFile {
 public:
  /// Directories, pipes and devices are refused without waiting for them.
  explicit InputFile(const std::filesystem::path& path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  std::uint64_t size() const noexcept { return size_; }
  /// Fills `bytes` from `offset` on. A file that became shorter since it was opened is an error.
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;
  std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// A file that appears under its name complete, by commit(), or not at all. Everything throws
/// FileError.
class AtomicFile {
 public:
  /// Creates a temporary beside `path`. What `path` names must be a regular file or nothing.
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  /// Removes the temporary unless committed. So does a signal, where handle_signals() was called.
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  /// Forces the bytes to the disk. Two files that belong together are both flushed before either is
  /// committed, and signals wait until both are.
  void flush();
  /// Flushes and renames the temporary to `path`.
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Throws FileError unless AtomicFile could probably write `path`: called before long work. Creates
/// nothing.
void check_writable(const std::filesystem::path& path);

/// Whether both names lead to one existing file, through whatever links.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) noexcept;

}  // namespace tessera::io
