// What a run does and what it reports: lanes that part, LDS that is left, read too early or written
// by two, barriers that are missing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/amdgpu/lanes/builtins.hpp"
#include "tests/amdgpu/lanes/lds.hpp"
#include "tests/amdgpu/lanes/testing.hpp"

namespace tessera::amdgpu::lanes {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What the run reports; empty if nothing.
std::string failure_of(const Launch& launch, const std::function<void()>& kernel) {
  try {
    run(launch, kernel);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

class LanesRun : public ::testing::TestWithParam<std::tuple<int, Order>> {
 protected:
  const int wave_ = std::get<int>(GetParam());
  Launch launch(int waves) const {
    return {.wave = wave_, .threads = waves * wave_, .order = std::get<Order>(GetParam())};
  }
};
INSTANTIATE_TEST_SUITE_P(All, LanesRun,
                         ::testing::Combine(::testing::Values(32, 64),
                                            ::testing::ValuesIn(kOrders)),
                         [](const auto& test) {
                           return "wave" + std::to_string(std::get<0>(test.param)) + "_" +
                                  name_of(std::get<1>(test.param));
                         });

TEST_P(LanesRun, EveryThreadOfEveryGroupOnce) {
  Launch all = launch(3);
  all.groups = 5;
  std::multiset<std::pair<unsigned, unsigned>> seen;
  run(all,
      [&] { seen.insert({__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workitem_id_x()}); });
  EXPECT_EQ(seen.size(), 15U * static_cast<unsigned>(wave_));
  for (const auto& one : seen) EXPECT_EQ(seen.count(one), 1U);
}

TEST_P(LanesRun, GivesTheArgument) {
  const int argument = 7;
  Launch all = launch(1);
  all.argument = &argument;
  run(all, [] { EXPECT_EQ(*static_cast<const int*>(__builtin_amdgcn_kernarg_segment_ptr()), 7); });
}

TEST_P(LanesRun, ReadsTheFirstLane) {
  run(launch(2), [&] {
    const int first = thread() / wave_ * wave_;
    EXPECT_EQ(__builtin_amdgcn_readfirstlane(thread() * 10), first * 10);
  });
}

TEST_P(LanesRun, ReadsTheFirstLaneInABranch) {
  run(launch(2), [&] {
    const int wave = thread() / wave_size();
    int got = -1;
    if (thread() % 3 == 2) {
      got = __builtin_amdgcn_readfirstlane(wave + 5);
    } else if (thread() % 3 == 1) {
      got = __builtin_amdgcn_readfirstlane(wave + 100);
    }
    EXPECT_EQ(got, thread() % 3 == 2 ? wave + 5 : thread() % 3 == 1 ? wave + 100 : -1);
    EXPECT_EQ(__builtin_amdgcn_readfirstlane(wave), wave);
  });
  EXPECT_THAT(failure_of(launch(1),
                         [] {
                           if (thread() % 3 == 2) __builtin_amdgcn_readfirstlane(thread());
                           __builtin_amdgcn_s_barrier();
                         }),
              HasSubstr("different numbers"));
}

TEST_P(LanesRun, Votes) {
  run(launch(2), [&] {
    const int lane = thread() % wave_, wave = thread() / wave_;
    const auto vote = [&](bool p) {
      return wave_ == 64 ? __builtin_amdgcn_ballot_w64(p) : __builtin_amdgcn_ballot_w32(p);
    };
    const std::uint64_t expected = wave == 0 ? std::uint64_t{1} << (wave_ - 1) | 4 : 0;
    EXPECT_EQ(vote(wave == 0 && (lane == 2 || lane == wave_ - 1)), expected);
    EXPECT_EQ(vote(true), wave_ == 64 ? ~std::uint64_t{0} : 0xFFFFFFFFU);
  });
}

TEST_P(LanesRun, PermutesLanes) {
  run(launch(2), [&] {
    const int lane = thread() % wave_, first = thread() - lane;
    const int other = (lane * 5 + 3) % wave_;
    EXPECT_EQ(__builtin_amdgcn_ds_bpermute(4 * other, thread()), first + other);
  });
}

TEST_P(LanesRun, SharesInRowsOfSixteen) {
  run(launch(1), [] {
    const FromLane from{5, static_cast<float>(thread())};
    EXPECT_EQ(meet<float>(kShareInRow, from), static_cast<float>(thread() / 16 * 16 + 5));
  });
}

TEST_P(LanesRun, ReadsTransposed) {
  run(launch(1), [] {
    struct Four {
      std::uint16_t number[4];
    } own;
    for (int i = 0; i < 4; ++i) own.number[i] = static_cast<std::uint16_t>(4 * thread() + i);
    const Four got = meet<Four>(kReadTransposed, own);
    const int lane = thread() % 16, first = thread() - lane;
    // Lane p has row p / 4, columns 4·(p % 4) on: a lane gets its column of four rows.
    for (int row = 0; row < 4; ++row) EXPECT_EQ(got.number[row], 4 * first + 16 * row + lane);
  });
}

// Each wave reads what the next one wrote.
struct Ring {
  std::uint32_t word[256];
};
void ring(bool wait) {
  auto& shared = lds_variable<Ring, 16>();
  const int own = thread(), count = 4 * wave_size();
  shared.word[own] = static_cast<std::uint32_t>(own);
  if (wait) __builtin_amdgcn_s_barrier();
  const int other = (own + wave_size()) % count;
  const std::uint32_t got = shared.word[other];
  EXPECT_EQ(got, static_cast<std::uint32_t>(other));
}

TEST_P(LanesRun, BarriersOrderWhatWavesDo) {
  EXPECT_EQ(failure_of(launch(4), [] { ring(true); }), "");
}

TEST_P(LanesRun, ReportsAMissingBarrier) {
  EXPECT_THAT(
      failure_of(launch(4), [] { ring(false); }),
      ::testing::AnyOf(HasSubstr("since the last barrier"), HasSubstr("reads what nobody wrote")));
}

// Nobody keeps the writes of the second round from the reads of the first.
TEST_P(LanesRun, ReportsAMissingBarrierBetweenRounds) {
  const auto twice = [] {
    ring(true);
    ring(true);
  };
  EXPECT_THAT(failure_of(launch(4), twice), HasSubstr("since the last barrier"));
  EXPECT_EQ(failure_of(launch(4),
                       [] {
                         ring(true);
                         __builtin_amdgcn_s_barrier();
                         ring(true);
                       }),
            "");
}

TEST_P(LanesRun, ReportsTwoWritersOfAByte) {
  EXPECT_THAT(failure_of(launch(2),
                         [] {
                           auto& shared = lds_variable<Ring, 16>();
                           shared.word[thread() % wave_size()] = 1;
                         }),
              HasSubstr("writes what wave"));
}

// One wave may: it is in order.
TEST_P(LanesRun, AllowsLanesOfOneWave) {
  EXPECT_EQ(failure_of(launch(1),
                       [] {
                         auto& shared = lds_variable<Ring, 16>();
                         shared.word[0] = 1;
                         EXPECT_EQ(shared.word[0], 1U);
                       }),
            "");
}

TEST_P(LanesRun, ReportsReadsOfWhatNobodyWrote) {
  EXPECT_THAT(failure_of(launch(1),
                         [] {
                           auto& shared = lds_variable<Ring, 16>();
                           EXPECT_EQ(shared.word[thread()], 0U);
                         }),
              AllOf(HasSubstr("reads what nobody wrote"), HasSubstr("work_group_test.cpp")));
}

TEST_P(LanesRun, LdsIsTheWorkGroupsOwn) {
  Launch two = launch(1);
  two.groups = 2;
  const unsigned first = two.order == Order::Reverse ? 1 : 0;
  EXPECT_THAT(failure_of(two,
                         [first] {
                           auto& shared = lds_variable<Ring, 16>();
                           if (group() == first) shared.word[thread()] = 1;
                           EXPECT_EQ(shared.word[thread()], 1U);
                         }),
              HasSubstr("reads what nobody wrote"));
}

TEST_P(LanesRun, ReportsAccessesOutsideOfLds) {
  for (const int word : {-1, 256, 4000}) {
    const auto kernel = [word] {
      volatile int at = word;
      std::uint32_t* const words = lds_variable<Ring, 16>().word;
      words[at] = 1;
    };
    EXPECT_DEATH(
        {
          const std::string what = failure_of(launch(1), kernel);
          std::fprintf(stderr, "%s\n", what.c_str());
          std::abort();
        },
        "leaves it|use-after-poison|index .* out of bounds");
  }
}

TEST_P(LanesRun, ReportsLanesThatPart) {
  // Another operation.
  const auto two_operations = [] {
    if (thread() % wave_size() == 5) {
      __builtin_amdgcn_ballot_w64(true);
    } else {
      __builtin_amdgcn_ds_bpermute(0, 0);
    }
  };
  EXPECT_THAT(failure_of(launch(2), two_operations),
              AllOf(HasSubstr("lane 0 is at ds_bpermute"), HasSubstr("lane 5 is at ballot"),
                    HasSubstr("work_group_test.cpp")));
  // The same one elsewhere.
  const auto two_places = [] {
    [[maybe_unused]] volatile int keeps_them_apart = 0;
    if (thread() == 7) {
      __builtin_amdgcn_ballot_w64(true);
      keeps_them_apart = 1;
    } else {
      keeps_them_apart = 2;
      __builtin_amdgcn_ballot_w64(true);
    }
  };
  EXPECT_THAT(failure_of(launch(1), two_places),
              AllOf(HasSubstr("lane 0 is at ballot"), HasSubstr("lane 7 is at ballot")));
  // None.
  const auto one_ends = [] {
    if (thread() != 9) __builtin_amdgcn_s_barrier();
  };
  EXPECT_THAT(failure_of(launch(1), one_ends),
              AllOf(HasSubstr("lane 0 is at barrier"), HasSubstr("lane 9 has ended")));
}

TEST_P(LanesRun, ReportsABarrierThatNotAllComeTo) {
  EXPECT_THAT(failure_of(launch(3),
                         [] {
                           if (thread() >= wave_size()) __builtin_amdgcn_s_barrier();
                         }),
              HasSubstr("1 of the 3 waves of work-group 0 have ended, others wait"));
}

// As groups of waves that take turns do.
TEST_P(LanesRun, WavesMayWaitAtBarriersApart) {
  EXPECT_EQ(failure_of(launch(2),
                       [] {
                         if (thread() < wave_size()) {
                           __builtin_amdgcn_s_barrier();
                         } else {
                           __builtin_amdgcn_s_barrier();
                         }
                       }),
            "");
}

TEST_P(LanesRun, RunsAgainAfterAFailure) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(failure_of(launch(4), [] { ring(false); }), "");
    EXPECT_EQ(failure_of(launch(4), [] { ring(true); }), "");
  }
}

// --- Loads straight to LDS -----------------------------------------------------------------------

struct Landing {
  std::uint32_t word[2][256];  // 64 lanes' 16 bytes, twice
};

// Wave 0 brings `loads` pieces and waits until `later` are on their way; then all read the first.
void bring(int loads, int later, bool wait) {
  auto& shared = lds_variable<Landing, 16>();
  if (thread() < wave_size()) {
    for (int i = 0; i < loads; ++i) {
      const auto n = static_cast<std::uint32_t>(thread());
      const DirectLoad load{lds_offset(shared.word[i]), {4 * n, 4 * n + 1, 4 * n + 2, 4 * n + 3}};
      meet(kLoadToLds, &load, nullptr);
    }
    meet(kWaitForLoads, &later, nullptr);
  }
  if (wait) __builtin_amdgcn_s_barrier();
  const std::uint32_t got = shared.word[0][thread() % wave_size()];
  EXPECT_EQ(got, static_cast<std::uint32_t>(thread() % wave_size()));
}

TEST_P(LanesRun, DirectLoadsArriveInOrder) {
  EXPECT_EQ(failure_of(launch(2), [] { bring(1, 0, true); }), "");
  EXPECT_EQ(failure_of(launch(2), [] { bring(2, 1, true); }), "");
}

TEST_P(LanesRun, ReportsADirectLoadThatIsNotWaitedFor) {
  EXPECT_THAT(failure_of(launch(2), [] { bring(1, 1, true); }),
              HasSubstr("a load is still to arrive"));
  EXPECT_THAT(failure_of(launch(2), [] { bring(2, 2, true); }),
              HasSubstr("a load is still to arrive"));
}

TEST_P(LanesRun, ReportsADirectLoadWithoutABarrier) {
  EXPECT_NE(failure_of(launch(2), [] { bring(1, 0, false); }), "");
}

// --- One lane's instructions ---------------------------------------------------------------------

TEST(LanesBuffer, LoadsWithinItsRange) {
  std::vector<std::uint32_t> words{1, 2, 3, 4, 5};
  const Buffer buffer =
      __builtin_amdgcn_make_buffer_rsrc(words.data(), 0, static_cast<int>(4 * words.size()), 0);
  const auto all = __builtin_amdgcn_raw_buffer_load_b128(buffer, 4, 0, 0);
  EXPECT_EQ(all[0], 2U);
  EXPECT_EQ(all[3], 5U);
  const auto beyond = __builtin_amdgcn_raw_buffer_load_b128(buffer, 12, 0, 0);
  EXPECT_EQ(beyond[1], 5U);
  EXPECT_EQ(beyond[2], 0U);
  const auto further = __builtin_amdgcn_raw_buffer_load_b64(buffer, 8, 8, 0);
  EXPECT_EQ(further[0], 5U);
  EXPECT_EQ(further[1], 0U);
  EXPECT_EQ(__builtin_amdgcn_raw_buffer_load_b32(buffer, INT32_MIN, 0, 0), 0U);
}

// A range that says more than there is.
TEST(LanesBuffer, MemoryBeyondATensorIsReported) {
  const auto words = std::make_unique<std::uint32_t[]>(4);
  EXPECT_DEATH(__builtin_amdgcn_raw_buffer_load_b64(
                   __builtin_amdgcn_make_buffer_rsrc(words.get(), 0, 64, 0), 12, 0, 0),
               "heap-buffer-overflow");
}

TEST(LanesPerm, ChoosesBytes) {
  EXPECT_EQ(__builtin_amdgcn_perm(0x77665544, 0x33221100, 0x07060302), 0x77663322U);
  EXPECT_EQ(__builtin_amdgcn_perm(0x77665544, 0x33221100, 0x05040100), 0x55441100U);
  EXPECT_EQ(__builtin_amdgcn_perm(0x77665544, 0x33221100, 0x0C000C07), 0x00000077U);
}

TEST(LanesExp2, GivesNothingBelowNormalNumbers) {
  EXPECT_EQ(__builtin_amdgcn_exp2f(3), 8);
  EXPECT_EQ(__builtin_amdgcn_exp2f(-126), 0x1p-126F);
  EXPECT_EQ(__builtin_amdgcn_exp2f(-126.5F), 0);
}

TEST(LanesLaunch, RefusesBrokenWaves) {
  EXPECT_THROW(run({.wave = 16, .threads = 64}, [] {}), std::invalid_argument);
  EXPECT_THROW(run({.wave = 64, .threads = 96}, [] {}), std::invalid_argument);
}

}  // namespace
}  // namespace tessera::amdgpu::lanes
