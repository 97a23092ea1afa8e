#include "tests/amdgpu/lanes/operations.hpp"

#include <fmt/core.h>

namespace tessera::amdgpu::lanes {
namespace {

// In a branch all of its lanes must have the same number: which of them come to it together depends
// on what the compiler makes of the source.
void apply_first_lane(const Wave& wave) {
  int first = 0, lanes = 0;
  while (wave.in[first] == nullptr) ++first;
  const auto value = wave.from<std::uint32_t>(first);
  bool same = true;
  for (int i = first; i < wave.lanes; ++i) {
    if (wave.in[i] == nullptr) continue;
    ++lanes;
    same = same && wave.from<std::uint32_t>(i) == value;
    wave.to<std::uint32_t>(i) = value;
  }
  if (lanes != wave.lanes && !same) fail("lanes of a branch have different numbers for the first");
}

void apply_ballot(const Wave& wave) {
  std::uint64_t all = 0;
  for (int i = 0; i < wave.lanes; ++i) all |= std::uint64_t{wave.from<bool>(i)} << i;
  for (int i = 0; i < wave.lanes; ++i) wave.to<std::uint64_t>(i) = all;
}

void apply_permute(const Wave& wave) {
  for (int i = 0; i < wave.lanes; ++i) {
    const int from = (wave.from<Permute>(i).byte >> 2) & (wave.lanes - 1);
    wave.to<std::uint32_t>(i) = wave.from<Permute>(from).word;
  }
}

void apply_share_in_row(const Wave& wave) {
  for (int i = 0; i < wave.lanes; ++i)
    wave.to<float>(i) = wave.from<FromLane>(i / 16 * 16 + wave.from<FromLane>(i).lane).value;
}

struct Four {
  std::uint16_t number[4];
};

void apply_read_transposed(const Wave& wave) {
  for (int i = 0; i < wave.lanes; ++i)
    for (int n = 0; n < 4; ++n)
      wave.to<Four>(i).number[n] = wave.from<Four>(i / 16 * 16 + 4 * n + i % 16 / 4).number[i % 4];
}

}  // namespace

const Operation kFirstLane{"readfirstlane", apply_first_lane, true};
const Operation kBallot{"ballot", apply_ballot};
const Operation kPermute{"ds_bpermute", apply_permute};
const Operation kShareInRow{"row_share", apply_share_in_row};
const Operation kReadTransposed{"ds_read_tr16_b64", apply_read_transposed};

std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t both = std::uint64_t{a} << 32 | b;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t which = selector >> (8 * i) & 0xFF;
    if (which > 7 && which != 12) fail(fmt::format("v_perm_b32 with byte {}", which));
    const std::uint32_t byte =
        which == 12 ? 0 : static_cast<std::uint32_t>(both >> (8 * which)) & 0xFF;
    result |= byte << (8 * i);
  }
  return result;
}

void load_buffer(const Buffer& buffer, std::uint32_t offset, std::uint32_t further, int count,
                 std::uint32_t* words) {
  // What all lanes add is no part of what is compared: it makes the buffer shorter.
  const std::uint32_t size = buffer.size > further ? buffer.size - further : 0;
  if (offset % 4 != 0 || further % 4 != 0)
    fail(fmt::format("a buffer load from byte {} + {}", offset, further));
  for (int i = 0; i < count; ++i) {
    const std::uint64_t at = std::uint64_t{offset} + 4 * static_cast<std::uint64_t>(i);
    words[i] = 0;
    if (at + 4 <= size) std::memcpy(&words[i], buffer.data + further + at, 4);
  }
}

}  // namespace tessera::amdgpu::lanes
