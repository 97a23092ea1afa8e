#include "tools/io/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/io/error.hpp"

namespace tessera::io {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor files are read as they lie");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr const char* kMetadata = "__metadata__";

/// Takes the header's events as the parser meets them; no document is built, so nothing a file says
/// can nest or grow.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(SafetensorsHeader& header) : header_(header) {}

  bool start_object(std::size_t /*elements*/) override {
    if (depth_ == 0 || (depth_ == 1 && !in_array_)) {
      ++depth_;
      if (depth_ == 2) begin_entry();
      return true;
    }
    throw FormatError(fmt::format("{} is an object; must be {}", place(), expected()));
  }

  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) finish_entry();
    in_metadata_ = false;
    --depth_;
    return true;
  }

  bool start_array(std::size_t /*elements*/) override {
    if (depth_ != 2 || in_metadata_ || in_array_ || field_ == "dtype") refuse("an array");
    in_array_ = true;
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    return true;
  }

  bool key(string_t& name) override {
    if (depth_ == 1) {
      if (!names_.insert(name).second) {
        throw FormatError(fmt::format("tensor '{}' is there twice", printable(name)));
      }
      name_ = std::move(name);
      return true;
    }
    field_ = std::move(name);
    if (in_metadata_) {
      if (header_.metadata.contains(field_)) {
        throw FormatError(fmt::format("metadata '{}' is there twice", printable(field_)));
      }
      return true;
    }
    if (field_ != "dtype" && field_ != "shape" && field_ != "data_offsets") {
      throw FormatError(
          fmt::format("tensor '{}' has a field '{}'; allowed are dtype, shape and data_offsets",
                      printable(name_), printable(field_)));
    }
    if (!fields_.insert(field_).second) {
      throw FormatError(fmt::format("tensor '{}' has two fields {}", printable(name_), field_));
    }
    return true;
  }

  bool string(string_t& text) override {
    if (depth_ != 2 || in_array_ || (!in_metadata_ && field_ != "dtype")) refuse("text");
    if (in_metadata_) {
      header_.metadata.emplace(field_, std::move(text));
      return true;
    }
    const std::optional<Element> element = element_from_name(text);
    if (!element) {
      throw FormatError(fmt::format("dtype of tensor '{}' is '{}'; must be one of {}",
                                    printable(name_), printable(text), element_names()));
    }
    entry_.element = *element;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) refuse("a number");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw FormatError(fmt::format("{} holds {}; must be below 2^63", place(), value));
    }
    auto& numbers = field_ == "shape" ? entry_.shape : offsets_;
    if (field_ != "shape" && numbers.size() == 2) refuse("longer than two numbers");
    numbers.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool number_integer(number_integer_t value) override {
    if (!in_array_) refuse("a number");
    throw FormatError(
        fmt::format("{} holds {}; must be a whole number, at least 0", place(), value));
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    if (!in_array_) refuse("a number");
    throw FormatError(fmt::format("{} holds {}; must be a whole number from 0 to 2^63 - 1", place(),
                                  printable(text)));
  }
  bool null() override { refuse("null"); }
  bool boolean(bool /*value*/) override { refuse("a boolean"); }
  bool binary(binary_t& /*bytes*/) override { refuse("binary"); }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    throw FormatError(fmt::format("the header is not valid JSON (at byte {} of it)", position));
  }

 private:
  void begin_entry() {
    in_metadata_ = name_ == kMetadata;
    entry_ = {};
    offsets_.clear();
    fields_.clear();
    field_.clear();
  }

  void finish_entry() {
    if (fields_.size() != 3) {
      throw FormatError(
          fmt::format("tensor '{}' lacks one of dtype, shape and data_offsets", printable(name_)));
    }
    if (offsets_.size() != 2 || offsets_[0] > offsets_[1]) {
      throw FormatError(fmt::format(
          "data_offsets of tensor '{}' must be [begin, end] with begin <= end", printable(name_)));
    }
    entry_.begin = static_cast<std::uint64_t>(offsets_[0]);
    entry_.end = static_cast<std::uint64_t>(offsets_[1]);
    const std::optional<std::int64_t> bytes = byte_size(entry_.shape, entry_.element);
    if (!bytes) throw FormatError(fmt::format("shape of tensor '{}' overflows", printable(name_)));
    if (static_cast<std::uint64_t>(*bytes) != entry_.end - entry_.begin) {
      throw FormatError(
          fmt::format("data_offsets of tensor '{}' span {} bytes; its dtype and shape need {}",
                      printable(name_), entry_.end - entry_.begin, *bytes));
    }
    header_.tensors.emplace(name_, std::move(entry_));
  }

  [[noreturn]] void refuse(std::string_view found) const {
    throw FormatError(fmt::format("{} is {}; must be {}", place(), found, expected()));
  }

  std::string place() const {
    if (depth_ == 0) return "the header";
    if (depth_ == 1) return fmt::format("entry '{}'", printable(name_));
    if (in_metadata_) return fmt::format("metadata '{}'", printable(field_));
    return fmt::format("{}{} of tensor '{}'", in_array_ ? "a number in " : "", field_,
                       printable(name_));
  }

  std::string_view expected() const {
    if (depth_ < 2) return "an object";
    if (in_metadata_) return "text";
    if (in_array_) return "a whole number, at least 0";
    if (field_ == "dtype") return "text";
    return field_ == "shape" ? "an array of whole numbers" : "an array of two whole numbers";
  }

  SafetensorsHeader& header_;
  int depth_ = 0;  // 1 inside the header's object, 2 inside a tensor's or the metadata's
  bool in_array_ = false;
  bool in_metadata_ = false;
  std::string name_;
  std::string field_;
  std::set<std::string> names_;
  std::set<std::string> fields_;
  std::vector<std::int64_t> offsets_;
  SafetensorsHeader::Entry entry_;
};

