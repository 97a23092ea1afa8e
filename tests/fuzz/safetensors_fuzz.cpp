/// libFuzzer target: any bytes are refused with FormatError, or are a header whose tensors lie
/// inside the file one after another, and which reads back the same when written anew.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "tests/fuzz/require.hpp"
#include "tools/io/error.hpp"
#include "tools/io/safetensors.hpp"

namespace {

using namespace tessera;

void check_layout(const io::SafetensorsHeader& header, std::size_t file_size) {
  std::uint64_t covered = 0;
  for (const auto& [name, entry] : header.tensors) {
    REQUIRE(entry.begin <= entry.end);
    REQUIRE(header.data_start + entry.end <= file_size);
    REQUIRE(io::byte_size(entry.shape, entry.element) ==
            static_cast<std::int64_t>(entry.end - entry.begin));
    covered += entry.end - entry.begin;
  }
  REQUIRE(header.data_start + covered == file_size);
}

void check_round_trip(const io::SafetensorsHeader& header, std::span<const std::byte> file) {
  std::map<std::string, io::ArrayView> views;
  for (const auto& [name, entry] : header.tensors) {
    views.emplace(name, io::ArrayView(entry.element, entry.shape,
                                      file.subspan(header.data_start + entry.begin,
                                                   entry.end - entry.begin)));
  }
  std::vector<std::string> layout;
  std::string written = io::safetensors_prefix(views, header.metadata, layout);
  for (const std::string& name : layout) {
    const auto bytes = views.at(name).bytes;
    written.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  const io::SafetensorsHeader back = io::parse_safetensors(std::as_bytes(std::span(written)));
  REQUIRE(back.metadata == header.metadata);
  REQUIRE(back.tensors.size() == header.tensors.size());
  for (const auto& [name, entry] : back.tensors) {
    const auto& before = header.tensors.at(name);
    REQUIRE(entry.element == before.element);
    REQUIRE(entry.shape == before.shape);
    REQUIRE(entry.end - entry.begin == before.end - before.begin);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  try {
    const io::SafetensorsHeader header = io::parse_safetensors(file);
    check_layout(header, size);
    check_round_trip(header, file);
  } catch (const io::FormatError& error) {
    REQUIRE(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
