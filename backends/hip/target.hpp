#pragma once
// The targets that there are kernels for, and what planning takes a device of each for where none
// is there.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace tessera::hip {

enum class Generation { Unknown, Cdna2, Cdna3, Cdna4, Rdna3, Rdna4 };

struct Target {
  std::string_view isa{};
  Generation generation = Generation::Unknown;
  int multiprocessors = 0;        // compute units
  std::size_t shared_memory = 0;  // LDS, bytes a work-group
  std::size_t l2 = 0;             // bytes; of one die where there are several
};

inline constexpr std::size_t kKilobyte = 1024, kMegabyte = 1024 * kKilobyte;

// Of one product each: MI210, MI300X, MI355X, RX 7900 XTX, RX 9070 XT.
inline constexpr std::array<Target, 5> kTargets{{
    {"gfx90a", Generation::Cdna2, 104, 64 * kKilobyte, 8 * kMegabyte},
    {"gfx942", Generation::Cdna3, 304, 64 * kKilobyte, 4 * kMegabyte},
    {"gfx950", Generation::Cdna4, 256, 160 * kKilobyte, 4 * kMegabyte},
    {"gfx1100", Generation::Rdna3, 96, 64 * kKilobyte, 6 * kMegabyte},
    {"gfx1201", Generation::Rdna4, 64, 64 * kKilobyte, 8 * kMegabyte},
}};

// Null if there are no kernels for it.
constexpr const Target* find_target(std::string_view isa) {
  const auto* const found = std::find_if(kTargets.begin(), kTargets.end(),
                                         [&](const Target& target) { return target.isa == isa; });
  return found == kTargets.end() ? nullptr : found;
}

// The architecture in a device's full name: "gfx942" of "gfx942:sramecc+:xnack-".
constexpr std::string_view isa_of(std::string_view full_name) {
  return full_name.substr(0, full_name.find(':'));
}

// Its digits, which are hexadecimal, as a number: 0x90a of "gfx90a"; 0 if it has another form.
constexpr int number_of(std::string_view isa) {
  constexpr std::string_view kPrefix = "gfx", kDigits = "0123456789abcdef";
  constexpr std::size_t kMost = 6;
  if (isa.substr(0, kPrefix.size()) != kPrefix) return 0;
  isa.remove_prefix(kPrefix.size());
  int number = 0;
  for (const char c : isa.substr(0, kMost + 1)) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return 0;
    number = number * 16 + static_cast<int>(digit);
  }
  return isa.size() <= kMost ? number : 0;
}

// Lanes of a wave as our kernels are compiled: RDNA, which begins with gfx10, has 32.
constexpr int wave_size(std::string_view isa) { return number_of(isa) >= 0x1000 ? 32 : 64; }

static_assert(isa_of("gfx90a:sramecc+:xnack-") == "gfx90a" && isa_of("gfx1100") == "gfx1100");
static_assert(number_of("gfx90a") == 0x90a && number_of("gfx1201") == 0x1201);
static_assert(number_of("sm_90") == 0 && number_of("gfx9-generic") == 0 && number_of("gfx") == 0);
static_assert(wave_size("gfx90a") == 64 && wave_size("gfx1100") == 32);

}  // namespace tessera::hip
