// Where a sequence lies and what it sees, from lengths, ranges and prefix sums that may hold
// anything.

#include "core/kernel/sequence.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace tessera::testing {
namespace {

using kernel::ForwardArguments;
using kernel::Index;
using kernel::kUnbounded;
using kernel::Sequence;

struct Case {
  Index seq_q, seq_k;
  int key_begin, key_end, query_end;
  Index left, right;
  bool bottom_right;
};

// The definition of the numerics page.
bool sees(const Case& c, Index i, Index j) {
  const Index key_end = std::min<Index>(c.key_end, c.seq_k),
              query_end = std::min<Index>(c.query_end, c.seq_q);
  const Index diagonal = c.bottom_right ? key_end - query_end : 0;
  return i < query_end && c.key_begin <= j && j < key_end &&
         (c.left == kUnbounded || i + diagonal - c.left <= j) &&
         (c.right == kUnbounded || j <= i + diagonal + c.right);
}

void check(const Case& c) {
  ForwardArguments a;
  a.batch = 1, a.seq_q = a.total_q = c.seq_q, a.seq_k = a.total_k = c.seq_k;
  a.left = c.left, a.right = c.right, a.bottom_right = c.bottom_right;
  a.key_begin = &c.key_begin, a.key_end = &c.key_end, a.query_end = &c.query_end;
  const Sequence s = sequence(a, 0);
  ASSERT_EQ(s.rows, c.seq_q);
  ASSERT_EQ(s.query_end, std::min<Index>(c.query_end, c.seq_q));
  ASSERT_EQ(s.keys, std::min<Index>(c.key_end, c.seq_k));
  for (Index i = 0; i < s.query_end; ++i) {
    const auto row = s.band.row(i);
    for (Index j = 0; j < c.seq_k; ++j) {
      ASSERT_EQ(row.begin <= j && j < row.end, sees(c, i, j))
          << "seq_q " << c.seq_q << " seq_k " << c.seq_k << " key_begin " << c.key_begin
          << " key_end " << c.key_end << " query_end " << c.query_end << " left " << c.left
          << " right " << c.right << " bottom_right " << c.bottom_right << " row " << i << " key "
          << j;
    }
  }
}

TEST(Sequence, BandIsTheDefinition) {
  const Index edges[] = {0, 1, 3, 6, kUnbounded};
  for (Index seq_q = 1; seq_q <= 7; ++seq_q) {
    for (Index seq_k = 0; seq_k <= 7; ++seq_k) {
      for (int key_begin = 0; key_begin <= seq_k; ++key_begin) {
        for (int key_end = 0; key_end <= seq_k + 1; ++key_end) {
          for (int query_end = 0; query_end <= seq_q + 1; ++query_end) {
            for (const Index left : edges) {
              for (const Index right : edges) {
                for (const bool bottom_right : {false, true}) {
                  check({seq_q, seq_k, key_begin, key_end, query_end, left, right, bottom_right});
                  if (HasFatalFailure()) return;
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(Sequence, WithoutRangesIsAll) {
  ForwardArguments a;
  a.batch = 3, a.seq_q = 4, a.seq_k = 9;
  const Sequence s = sequence(a, 2);
  EXPECT_EQ(s.batch, 2);
  EXPECT_EQ(s.query, 0);
  EXPECT_EQ(s.key, 0);
  EXPECT_EQ(s.rows, 4);
  EXPECT_EQ(s.query_end, 4);
  EXPECT_EQ(s.keys, 9);
  EXPECT_EQ(s.diagonal, 5);
  EXPECT_EQ(s.band.row(0).begin, 0);
  EXPECT_EQ(s.band.row(3).end, 9);
}

template <class Int>
void check_packed(bool wide) {
  const std::vector<Int> q{0, 3, 3, 8}, k{0, 0, 5, 12};
  ForwardArguments a;
  a.batch = 3, a.seq_q = 5, a.seq_k = 7, a.total_q = 8, a.total_k = 12, a.right = 0;
  a.cu_seqlens_q = {q.data(), wide}, a.cu_seqlens_k = {k.data(), wide};
  for (Index b = 0; b < 3; ++b) {
    const auto at = [](const std::vector<Int>& v, Index i) {
      return static_cast<Index>(v[static_cast<std::size_t>(i)]);
    };
    const Sequence s = sequence(a, b);
    EXPECT_EQ(s.batch, 0);
    EXPECT_EQ(s.query, at(q, b));
    EXPECT_EQ(s.key, at(k, b));
    EXPECT_EQ(s.rows, at(q, b + 1) - at(q, b));
    EXPECT_EQ(s.query_end, s.rows);
    EXPECT_EQ(s.keys, at(k, b + 1) - at(k, b));
    EXPECT_EQ(s.diagonal, s.keys - s.rows);
    if (s.rows > 0) {
      EXPECT_EQ(s.band.row(s.rows - 1).end, s.keys);
    }
  }
}
TEST(Sequence, PackedByInt32) { check_packed<std::int32_t>(false); }
TEST(Sequence, PackedByInt64) { check_packed<std::int64_t>(true); }

void expect_inside(const ForwardArguments& a, const Sequence& s) {
  const Index rows_in_memory = a.packed() ? a.total_q : a.seq_q,
              keys_in_memory = a.packed() ? a.total_k : a.seq_k;
  ASSERT_GE(s.query, 0);
  ASSERT_GE(s.key, 0);
  ASSERT_GE(s.rows, 0);
  ASSERT_LE(s.rows, a.seq_q);
  ASSERT_GE(s.keys, 0);
  ASSERT_LE(s.keys, a.seq_k);
  ASSERT_LE(s.query + s.rows, rows_in_memory);
  ASSERT_LE(s.key + s.keys, keys_in_memory);
  ASSERT_GE(s.query_end, 0);
  ASSERT_LE(s.query_end, s.rows);
  for (Index i = 0; i < s.query_end; ++i) {
    const auto row = s.band.row(i);
    ASSERT_TRUE(row.begin >= row.end || (row.begin >= 0 && row.end <= s.keys));
  }
}

// Values that device memory might hold by mistake.
template <class Int>
Int hostile(std::mt19937_64& random) {
  const Int values[] = {
      std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max(), -1, 0, 1, 7, 40, 41, 1000};
  return random() % 2 ? values[random() % std::size(values)] : static_cast<Int>(random());
}

TEST(Sequence, HostileValuesStayInside) {
  std::mt19937_64 random(2);
  for (int repeat = 0; repeat < 20000; ++repeat) {
    ForwardArguments a;
    a.batch = 2, a.seq_q = 7, a.seq_k = 9, a.total_q = 12, a.total_k = 15;
    a.left = repeat % 3 ? kUnbounded : 2, a.right = repeat % 2 ? 0 : kUnbounded,
    a.bottom_right = repeat % 5 != 0;
    std::int32_t q32[3], k32[3], ranges[3][2];
    std::int64_t q64[3], k64[3];
    for (int i = 0; i < 3; ++i) {
      q32[i] = hostile<std::int32_t>(random), k32[i] = hostile<std::int32_t>(random);
      q64[i] = hostile<std::int64_t>(random), k64[i] = hostile<std::int64_t>(random);
      for (std::int32_t& value : ranges[i]) value = hostile<std::int32_t>(random);
    }
    ForwardArguments ranged = a, packed32 = a, packed64 = a;
    ranged.key_begin = ranges[0], ranged.key_end = ranges[1], ranged.query_end = ranges[2];
    packed32.cu_seqlens_q = {q32, false}, packed32.cu_seqlens_k = {k32, false};
    packed64.cu_seqlens_q = {q64, true}, packed64.cu_seqlens_k = {k64, true};
    for (const ForwardArguments& arguments : {ranged, packed32, packed64}) {
      for (Index b = 0; b < 2; ++b) {
        expect_inside(arguments, sequence(arguments, b));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Sequence, KeyHeadOfAGroup) {
  ForwardArguments a;
  a.head_q = 10, a.head_k = 2;
  for (Index head = 0; head < 10; ++head) EXPECT_EQ(key_head(a, head), head < 5 ? 0 : 1);
}

}  // namespace
}  // namespace tessera::testing
