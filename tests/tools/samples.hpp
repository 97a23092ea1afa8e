#pragma once
/// Small tensor files as bytes: valid ones, and every way we know in which one can be wrong. The
/// readers' tests go through them, and the fuzzers start from them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::testing {

/// A file's bytes, and what the reader says about them: empty if they are fine.
struct Sample {
  std::string name{};  ///< [a-z0-9_]+
  std::string bytes{};
  std::string message{};  ///< part of the reader's message
};

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// A .safetensors file of this header, followed by `data_size` bytes.
std::string safetensors_bytes(std::string_view header, std::size_t data_size = 0);

/// A .npy file with this dictionary, followed by `data_size` bytes.
std::string npy_bytes(std::string_view dictionary, std::size_t data_size = 0, int major = 1);

std::vector<Sample> safetensors_samples();
std::vector<Sample> npy_samples();

}  // namespace tessera::testing
