#pragma once
// Dropout by Philox4x32-7, a counter-based generator (Salmon, Moraes, Dror and Shaw 2011, "Parallel
// random numbers: as easy as 1, 2, 3"): which weights are dropped depends on their position alone,
// so that every backend, forward and backward, in any order, drops the same ones.
//
//     key       { seed's low word, seed's high word XOR offset's high word }
//     counter   { column / 8, row, batch · head_q + head, offset's low word }
//     words     w[0]           w[1]           w[2]           w[3]
//     column    0 | 1          2 | 3          4 | 5          6 | 7       (mod 8; low half first)
//
// A column's 16-bit number says whether its weight is kept: number >= threshold.

#include <cstdint>

#include "core/kernel/arguments.hpp"
#include "core/kernel/lanes.hpp"
#include "core/kernel/macros.hpp"

namespace tessera::kernel {

inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53u;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9u;  // golden ratio
inline constexpr std::uint32_t kPhiloxWeyl1 = 0xBB67AE85u;  // sqrt(3) - 1
inline constexpr int kDropoutRounds = 7;

struct PhiloxKey {
  std::uint32_t k0 = 0;
  std::uint32_t k1 = 0;

  // The key as it is `rounds` rounds later.
  TESSERA_FN constexpr PhiloxKey after(std::uint32_t rounds) const {
    return {k0 + rounds * kPhiloxWeyl0, k1 + rounds * kPhiloxWeyl1};
  }
};

template <class L>
TESSERA_FN void philox_round(typename L::Bits (&c)[4], PhiloxKey key) {
  const auto high0 = L::mul_hi(c[0], kPhiloxMultiplier0), low0 = c[0] * kPhiloxMultiplier0;
  const auto high1 = L::mul_hi(c[2], kPhiloxMultiplier1), low1 = c[2] * kPhiloxMultiplier1;
  c[0] = high1 ^ c[1] ^ key.k0;
  c[1] = low1;
  c[2] = high0 ^ c[3] ^ key.k1;
  c[3] = low0;
}

// Replaces the counter by its random words.
template <class L, int kRounds>
TESSERA_FN void philox4x32(typename L::Bits (&c)[4], PhiloxKey key) {
  TESSERA_UNROLL
  for (std::uint32_t round = 0; round < kRounds; ++round) philox_round<L>(c, key.after(round));
}

// The 64-bit product of two words.
struct WideProduct {
  std::uint32_t high;
  std::uint32_t low;
};

TESSERA_FN constexpr WideProduct wide_product(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(product)};
}

// The random numbers of one (batch, head).
struct DropoutStream {
  PhiloxKey key;
  std::uint32_t sequence = 0;  // batch · head_q + head; packed: batch is the segment
  std::uint32_t offset = 0;
  std::uint32_t threshold = 0;
};

// Reads seed and offset where they live on the device.
TESSERA_FN DropoutStream dropout_stream(const Dropout& dropout, Index head_q, Index batch,
                                        Index head) {
  const std::uint64_t seed = dropout.seed_device ? *dropout.seed_device : dropout.seed;
  const std::uint64_t offset = dropout.offset_device ? *dropout.offset_device : dropout.offset;
  return {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>((seed ^ offset) >> 32)},
          static_cast<std::uint32_t>(batch * head_q + head),
          static_cast<std::uint32_t>(offset),
          dropout.threshold};
}

// Random words of the columns [8·column_group, 8·column_group + 8) in some rows, one row a lane:
// philox4x32 of their counters. Only the row differs between lanes, and it takes three rounds to
// reach all words: 4 of the first 6 products are the same for all lanes and computed once.
template <class L>
TESSERA_FN void draw(const DropoutStream& stream, typename L::Bits rows, std::uint32_t column_group,
                     typename L::Bits (&words)[4]) {
  const PhiloxKey key1 = stream.key, key2 = key1.after(1), key3 = key1.after(2);
  const WideProduct group = wide_product(column_group, kPhiloxMultiplier0);
  const WideProduct sequence = wide_product(stream.sequence, kPhiloxMultiplier1);

  const auto word0 =
      L::bits(sequence.high ^ key1.k0) ^ rows;  // round 1: the other words are uniform
  const WideProduct product1 =
      wide_product(group.high ^ stream.offset ^ key1.k1, kPhiloxMultiplier1);

  const std::uint32_t uniform0 = product1.high ^ sequence.low ^ key2.k0;  // round 2
  const auto word2 = L::mul_hi(word0, kPhiloxMultiplier0) ^ L::bits(group.low ^ key2.k1);
  const auto word3 = word0 * kPhiloxMultiplier0;
  const WideProduct product0 = wide_product(uniform0, kPhiloxMultiplier0);

  words[0] = L::mul_hi(word2, kPhiloxMultiplier1) ^ L::bits(product1.low ^ key3.k0);  // round 3
  words[1] = word2 * kPhiloxMultiplier1;
  words[2] = word3 ^ L::bits(product0.high ^ key3.k1);
  words[3] = L::bits(product0.low);

  philox4x32<L, kDropoutRounds - 3>(words, key1.after(3));
}

// The lanes' rows as `draw` wants them: row_first is inside the segment, below 2^32.
template <class L>
TESSERA_FN typename L::Bits dropout_rows(Index row_first, typename L::Index i) {
  return L::bits(static_cast<std::uint32_t>(row_first)) + L::bits(i);
}

// The 16-bit number of column `c` (mod 8: any column of the group may be given). Unroll loops over
// c on GPUs.
template <class L>
TESSERA_FN typename L::Bits number(const typename L::Bits (&words)[4], std::uint32_t c) {
  return (words[c / 2 % 4] >> (c % 2 * 16)) & 0xFFFFu;
}

// Is the weight of column c kept? number >= threshold, in 32 bits: threshold 0 keeps all, 65536
// none.
template <class L>
TESSERA_FN typename L::Predicate kept(const DropoutStream& stream,
                                      const typename L::Bits (&words)[4], std::uint32_t c) {
  return L::less(L::bits(stream.threshold), number<L>(words, c) + 1u);
}

}  // namespace tessera::kernel
