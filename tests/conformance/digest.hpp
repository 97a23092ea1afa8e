#pragma once
/// A 128-bit fingerprint of data, for keys of a cache and for checksums. Not against an adversary.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace tessera::testing {

class Digest {
 public:
  void add(const void* data, std::size_t size) noexcept {
    const auto* bytes = static_cast<const unsigned char*>(data);
    mix(size);
    for (; size >= 8; size -= 8, bytes += 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes, 8);
      mix(word);
    }
    std::uint64_t rest = 0;
    if (size > 0) std::memcpy(&rest, bytes, size);
    mix(rest);
  }

  template <class T>
  void add(const T& number) noexcept {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    add(&number, sizeof number);
  }

  std::uint64_t low() const noexcept { return finish(a_, b_); }
  std::uint64_t high() const noexcept { return finish(b_, a_); }

  std::string text() const {
    std::string hex;
    for (const std::uint64_t word : {high(), low()}) {
      for (int shift = 60; shift >= 0; shift -= 4) hex += "0123456789abcdef"[(word >> shift) & 15u];
    }
    return hex;
  }

 private:
  void mix(std::uint64_t word) noexcept {
    a_ = (a_ ^ word) * 0x9fb21c651e98df25u;
    a_ ^= a_ >> 32;
    b_ = (b_ + word) * 0xd6e8feb86659fd93u;
    b_ ^= b_ >> 29;
  }

  static std::uint64_t finish(std::uint64_t x, std::uint64_t y) noexcept {
    x ^= y >> 31;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 29);
  }

  std::uint64_t a_ = 0x243f6a8885a308d3u;
  std::uint64_t b_ = 0x13198a2e03707344u;
};

}  // namespace tessera::testing
