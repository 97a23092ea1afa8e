/// libFuzzer target: any bytes are refused with FormatError, or are an array that fills the file
/// and reads back the same when written anew.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "tests/fuzz/require.hpp"
#include "tools/io/error.hpp"
#include "tools/io/npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera;
  const auto file = std::as_bytes(std::span(data, size));
  try {
    const io::NpyHeader header = io::parse_npy(file);
    const std::int64_t bytes = io::byte_size(header.shape, header.element).value();
    REQUIRE(header.data_start + static_cast<std::uint64_t>(bytes) == size);
    const auto content = file.subspan(header.data_start);
    std::string written = io::npy_prefix(io::ArrayView(header.element, header.shape, content));
    REQUIRE(written.size() % 64 == 0);
    written.append(reinterpret_cast<const char*>(content.data()), content.size());
    const io::NpyHeader back = io::parse_npy(std::as_bytes(std::span(written)));
    REQUIRE(back.element == header.element);
    REQUIRE(back.shape == header.shape);
  } catch (const io::FormatError& error) {
    REQUIRE(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
