// Each check finds the fault for which it is there, and nothing in what is right. Faults are made
// by changing an instruction of a compiled kernel, or a kernel has one.

#include <gtest/gtest.h>

#include <numeric>

#include "tests/amdgpu/isa/testing.hpp"

namespace tessera::amdgpu::testing {
namespace {

// What the launch reports; empty if nothing.
template <class F>
std::string report_of(F launch) {
  try {
    launch();
  } catch (const KernelFault& fault) {
    return fault.what();
  }
  return {};
}

#define EXPECT_REPORT(report, text) \
  EXPECT_NE((report).find(text), std::string::npos) << "the report is '" << (report) << "'"

class Checks : public ::testing::TestWithParam<std::string> {
 protected:
  Checks() {
    std::iota(in_.begin(), in_.end(), 1);
    kernels_.allow(in_);
    kernels_.allow(out_);
  }
  std::string exchange(WaveOrder order = WaveOrder::Forward) {
    return report_of([&] {
      kernels_.run("exchange", 1, 256, Arguments().add(in_).add(out_), {.order = order});
    });
  }
  bool is_gfx12() const { return GetParam().starts_with("gfx12"); }
  std::vector<std::string> wait_opcodes() const {
    if (is_gfx12())
      return {"s_wait_loadcnt", "s_wait_kmcnt", "s_wait_dscnt", "s_wait_loadcnt_dscnt",
              "s_wait_storecnt_dscnt"};
    return {"s_waitcnt"};
  }