/// Tensors must cover the data without gap or overlap.
void check_coverage(const SafetensorsHeader& header, std::uint64_t data_size) {
  std::vector<const std::pair<const std::string, SafetensorsHeader::Entry>*> order;
  order.reserve(header.tensors.size());
  for (const auto& tensor : header.tensors) order.push_back(&tensor);
  std::ranges::sort(order, [](const auto* a, const auto* b) {
    return std::tie(a->second.begin, a->second.end) < std::tie(b->second.begin, b->second.end);
  });
  std::uint64_t covered = 0;
  for (const auto* tensor : order) {
    const auto& [name, entry] = *tensor;
    if (entry.begin != covered) {
      throw FormatError(fmt::format(
          "tensor '{}' begins at byte {} of the data; must begin at {}: no {}", printable(name),
          entry.begin, covered, entry.begin < covered ? "overlap" : "gap"));
    }
    if (entry.end > data_size) {
      throw FormatError(
          fmt::format("tensor '{}' ends at byte {} of the data, of which there are {}: truncated?",
                      printable(name), entry.end, data_size));
    }
    covered = entry.end;
  }
  if (covered != data_size) {
    throw FormatError(
        fmt::format("{} bytes follow the last tensor; must be none", data_size - covered));
  }
}

std::uint64_t header_length(std::span<const std::byte, kLengthBytes> prefix,
                            std::uint64_t file_size) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    length = length << 8 | std::to_integer<std::uint64_t>(prefix[i]);
  if (length > kLongestHeader) {
    throw FormatError(
        fmt::format("says that its header has {} bytes; at most {} are allowed: not .safetensors?",
                    length, kLongestHeader));
  }
  if (length > file_size - kLengthBytes) {
    throw FormatError(
        fmt::format("says that its header has {} bytes, but only {} follow: truncated?", length,
                    file_size - kLengthBytes));
  }
  return length;
}

void check_file_size(std::uint64_t file_size) {
  if (file_size < kLengthBytes) {
    throw FormatError(fmt::format("has {} bytes; a .safetensors file has at least 10", file_size));
  }
}

SafetensorsHeader parse_header(std::string_view text, std::uint64_t file_size) {
  if (text.empty() || text.front() != '{') throw FormatError("its header does not begin with '{'");
  // The parser would take a zero byte for the end of the text and never see what follows.
  if (text.find('\0') != std::string_view::npos) throw FormatError("its header holds a zero byte");
  SafetensorsHeader header;
  HeaderReader reader(header);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  header.data_start = kLengthBytes + text.size();
  check_coverage(header, file_size - header.data_start);
  return header;
}

SafetensorsHeader read_header(const InputFile& file) {
  try {
    check_file_size(file.size());
    std::array<std::byte, kLengthBytes> prefix{};
    file.read(0, prefix);
    std::string text(header_length(prefix, file.size()), '\0');
    file.read(kLengthBytes, std::as_writable_bytes(std::span(text)));
    return parse_header(text, file.size());
  } catch (const FormatError& error) {
    throw FileError(file.name(), error.what());
  }
}

}  // namespace

SafetensorsHeader parse_safetensors(std::span<const std::byte> file) {
  check_file_size(file.size());
  const std::uint64_t length = header_length(file.first<kLengthBytes>(), file.size());
  const auto text = file.subspan(kLengthBytes, length);
  return parse_header({reinterpret_cast<const char*>(text.data()), text.size()}, file.size());
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(path), header_(read_header(file_)) {}

Array SafetensorsFile::load(const std::string& tensor) const {
  const SafetensorsHeader::Entry& entry = header_.tensors.at(tensor);
  Array array{entry.element, entry.shape, std::vector<std::byte>(entry.end - entry.begin)};
  file_.read(header_.data_start + entry.begin, array.bytes);
  return array;
}

std::string safetensors_prefix(const std::map<std::string, ArrayView>& tensors,
                               const Metadata& metadata, std::vector<std::string>& layout) {
  layout.clear();
  for (const auto& [name, view] : tensors) layout.push_back(name);
  std::ranges::stable_sort(layout, [&](const std::string& a, const std::string& b) {
    return size_of(tensors.at(a).element) > size_of(tensors.at(b).element);
  });

  auto header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::uint64_t offset = 0;
  for (const std::string& name : layout) {
    const ArrayView& view = tensors.at(name);
    const std::uint64_t end = offset + view.bytes.size();
    header[name] = {
        {"dtype", name_of(view.element)}, {"shape", view.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  // Text that is not UTF-8 (a path in the metadata, say) is replaced rather than refused.
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');

  std::string prefix;
  for (std::uint64_t i = 0; i < kLengthBytes; ++i)
    prefix += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return prefix + text;
}

void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, ArrayView>& tensors, const Metadata& metadata) {
  std::vector<std::string> layout;
  const std::string prefix = safetensors_prefix(tensors, metadata, layout);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(prefix)));
  for (const std::string& name : layout) file.write(tensors.at(name).bytes);
  file.commit();
}

}  // namespace tessera::io
