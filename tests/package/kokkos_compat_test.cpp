// ci/kokkos_compat.cpp against the meaning of what it stands in for: every replacement inside every
// short string and random ones inside longer strings, and std::strtol.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

extern "C" {
long __isoc23_strtol(const char* text, char** end, int base);
void _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm(
    void* string, char* place, std::size_t old_size, const char* source, std::size_t new_size,
    std::size_t rest);
}

namespace {

struct Replacement {
  std::size_t size;      // of the string
  std::size_t place;     // first character that goes
  std::size_t old_size;  // how many go
  std::size_t source;    // first character that comes instead, in the same string
  std::size_t new_size;  // how many come
};

std::string by_standard_library(const std::string& text, const Replacement& r) {
  std::string result = text;
  result.replace(r.place, r.old_size, text, r.source, r.new_size);
  return result;
}

// In an allocation of exactly the size that is needed, so that the address sanitizer sees a step
// outside.
std::string by_compat(const std::string& text, const Replacement& r) {
  const std::size_t size = r.size - r.old_size + r.new_size;
  const std::unique_ptr<char[]> buffer(new char[std::max(r.size, size)]);
  char* const data = buffer.get();
  text.copy(data, r.size);
  _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm(
      nullptr, data + r.place, r.old_size, data + r.source, r.new_size,
      r.size - r.place - r.old_size);
  return {data, size};
}

void check(const Replacement& r) {
  std::string text(r.size, ' ');
  for (std::size_t i = 0; i < r.size; ++i) text[i] = static_cast<char>('!' + i % 90);
  ASSERT_EQ(by_compat(text, r), by_standard_library(text, r))
      << "size " << r.size << " place " << r.place << " old " << r.old_size << " source "
      << r.source << " new " << r.new_size;
}

TEST(KokkosCompat, ReplacesInsideEveryShortString) {
  for (std::size_t size = 0; size <= 12; ++size)
    for (std::size_t place = 0; place <= size; ++place)
      for (std::size_t old_size = 0; place + old_size <= size; ++old_size)
        for (std::size_t source = 0; source <= size; ++source)
          for (std::size_t new_size = 0; source + new_size <= size; ++new_size)
            check({size, place, old_size, source, new_size});
}

TEST(KokkosCompat, ReplacesInsideRandomStrings) {
  std::mt19937 random(1);
  const auto up_to = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit)(random);
  };
  for (int i = 0; i < 50000; ++i) {
    const std::size_t size = up_to(300);
    const std::size_t place = up_to(size);
    const std::size_t source = up_to(size);
    check({size, place, up_to(size - place), source, up_to(size - source)});
  }
}

TEST(KokkosCompat, ReadsNumbersLikeStrtol) {
  for (const char* text : {"0", "12", " -7x", "+3", "", "x", "0x10", "0b1", "99999999999999999999",
                           "-99999999999999999999"}) {
    char* end = nullptr;
    char* expected_end = nullptr;
    EXPECT_EQ(__isoc23_strtol(text, &end, 10), std::strtol(text, &expected_end, 10)) << text;
    EXPECT_EQ(end, expected_end) << text;
  }
}

}  // namespace
