// What surrounds a launch, over a fake runtime.

#include "backends/gpu_common/launch_scope.hpp"

#include <stdexcept>

#include <gtest/gtest.h>
#include <tessera/error.hpp>

#include "tests/unit/gpu_common/fake_device.hpp"

namespace tessera::testing {
namespace {

class LaunchScope : public WithFakeDevice {};

const Stream kSecond = Stream::from_native(nullptr, 1);

// Launches with a scope around it; what is thrown, as text.
template <class Launch>
std::string launch(std::size_t bytes, void* workspace, Launch body) {
  try {
    const gpu::LaunchScope scope("forward.fake", bytes, workspace, kSecond);
    body(scope.workspace());
    scope.finish();
  } catch (const DeviceError& error) {
    return std::string("DeviceError: ") + error.what();
  } catch (const Unsupported& error) {
    return std::string("Unsupported: ") + error.what();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "launched";
}

TEST_F(LaunchScope, TakesTheWorkspaceInTheStreamsOrder) {
  const auto body = [this](void* workspace) {
    EXPECT_NE(workspace, nullptr);
    EXPECT_EQ(fake.current, 1);
    EXPECT_EQ(fake.live, 1);
  };
  EXPECT_EQ(launch(64, nullptr, body), "launched");
  EXPECT_EQ(fake.calls,
            (std::vector<std::string>{"allocate_async 64 on 1", "release_async 0 on 1"}));
}

TEST_F(LaunchScope, TakesNoneThatIsGivenOrNotNeeded) {
  char given = 0;
  EXPECT_EQ(launch(64, &given, [&](void* workspace) { EXPECT_EQ(workspace, &given); }), "launched");
  EXPECT_EQ(launch(0, nullptr, [](void* workspace) { EXPECT_EQ(workspace, nullptr); }), "launched");
  EXPECT_TRUE(fake.calls.empty());
}

TEST_F(LaunchScope, FreesTheWorkspaceAfterALaunchThatThrows) {
  const auto body = [](void*) { throw std::runtime_error("thrown by the kernel's host code"); };
  EXPECT_EQ(launch(64, nullptr, body), "thrown by the kernel's host code");
  EXPECT_TRUE(fake.was_called("release_async 0 on 1"));
}

TEST_F(LaunchScope, SaysThatALaunchFailed) {
  const auto body = [this](void*) { fake.noted = kFault; };
  EXPECT_EQ(launch(64, nullptr, body),
            "DeviceError: launching forward.fake failed: a fault (fakeFault)");
  EXPECT_TRUE(fake.was_called("release_async 0 on 1"));
}

TEST_F(LaunchScope, TakesNoMemoryUnderCapture) {
  fake.capturing = true;
  bool launched = false;
  EXPECT_EQ(
      launch(64, nullptr, [&](void*) { launched = true; }),
      "Unsupported: the stream is being captured, where no memory can be taken: give 64 bytes "
      "(Plan::workspace_size) as Args::workspace");
  EXPECT_FALSE(launched);
  EXPECT_TRUE(fake.calls.empty());
  char given = 0;
  EXPECT_EQ(launch(64, &given, [](void*) {}), "launched");
  EXPECT_EQ(launch(0, nullptr, [](void*) {}), "launched");
}

TEST_F(LaunchScope, SaysThatThereIsNoMemory) {
  fake.fails["allocate_async"] = kOutOfMemory;
  EXPECT_EQ(launch(64, nullptr, [](void*) { ADD_FAILURE(); }),
            "DeviceError: taking a workspace of 64 bytes on device 1 failed: no memory "
            "(fakeOutOfMemory); one may be given as Args::workspace");
  fake.fails = {{"stream_capturing", kFault}};
  EXPECT_EQ(launch(64, nullptr, [](void*) { ADD_FAILURE(); }),
            "DeviceError: asking whether the stream is captured failed: a fault (fakeFault)");
}

// The launch is not tried, and the next one is free of it.
TEST_F(LaunchScope, ChargesNobodyWithAnEarlierFault) {
  fake.noted = kFault;
  EXPECT_EQ(launch(64, nullptr, [](void*) { ADD_FAILURE(); }),
            "DeviceError: a call before forward.fake was launched failed: a fault (fakeFault); it "
            "may come from an earlier launch on this device: TESSERA_SYNC_LAUNCHES=1 shows which");
  EXPECT_TRUE(fake.calls.empty());
  EXPECT_EQ(launch(64, nullptr, [](void*) {}), "launched");
}

TEST_F(LaunchScope, ThrowsNothingWhereTheWorkspaceCannotBeFreed) {
  fake.fails["release_async"] = kFault;
  EXPECT_EQ(launch(64, nullptr, [](void*) {}), "launched");
  EXPECT_EQ(fake.live, 1);
  fake.live = 0;
}

}  // namespace
}  // namespace tessera::testing
