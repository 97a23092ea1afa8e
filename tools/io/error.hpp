#pragma once
/// Failures of reading and writing tensor files: one line each, for people.

#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera::io {

/// The bytes are not what the format allows. The text says what is wrong and what is allowed,
/// without the file's name.
class FormatError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file cannot be read or written, or is wrong inside: "file: what is wrong; what is allowed". A
/// name that is empty stands in quotes.
class FileError : public std::runtime_error {
 public:
  FileError(std::string_view path, std::string_view problem)
      : std::runtime_error(std::string(path.empty() ? "''" : path).append(": ").append(problem)) {}
};

/// `text` as it may stand in a message: bytes outside printable ASCII as \xNN, cut after 60
/// characters. Names in files are chosen by strangers and must not reach a terminal raw.
std::string printable(std::string_view text);

}  // namespace tessera::io
