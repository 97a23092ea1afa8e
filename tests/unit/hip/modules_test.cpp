// Code objects become kernels on a device, over a fake runtime and table.cpp's objects.

#include "backends/hip/modules.hpp"

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "backends/hip/code_objects.hpp"
#include "tests/unit/hip/with_fake_hip.hpp"

namespace tessera::testing {
namespace {

constexpr std::array<hip::CodeObject, 4> kSorted{
    {{"a", "gfx1100"}, {"a", "gfx942"}, {"a_b", "gfx942"}, {"b", "gfx90a"}}};
static_assert(hip::find(kSorted, "a", "gfx942") == &kSorted[1]);
static_assert(hip::find(kSorted, "b", "gfx90a") == &kSorted[3]);
static_assert(hip::find(kSorted, "b", "gfx942") == nullptr);
static_assert(hip::find(kSorted, "", "") == nullptr && hip::find({}, "a", "gfx942") == nullptr);

class HipModules : public WithFakeHip {};

TEST_F(HipModules, LoadOnceADevice) {
  const void* const first = hip::function(0, "first");
  EXPECT_EQ(fake.functions[first], "tessera_first");
  EXPECT_EQ(hip::function(0, "first"), first);
  EXPECT_EQ(count("hipModuleLoadData on 0"), 1);

  const void* const elsewhere = hip::function(1, "first");
  EXPECT_NE(elsewhere, first);
  EXPECT_EQ(hip::function(1, "first"), elsewhere);
  EXPECT_EQ(count("hipModuleLoadData on 1"), 1);
  EXPECT_EQ(fake.calls.size(), 4U);  // a load and a look-up each
}

TEST_F(HipModules, LoadOnceForAllThreads) {
  constexpr std::size_t kThreads = 8;
  std::array<const void*, kThreads> functions{};
  std::vector<std::thread> threads;
  for (const void*& function : functions)
    threads.emplace_back([&function] { function = hip::function(0, "second"); });
  for (std::thread& thread : threads) thread.join();
  for (const void* const function : functions) EXPECT_EQ(function, functions[0]);
  EXPECT_EQ(fake.functions[functions[0]], "tessera_second");
  EXPECT_EQ(count("hipModuleLoadData on 0"), 1);
}

TEST_F(HipModules, NameTheTargetsOfTheBuild) {
  EXPECT_EQ(hip::targets_of("first"), "gfx90a, gfx942");
  EXPECT_EQ(hip::targets_of(), "gfx90a, gfx942, gfx1100");
  EXPECT_EQ(hip::targets_of("nobody"), "no target");
  EXPECT_EQ(thrown([] { hip::function(0, "older"); }),
            "Unsupported: the device is gfx942; this build has the kernel older for gfx90a, "
            "gfx1100: TESSERA_HIP_TARGETS chooses what is built");
  EXPECT_EQ(hip::reject_target("gfx942", "first"), "");
  EXPECT_EQ(hip::reject_target("gfx908", "first"),
            "the device is gfx908; this build has the kernel first for gfx90a, gfx942");
  EXPECT_TRUE(fake.calls.empty());
}

TEST_F(HipModules, SayWhatTheRuntimeRefuses) {
  EXPECT_EQ(thrown([] { hip::function(0, "misfit"); }),
            "DeviceError: loading the kernel misfit for gfx942 on device 0 failed: something else "
            "(hipErrorOther)");
  EXPECT_EQ(thrown([] { hip::function(0, "lacking"); }),
            "DeviceError: finding tessera_lacking in the kernel lacking for gfx942 on device 0 "
            "failed: something else (hipErrorOther)");
}

TEST_F(HipModules, ARefusalIsNotRemembered) {
  fake.fails["hipModuleLoadData"] = kOutOfMemory;
  EXPECT_EQ(thrown([] { hip::function(1, "alone"); }),
            "DeviceError: loading the kernel alone for gfx942 on device 1 failed: something else "
            "(hipErrorOther)");
  fake.fails.clear();
  EXPECT_NE(hip::function(1, "alone"), nullptr);
}

}  // namespace
}  // namespace tessera::testing
