#pragma once
/// The .safetensors format: 8 bytes of little-endian header length, a JSON header, then the
/// tensors' bytes.
///
///     {"__metadata__": {"text": "text", …},
///      "q": {"dtype": "F32", "shape": [2, 256, 12, 32], "data_offsets": [0, 786432]}, …}
///
/// Strict: what the format's reference implementation refuses is refused here too: a header longer
/// than 100 MB, one that does not begin with '{', repeated or unknown names, numbers that are not
/// whole, byte ranges that overlap, leave gaps, leave the file or do not fit their shape, bytes
/// that no tensor covers. Memory stays below a multiple of the file's size.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/io/array.hpp"
#include "tools/io/file.hpp"

namespace tessera::io {

/// What a header says: metadata, and where each tensor lies.
struct SafetensorsHeader {
  struct Entry {
    Element element = Element::f32;
    std::vector<std::int64_t> shape{};
    std::uint64_t begin = 0;  ///< bytes from the end of the header
    std::uint64_t end = 0;
  };
  Metadata metadata{};
  std::map<std::string, Entry> tensors{};
  std::uint64_t data_start = 0;  ///< bytes from the begin of the file
};

/// Reads the header of a whole file in memory and checks it against the file's size. Throws
/// FormatError.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file);

/// A file whose header has been read; tensors are read when asked for. Everything throws FileError.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const SafetensorsHeader& header() const noexcept { return header_; }
  bool contains(const std::string& tensor) const { return header_.tensors.contains(tensor); }
  /// The tensor must be there: ask contains() first.
  Array load(const std::string& tensor) const;
  std::string name() const { return file_.name(); }

 private:
  InputFile file_;
  SafetensorsHeader header_;
};

/// The bytes before the tensors': length and header. `layout` receives the names in the order in
/// which their bytes follow: wide elements first, so that each is aligned.
std::string safetensors_prefix(const std::map<std::string, ArrayView>& tensors,
                               const Metadata& metadata, std::vector<std::string>& layout);

/// Writes a file whole or not at all. Throws FileError.
void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, ArrayView>& tensors, const Metadata& metadata);

}  // namespace tessera::io