  CompiledKernels kernels_{"faults", GetParam()};
  std::vector<int> in_ = std::vector<int>(256), out_ = std::vector<int>(256);
};

TEST_P(Checks, RightKernelHasNoFinding) {
  for (const WaveOrder order : {WaveOrder::Forward, WaveOrder::Reverse, WaveOrder::Random}) {
    EXPECT_EQ(exchange(order), "");
    for (std::size_t i = 0; i < 256; ++i) ASSERT_EQ(out_[i], 2 * (in_[255 - (i ^ 128)] + 1)) << i;
  }
}

// No wait of the kernel is idle: whichever is taken out, something is found.
TEST_P(Checks, EveryMissingWaitIsFound) {
  int waits = 0;
  for (const std::string& opcode : wait_opcodes())
    for (const std::size_t at : kernels_.find("exchange", opcode)) {
      CompiledKernels whole{"faults", GetParam()};
      std::swap(whole, kernels_);
      kernels_.allow(in_);
      kernels_.allow(out_);
      kernels_.replace(at, "s_nop 0");
      EXPECT_REPORT(exchange(), "wait");
      std::swap(whole, kernels_);
      ++waits;
    }
  EXPECT_GE(waits, 3);
}

TEST_P(Checks, EveryMissingBarrierIsFound) {
  const auto barriers = is_gfx12() ? kernels_.find("exchange", "s_barrier_wait")
                                   : kernels_.find("exchange", "s_barrier");
  const auto signals = kernels_.find("exchange", "s_barrier_signal");
  ASSERT_EQ(barriers.size(), 3u);
  for (std::size_t i = 0; i < barriers.size(); ++i) {
    CompiledKernels mutant{"faults", GetParam()};
    mutant.allow(in_);
    mutant.allow(out_);
    mutant.replace(barriers[i], "s_nop 0");
    if (is_gfx12()) mutant.replace(signals.at(i), "s_nop 0");
    for (const WaveOrder order : {WaveOrder::Forward, WaveOrder::Reverse}) {
      const auto report = report_of([&] {
        mutant.run("exchange", 1, 256, Arguments().add(in_).add(out_), {.order = order});
      });
      EXPECT_REPORT(report, "LDS race");
      EXPECT_REPORT(report, "kernel exchange, pc 0x");
      EXPECT_REPORT(report, "workgroup (0, 0, 0), wave ");
    }
  }
}

TEST_P(Checks, AccessesOutsideBuffers) {
  const auto shifted = [&](int in_shift, int out_shift) {
    return report_of([&] {
      kernels_.run("shifted", 1, 64, Arguments().add(in_).add(out_).add(in_shift).add(out_shift));
    });
  };
  EXPECT_EQ(shifted(0, 0), "");
  EXPECT_EQ(shifted(192, 192), "");
  EXPECT_REPORT(shifted(193, 0), "read of 4 bytes");
  EXPECT_REPORT(shifted(193, 0), GetParam().starts_with("gfx9") ? "lane 63" : "lane 31");
  EXPECT_REPORT(shifted(-1, 0), "lane 0");
  EXPECT_REPORT(shifted(0, 193), "write of 4 bytes");
  EXPECT_REPORT(shifted(0, 193), "outside every buffer");
}

TEST_P(Checks, MisalignedAccess) {
  // In memory words lie anywhere: AMD's runtimes set that mode.
  for (const int bytes : {0, 2, 3}) {
    EXPECT_EQ(report_of([&] {
                kernels_.run("unaligned", 1, 64, Arguments().add(in_).add(out_).add(bytes), {},
                             256);
              }),
              "");
  }
  const auto in_lds = [&](int bytes) {
    return report_of(
        [&] { kernels_.run("unaligned_lds", 1, 64, Arguments().add(out_).add(bytes), {}, 256); });
  };
  EXPECT_EQ(in_lds(8), "");
  EXPECT_REPORT(in_lds(2), "misaligned");
}

TEST_P(Checks, LdsBounds) {
  const auto run = [&](int stride, u32 bytes) {
    return report_of(
        [&] { kernels_.run("dynamic_lds", 1, 64, Arguments().add(out_).add(stride), {}, bytes); });
  };
  EXPECT_EQ(run(1, 256), "");
  EXPECT_REPORT(run(1, 252), "LDS: 4 bytes at 252, of 252");
  EXPECT_REPORT(run(2, 256), "LDS: 4 bytes at 256, of 256");
}

TEST_P(Checks, WavesThatWriteOneWord) {
  for (const WaveOrder order : {WaveOrder::Forward, WaveOrder::Reverse})
    EXPECT_REPORT(report_of([&] {
                    kernels_.run("write_write", 1, 128, Arguments().add(out_), {.order = order});
                  }),
                  "LDS race");
}

TEST_P(Checks, NeighbouringBytesAreNoRace) {
  EXPECT_EQ(report_of([&] { kernels_.run("neighbours", 1, 128, Arguments().add(out_)); }), "");
}

TEST_P(Checks, UnknownInstructionIsAnErrorWhenExecuted) {
  kernels_.replace(kernels_.find("exchange", "s_endpgm").front(), "v_of_the_future_b32 v0, v1");
  EXPECT_REPORT(exchange(), "not implemented: the opcode v_of_the_future_b32");
}

TEST_P(Checks, UnknownModifierIsAnErrorWhenExecuted) {
  kernels_.replace(kernels_.find("exchange", "s_endpgm").front(), "v_mov_b32_e32 v0, v1 warp:3");
  EXPECT_REPORT(exchange(), "the modifier 'warp:3'");
}

INSTANTIATE_TEST_SUITE_P(All, Checks, ::testing::ValuesIn(kAllTargets), TargetName{});

class DirectChecks : public Checks {};

TEST_P(DirectChecks, LdsReadWhileALoadMayStillWriteIt) {
  const auto run = [&] {
    return report_of([&] { kernels_.run("direct", 1, 64, Arguments().add(in_).add(out_)); });
  };
  EXPECT_EQ(run(), "");
  for (const std::size_t at : kernels_.find("direct", "s_waitcnt"))
    kernels_.replace(at, "s_waitcnt lgkmcnt(0)");
  EXPECT_REPORT(run(), "a load into LDS that has not been waited for");
}

TEST_P(DirectChecks, WaitingAfterTheBarrierIsTooLate) {
  for (const WaveOrder order : {WaveOrder::Forward, WaveOrder::Reverse, WaveOrder::Random}) {
    const auto report = report_of([&] {
      kernels_.run("direct_late", 1, 256, Arguments().add(in_).add(out_), {.order = order});
    });
    EXPECT_NE(report.find("LDS"), std::string::npos) << report;
    EXPECT_REPORT(report, "wait");
  }
}

INSTANTIATE_TEST_SUITE_P(All, DirectChecks, ::testing::Values("gfx942", "gfx950"), TargetName{});

}  // namespace
}  // namespace tessera::amdgpu::testing
