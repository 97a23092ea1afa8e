// Prefix sums and ranges in memory that the host reads: wrong ones are refused before anything is
// written.

#include <gtest/gtest.h>

#include "tests/unit/src/call.hpp"
#include "tests/unit/src/environment.hpp"

namespace tessera::testing {
namespace {

template <class T>
constexpr DType kIndex = sizeof(T) == 8 ? DType::int64 : DType::int32;

template <class T>
std::string packed_with(ConstVector Args::* vector, const std::vector<T>& values) {
  const Environment look("TESSERA_CHECK_VALUES", "1");
  Call call = Call::packed();
  call.args.*vector = call.vector<T>(kIndex<T>, values);
  const Thrown thrown = thrown_by([&] { call.run(); });
  if (thrown.kind != Thrown::Kind::Nothing) {
    EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument);
    EXPECT_TRUE(call.outputs_are_untouched());
  }
  return thrown.text;
}

template <class T>
class PrefixSums : public ::testing::Test {};
using Widths = ::testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(PrefixSums, Widths);

TYPED_TEST(PrefixSums, AreLookedAt) {
  const auto q = [](const std::vector<TypeParam>& sums) {
    return packed_with(&Args::cu_seqlens_q, sums);
  };
  const auto k = [](const std::vector<TypeParam>& sums) {
    return packed_with(&Args::cu_seqlens_k, sums);
  };
  EXPECT_EQ(q({0, 2, 2, 5}), "");
  EXPECT_EQ(q({0, 0, 0, 0}), "");
  EXPECT_EQ(q({1, 2, 2, 5}), "cu_seqlens_q[0] is 1; must be 0: the first segment begins at row 0");
  EXPECT_EQ(q({-1, 2, 2, 5}),
            "cu_seqlens_q[0] is -1; must be 0: the first segment begins at row 0");
  EXPECT_EQ(q({0, 2, 1, 5}), "cu_seqlens_q[2] is 1; must be at least cu_seqlens_q[1] (2)");
  EXPECT_EQ(q({0, -2, 2, 5}), "cu_seqlens_q[1] is -2; must be at least cu_seqlens_q[0] (0)");
  EXPECT_EQ(q({0, 2, 3, 6}), "cu_seqlens_q[3] is 6; must be at most query.extent.seq (5)");
  EXPECT_EQ(q({0, 0, 4, 5}),
            "cu_seqlens_q[2] is 4; must be at most 3: its segment has 4 rows, and "
            "options.max_seq_q is 3");
  EXPECT_EQ(k({0, 3, 4, 6}), "");
  EXPECT_EQ(k({0, 3, 3, 7}), "cu_seqlens_k[3] is 7; must be at most key.extent.seq (6)");
  EXPECT_EQ(k({0, 1, 2, 6}),
            "cu_seqlens_k[3] is 6; must be at most 5: its segment has 4 rows, and "
            "options.max_seq_k is 3");
  constexpr TypeParam kMost = std::numeric_limits<TypeParam>::max();
  constexpr TypeParam kLeast = std::numeric_limits<TypeParam>::min();
  EXPECT_EQ(k({0, 3, 4, kMost}),
            "cu_seqlens_k[3] is " + std::to_string(kMost) + "; must be at most key.extent.seq (6)");
  EXPECT_EQ(k({0, 3, 4, kLeast}), "cu_seqlens_k[3] is " + std::to_string(kLeast) +
                                      "; must be at least cu_seqlens_k[2] (4)");
}

TEST(Ranges, MustNotBeNegative) {
  const Environment look("TESSERA_CHECK_VALUES", "1");
  for (const auto& [name, vector] :
       {std::pair{"key_begin", &Args::key_begin}, std::pair{"key_end", &Args::key_end},
        std::pair{"query_end", &Args::query_end}}) {
    Call call = Call::dense();
    call.args.*vector = call.vector<std::int32_t>(DType::int32, {3, -1});
    const Thrown thrown = thrown_by([&] { call.run(); });
    EXPECT_EQ(thrown.kind, Thrown::Kind::InvalidArgument);
    EXPECT_EQ(thrown.text, std::string(name) + "[1] is -1; must be at least 0");
    EXPECT_EQ(thrown.argument, std::string(name) + "[1]");
    EXPECT_TRUE(call.outputs_are_untouched());
  }
}

}  // namespace
}  // namespace tessera::testing
