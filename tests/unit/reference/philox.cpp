#include "reference/philox.hpp"

#include <gtest/gtest.h>

namespace tessera::reference {
namespace {

// The known answers that the Random123 library is tested with.
TEST(Philox, KnownAnswers) {
  struct Answer {
    int rounds;
    PhiloxCounter counter;
    PhiloxKey key;
    PhiloxCounter result;
  };
  constexpr std::uint32_t kOnes = 0xffffffff;
  constexpr PhiloxCounter kPi{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
  constexpr PhiloxKey kPiKey{0xa4093822, 0x299f31d0};
  const Answer answers[] = {
      {7, {}, {}, {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}},
      {7,
       {kOnes, kOnes, kOnes, kOnes},
       {kOnes, kOnes},
       {0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}},
      {7, kPi, kPiKey, {0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}},
      {10, {}, {}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {10,
       {kOnes, kOnes, kOnes, kOnes},
       {kOnes, kOnes},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {10, kPi, kPiKey, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Answer& a : answers)
    EXPECT_EQ(philox4x32(a.counter, a.key, a.rounds), a.result) << a.rounds;
}

// The vector above, in the terms of dropout: counter = (column / 8, row, head, low half of the
// offset), key = seed XOR the offset's high half in the upper word; low half of a word first.
TEST(Dropout, LaysOutCounterKeyAndNumbers) {
  const std::uint64_t high = 0x5a5a5a5a;
  const Dropout dropout{.threshold = 1,
                        .seed = ((0x299f31d0ull ^ high) << 32) | 0xa4093822u,
                        .offset = high << 32 | 0x03707344u};
  const auto numbers = dropout.draw(0x13198a2e, 0x85a308d3, std::int64_t{0x243f6a88} * 8 + 5);
  const std::array<std::uint32_t, 8> expected{0xcaba, 0x4dfc, 0x87f0, 0x190a,
                                              0x62ba, 0xc473, 0x242a, 0xb6b5};
  EXPECT_EQ(numbers, expected);
}

TEST(Dropout, RoundsTheProbabilityHalfToEven) {
  EXPECT_EQ(Dropout::make(0, 0, 0).threshold, 0u);
  EXPECT_EQ(Dropout::make(1, 0, 0).threshold, 65536u);
  EXPECT_EQ(Dropout::make(0.5 / 65536, 0, 0).threshold, 0u);
  EXPECT_EQ(Dropout::make(1.5 / 65536, 0, 0).threshold, 2u);
  EXPECT_EQ(Dropout::make(0.1, 0, 0).threshold, 6554u);
  EXPECT_EQ(Dropout::make(0, 0, 0).keep_scale(), 1);
  EXPECT_EQ(Dropout::make(0.5, 0, 0).keep_scale(), 2);
  EXPECT_EQ(Dropout::make(1, 0, 0).keep_scale(), 0);
}

}  // namespace
}  // namespace tessera::reference
