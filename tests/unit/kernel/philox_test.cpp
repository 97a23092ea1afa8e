// Philox4x32 against Random123's published known-answer vectors and a plain implementation; then
// dropout's use of it.

#include "core/kernel/philox.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "tests/unit/kernel/vector_lanes.hpp"

namespace tessera::testing {
namespace {

using kernel::ScalarLanes;
using Words = std::array<std::uint32_t, 4>;

template <int kRounds>
Words ours(Words counter, std::uint32_t k0, std::uint32_t k1) {
  std::uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
  kernel::philox4x32<ScalarLanes, kRounds>(c, {k0, k1});
  return {c[0], c[1], c[2], c[3]};
}

// As the paper writes it: a bijection on (L, R) pairs, the key bumped between rounds.
Words plain(Words x, std::uint64_t k0, std::uint64_t k1, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t p0 = x[0] * 0xD2511F53ull, p1 = x[2] * 0xCD9E8D57ull;
    x = {static_cast<std::uint32_t>((p1 >> 32) ^ x[1] ^ (k0 & 0xFFFFFFFF)),
         static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>((p0 >> 32) ^ x[3] ^ (k1 & 0xFFFFFFFF)),
         static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
  return x;
}

// Random123, tests/kat_vectors: counters and keys of zeros, of ones, and of the digits of pi.
TEST(Philox, KnownAnswers) {
  constexpr std::uint32_t kOnes = 0xFFFFFFFF;
  const Words zeros{}, ones{kOnes, kOnes, kOnes, kOnes},
      pi{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344};
  EXPECT_EQ(ours<7>(zeros, 0, 0), (Words{0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48}));
  EXPECT_EQ(ours<7>(ones, kOnes, kOnes), (Words{0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662}));
  EXPECT_EQ(ours<7>(pi, 0xA4093822, 0x299F31D0),
            (Words{0x4DFCCABA, 0x190A87F0, 0xC47362BA, 0xB6B5242A}));
  EXPECT_EQ(ours<10>(zeros, 0, 0), (Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(ours<10>(ones, kOnes, kOnes), (Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(ours<10>(pi, 0xA4093822, 0x299F31D0),
            (Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

TEST(Philox, EqualsPlainImplementation) {
  std::mt19937 random(1);
  const auto word = [&random] { return static_cast<std::uint32_t>(random()); };
  for (int repeat = 0; repeat < 10000; ++repeat) {
    const Words counter{word(), word(), word(), word()};
    const std::uint32_t k0 = word(), k1 = word();
    ASSERT_EQ(ours<7>(counter, k0, k1), plain(counter, k0, k1, 7));
    ASSERT_EQ(ours<10>(counter, k0, k1), plain(counter, k0, k1, 10));
    ASSERT_EQ(ours<1>(counter, k0, k1), plain(counter, k0, k1, 1));
  }
}

// The architecture's definition, written out: is the weight at (batch, head, row, column) kept?
std::uint32_t defined_number(std::uint64_t seed, std::uint64_t offset, kernel::Index sequence,
                             kernel::Index row, kernel::Index column) {
  const std::uint64_t key = seed ^ (offset >> 32 << 32);
  const Words words =
      plain({static_cast<std::uint32_t>(column / 8), static_cast<std::uint32_t>(row),
             static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(offset)},
            key & 0xFFFFFFFF, key >> 32, 7);
  const std::uint32_t word = words[static_cast<std::size_t>(column % 8 / 2)];
  return column % 2 ? word >> 16 : word & 0xFFFF;
}

template <class L>
class DropoutTest : public ::testing::Test {};
using Policies = ::testing::Types<ScalarLanes, FourLanes>;
TYPED_TEST_SUITE(DropoutTest, Policies);

TYPED_TEST(DropoutTest, NumbersAreTheDefinition) {
  using L = TypeParam;
  std::mt19937_64 random(2);
  for (int repeat = 0; repeat < 3000; ++repeat) {
    kernel::Dropout dropout;
    dropout.threshold = static_cast<std::uint32_t>(random() % 65537);
    dropout.seed = random(), dropout.offset = random();
    const kernel::Index batch = static_cast<kernel::Index>(random() % 1000), head = repeat % 5,
                        head_q = 5;
    const auto stream = kernel::dropout_stream(dropout, head_q, batch, head);
    const kernel::Index row_first = static_cast<kernel::Index>(random() % 0xFFFFFF00u);
    const kernel::Index group = static_cast<kernel::Index>(random() % (1u << 29));
    typename L::Index lanes{};
    for (int i = 0; i < LaneAccess<L>::kWidth; ++i) LaneAccess<L>::set(lanes, i, 3 * i + 1);
    typename L::Bits words[4];
    kernel::draw<L>(stream, kernel::dropout_rows<L>(row_first, lanes),
                    static_cast<std::uint32_t>(group), words);
    for (std::uint32_t c = 0; c < 8; ++c) {
      for (int i = 0; i < LaneAccess<L>::kWidth; ++i) {
        const std::uint32_t expected =
            defined_number(dropout.seed, dropout.offset, batch * head_q + head,
                           row_first + 3 * i + 1, group * 8 + c);
        ASSERT_EQ(LaneAccess<L>::get(kernel::number<L>(words, c), i), expected);
        ASSERT_EQ(LaneAccess<L>::get(kernel::number<L>(words, c + 16), i), expected);
        ASSERT_EQ(LaneAccess<L>::get(kernel::kept<L>(stream, words, c), i) != 0,
                  expected >= dropout.threshold);
      }
    }
  }
}

TYPED_TEST(DropoutTest, ThresholdsAtTheEnds) {
  using L = TypeParam;
  const typename L::Bits words[4] = {L::bits(0x0000FFFFu), L::bits(0xFFFF0000u),
                                     L::bits(0x00010000u), L::bits(0u)};
  const std::uint32_t numbers[8] = {0xFFFF, 0, 0, 0xFFFF, 0, 1, 0, 0};
  for (const std::uint32_t threshold : {0u, 1u, 2u, 65535u, 65536u}) {
    kernel::DropoutStream stream;
    stream.threshold = threshold;
    for (std::uint32_t c = 0; c < 8; ++c) {
      EXPECT_EQ(LaneAccess<L>::get(kernel::kept<L>(stream, words, c), 0) != 0,
                numbers[c] >= threshold)
          << threshold << ' ' << c;
    }
  }
}

TEST(Dropout, SeedAndOffsetOnTheDeviceReplaceTheValues) {
  const std::uint64_t seed = 0x123456789ABCDEF0, offset = 0xFEDCBA9876543210;
  kernel::Dropout by_value, by_pointer;
  by_value.seed = seed, by_value.offset = offset;
  by_pointer.seed = 1, by_pointer.offset = 2, by_pointer.seed_device = &seed,
  by_pointer.offset_device = &offset;
  const auto a = kernel::dropout_stream(by_value, 4, 2, 3),
             b = kernel::dropout_stream(by_pointer, 4, 2, 3);
  EXPECT_EQ(a.key.k0, 0x9ABCDEF0);
  EXPECT_EQ(a.key.k1, 0x12345678u ^ 0xFEDCBA98u);
  EXPECT_EQ(a.offset, 0x76543210u);
  EXPECT_EQ(a.sequence, 11u);
  EXPECT_EQ(a.key.k0, b.key.k0);
  EXPECT_EQ(a.key.k1, b.key.k1);
  EXPECT_EQ(a.offset, b.offset);
}

TEST(Dropout, KeepScale) {
  kernel::Dropout dropout;
  EXPECT_EQ(dropout.keep_scale(), 1.0f);
  dropout.threshold = 16384;
  EXPECT_EQ(dropout.keep_scale(), 4.0f / 3.0f);
  dropout.threshold = 65536;
  EXPECT_EQ(dropout.keep_scale(), 0.0f);
}

// Kept weights of 512 rows and 512 columns of a head, one bool an element.
std::vector<bool> keep_mask(std::uint32_t threshold, std::uint64_t seed, kernel::Index head) {
  kernel::Dropout dropout;
  dropout.threshold = threshold, dropout.seed = seed;
  const auto stream = kernel::dropout_stream(dropout, 8, 0, head);
  std::vector<bool> mask;
  for (std::uint32_t row = 0; row < 512; ++row) {
    for (std::uint32_t group = 0; group < 64; ++group) {
      std::uint32_t words[4];
      kernel::draw<ScalarLanes>(stream, row, group, words);
      for (std::uint32_t c = 0; c < 8; ++c)
        mask.push_back(kernel::kept<ScalarLanes>(stream, words, c));
    }
  }
  return mask;
}

double mean_of_product(const std::vector<bool>& a, const std::vector<bool>& b, std::size_t shift) {
  std::size_t both = 0;
  for (std::size_t i = 0; i + shift < a.size(); ++i) both += a[i] && b[i + shift];
  return static_cast<double>(both) / static_cast<double>(a.size() - shift);
}

// Five standard deviations of a mean over 2^18 independent elements.
double tolerance(double p) { return 5 * std::sqrt(p * (1 - p) / (1 << 18)); }

TEST(Dropout, RealisedProbabilityAndIndependence) {
  for (const std::uint32_t threshold : {655u, 6554u, 32768u, 58982u}) {
    const double keep = (65536.0 - threshold) / 65536.0, pair = keep * keep;
    const auto mask = keep_mask(threshold, 42, 0);
    EXPECT_NEAR(mean_of_product(mask, mask, 0), keep, tolerance(keep));
    // Neighbouring columns, the other half of a word, other words, the next group, the next row.
    for (const std::size_t shift : {1u, 2u, 3u, 4u, 7u, 8u, 512u, 513u}) {
      EXPECT_NEAR(mean_of_product(mask, mask, shift), pair, 2 * tolerance(pair))
          << "shift " << shift;
    }
    EXPECT_NEAR(mean_of_product(mask, keep_mask(threshold, 42, 1), 0), pair, tolerance(pair))
        << "next head";
    EXPECT_NEAR(mean_of_product(mask, keep_mask(threshold, 43, 0), 0), pair, tolerance(pair))
        << "next seed";
  }
}

}  // namespace
}  // namespace tessera::testing
