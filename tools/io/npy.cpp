#include "tools/io/npy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/io/error.hpp"

namespace tessera::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::uint64_t kVersionEnd = 8;            // magic, major, minor
constexpr std::uint64_t kLongestHeader = 1u << 20;  // a plain array's is about 120 bytes
constexpr std::uint64_t kLongestPrefix = kVersionEnd + 4 + kLongestHeader;

/// Reads the one dictionary that a header is, in the few spellings that NumPy and its imitators
/// use.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  void read(NpyHeader& header) {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      if (!keys_.insert(key).second) fail(fmt::format("key '{}' is there twice", printable(key)));
      expect(':');
      if (key == "descr") {
        header.element = descr();
      } else if (key == "fortran_order") {
        fortran_order();
      } else if (key == "shape") {
        header.shape = shape();
      } else {
        fail(fmt::format("has a key '{}'; allowed are descr, fortran_order and shape",
                         printable(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (position_ != text_.size()) fail("something follows the dictionary");
    if (keys_.size() != 3) fail("lacks one of descr, fortran_order and shape");
  }

 private:
  [[noreturn]] static void fail(std::string_view problem) {
    throw FormatError(fmt::format("its header is wrong: {}", problem));
  }

  void skip_space() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n'))
      ++position_;
  }

  bool accept(char c) {
    skip_space();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}' at byte {}", c, position_));
  }

  bool accept_word(std::string_view word) {
    skip_space();
    if (!text_.substr(position_).starts_with(word)) return false;
    position_ += word.size();
    return true;
  }

  std::string_view string() {
    skip_space();
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote, position_);
    if (end == std::string_view::npos) fail("a text does not end");
    const std::string_view result = text_.substr(position_, end - position_);
    if (result.find('\\') != std::string_view::npos) fail("a text holds a backslash");
    position_ = end + 1;
    return result;
  }

  Element descr() {
    skip_space();
    if (text_.substr(position_).starts_with('[')) {
      throw FormatError("holds records; must hold plain numbers");
    }
    const std::string_view text = string();
    if (const std::optional<Element> element = element_from_descr(text)) return *element;
    if (text.starts_with('>')) {
      throw FormatError(
          fmt::format("its numbers are big-endian ('{}'); must be little-endian: x.astype('<{}')",
                      printable(text), printable(text.substr(1))));
    }
    if (text.find('O') != std::string_view::npos) {
      throw FormatError("holds Python objects, which are never loaded; must hold plain numbers");
    }
    throw FormatError(fmt::format("its dtype is '{}'; must be one of {} (bf16: use .safetensors)",
                                  printable(text), element_descrs()));
  }

  void fortran_order() {
    if (accept_word("False")) return;
    if (accept_word("True")) {
      throw FormatError("is in Fortran order; must be in C order: save numpy.ascontiguousarray(x)");
    }
    fail("fortran_order must be True or False");
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> extents;
    bool comma = true;
    expect('(');
    while (!accept(')')) {
      if (!comma) fail(fmt::format("expected ',' or ')' at byte {}", position_));
      extents.push_back(number());
      comma = accept(',');
    }
    if (extents.size() == 1 && !comma) fail("shape is a number; must be a tuple");
    return extents;
  }

  std::int64_t number() {
    skip_space();
    std::int64_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0) {
      fail(fmt::format("shape must hold whole numbers from 0 to 2^63 - 1 (at byte {})", position_));
    }
    position_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::set<std::string_view> keys_;
};

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

/// `start` is the file's begin, at least as much of it as a header can take.
NpyHeader parse(std::span<const std::byte> start, std::uint64_t file_size) {
  if (!looks_like_npy(start))
    throw FormatError("is not a .npy file: it does not begin with \\x93NUMPY");
  if (start.size() < kVersionEnd) throw FormatError("ends inside its header: truncated?");
  const auto major = std::to_integer<int>(start[kMagic.size()]);
  const auto minor = std::to_integer<int>(start[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    throw FormatError(fmt::format("is .npy version {}.{}; must be 1.0, 2.0 or 3.0", major, minor));
  }
  const std::uint64_t length_bytes = major == 1 ? 2 : 4;
  if (start.size() < kVersionEnd + length_bytes)
    throw FormatError("ends inside its header: truncated?");
  const std::uint64_t length = little_endian(start.subspan(kVersionEnd, length_bytes));
  if (length > kLongestHeader) {
    throw FormatError(fmt::format("says that its header has {} bytes; at most {} are allowed",
                                  length, kLongestHeader));
  }
  NpyHeader header;
  header.data_start = kVersionEnd + length_bytes + length;
  if (header.data_start > start.size()) {
    throw FormatError(
        fmt::format("says that its header has {} bytes, but only {} follow: truncated?", length,
                    start.size() - kVersionEnd - length_bytes));
  }
  const auto text = start.subspan(kVersionEnd + length_bytes, length);
  DictionaryReader({reinterpret_cast<const char*>(text.data()), text.size()}).read(header);

  const std::optional<std::int64_t> bytes = byte_size(header.shape, header.element);
  if (!bytes) throw FormatError("its shape overflows");
  const std::uint64_t have = file_size - header.data_start;
  if (static_cast<std::uint64_t>(*bytes) != have) {
    throw FormatError(fmt::format("holds {} bytes of data; its dtype and shape {} need {}", have,
                                  to_string(header.shape), *bytes));
  }
  return header;
}

}  // namespace

bool looks_like_npy(std::span<const std::byte> file) noexcept {
  return file.size() >= kMagic.size() &&
         std::equal(kMagic.begin(), kMagic.end(), file.begin(),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

NpyHeader parse_npy(std::span<const std::byte> file) { return parse(file, file.size()); }

Array read_npy(const std::filesystem::path& path) {
  const InputFile file(path);
  try {
    std::vector<std::byte> start(std::min(file.size(), kLongestPrefix));
    file.read(0, start);
    NpyHeader header = parse(start, file.size());
    Array array{header.element, std::move(header.shape),
                std::vector<std::byte>(file.size() - header.data_start)};
    file.read(header.data_start, array.bytes);
    return array;
  } catch (const FormatError& error) {
    throw FileError(file.name(), error.what());
  }
}

std::string npy_prefix(const ArrayView& array) {
  const std::string_view descr = descr_of(array.element);
  if (descr.empty()) {
    throw FormatError(
        fmt::format(".npy cannot hold {}; write .safetensors", name_of(array.element)));
  }
  const std::string shape =
      fmt::format("{}{}", fmt::join(array.shape, ", "), array.shape.size() == 1 ? "," : "");
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);

  constexpr std::size_t kAlignment = 64;
  const auto pad = [&](std::size_t before) {
    text.append(kAlignment - 1 - (before + text.size()) % kAlignment, ' ') += '\n';
  };
  const bool fits_version_1 = text.size() + kVersionEnd + 2 + kAlignment < 0x10000;
  const std::size_t length_bytes = fits_version_1 ? 2 : 4;
  pad(kVersionEnd + length_bytes);

  std::string prefix(kMagic);
  prefix += static_cast<char>(fits_version_1 ? 1 : 2);
  prefix += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i)
    prefix += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return prefix + text;
}

void write_npy(AtomicFile& file, const ArrayView& array) {
  const std::string prefix = npy_prefix(array);
  file.write(std::as_bytes(std::span(prefix)));
  file.write(array.bytes);
}

}  // namespace tessera::io
