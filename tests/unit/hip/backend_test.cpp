// The HIP backend's way to its family of kernels, over a fake runtime and a fake family: it needs
// neither a device nor a compiler for one.

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "backends/hip/host.hpp"
#include "tests/unit/hip/with_fake_hip.hpp"
#include "tests/unit/src/environment.hpp"

namespace tessera {
namespace {

struct Parameters {
  const void* workspace;
  int device;
  char text[12];
};

}  // namespace

namespace hip::matrix {
void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all) {
  if (problem.operation != Operation::forward) return;
  backend::Candidate made{.kernel = "forward.matrix.fake", .workspace = 32};
  if (device.generation != Generation::Cdna3) made.rejected = "needs CDNA3";
  all.push_back(made);
}
void launch(const Launch& launch) {
  const Parameters parameters{launch.workspace, launch.device.index, "parameters"};
  queue(launch, "launched", {5, 6, 7}, 256, 1024, &parameters, sizeof parameters);
}
}  // namespace hip::matrix

namespace testing {
namespace {

class HipBackend : public WithFakeHip {};

using Texts = std::vector<std::string>;

// "forward.matrix.fake" or "forward.matrix.fake: why not", in order.
Texts candidates(Operation operation) {
  Texts texts;
  for (const backend::Candidate& c : backend::candidates({.operation = operation}))
    texts.push_back(std::string(c.kernel) + (c.rejected.empty() ? "" : ": ") + c.rejected);
  return texts;
}

void launch(std::string_view kernel, const Stream& stream) {
  backend::launch({.kernel = kernel, .workspace = 32}, {}, kernel::ForwardArguments{}, nullptr,
                  stream);
}

TEST_F(HipBackend, PlansForTheDeviceThatIsThere) {
  EXPECT_EQ(candidates(Operation::forward), (Texts{"forward.matrix.fake"}));
  const hip::Device& device = hip::device(0);
  EXPECT_EQ(device.isa, "gfx942");
  EXPECT_EQ(device.generation, hip::Generation::Cdna3);
  EXPECT_EQ(device.multiprocessors, 304);
  EXPECT_EQ(device.wave, 64);
  EXPECT_EQ(device.shared_memory, 65536U);
  EXPECT_EQ(device.l2, 4096U);  // the fake's
}

TEST_F(HipBackend, PlansForAnotherTarget) {
  const Environment other("TESSERA_HIP_ARCH", "gfx1201");
  EXPECT_EQ(candidates(Operation::forward), (Texts{"forward.matrix.fake: needs CDNA3"}));
  EXPECT_EQ(hip::device(0).generation, hip::Generation::Rdna4);
  EXPECT_EQ(hip::device(0).multiprocessors, 64);
  EXPECT_EQ(hip::device(0).wave, 32);
  EXPECT_EQ(thrown([] { launch("forward.matrix.fake", Stream()); }),
            "Unsupported: the environment variable TESSERA_HIP_ARCH is 'gfx1201', which plans "
            "only: device 0 is gfx942");
  EXPECT_TRUE(fake.launches.empty());
}

TEST_F(HipBackend, ADeviceWithoutKernelsIsStillOne) {
  fake.arch = "gfx908:xnack-";
  fake.devices = 8;
  const hip::Device& device = hip::device(7);  // at which nobody has looked
  EXPECT_EQ(device.isa, "gfx908");
  EXPECT_EQ(device.generation, hip::Generation::Unknown);
}

TEST_F(HipBackend, PlansWithoutADevice) {
  fake.fails["hipGetDeviceCount"] = kNoDevice;
  fake.current = 5;  // devices are looked at once: one at which nobody has looked
  EXPECT_EQ(candidates(Operation::forward),
            (Texts{"forward.matrix.fake: there is no HIP device: no device is there "
                   "(hipErrorNoDevice); TESSERA_HIP_ARCH=gfx942 or another of gfx90a, gfx942, "
                   "gfx950, gfx1100, gfx1201 plans without one"}));
  {
    const Environment instinct("TESSERA_HIP_ARCH", "gfx942");
    EXPECT_EQ(candidates(Operation::forward), (Texts{"forward.matrix.fake"}));
    EXPECT_EQ(hip::device(5).l2, std::size_t{4} << 20);
  }
  const Environment newer("TESSERA_HIP_ARCH", "gfx950");
  EXPECT_EQ(candidates(Operation::forward), (Texts{"forward.matrix.fake: needs CDNA3"}));
  EXPECT_EQ(hip::device(5).shared_memory, 160U * 1024);
  EXPECT_EQ(hip::device(5).multiprocessors, 256);
  fake.current = 0;
}

TEST_F(HipBackend, RefusesAnUnknownTarget) {
  for (const char* const value : {"gfx908", "942", " gfx942", "gfx942:xnack-"}) {
    const Environment other("TESSERA_HIP_ARCH", value);
    EXPECT_EQ(thrown([] { candidates(Operation::forward); }),
              "DeviceError: the environment variable TESSERA_HIP_ARCH is '" + std::string(value) +
                  "'; must be one of gfx90a, gfx942, gfx950, gfx1100, gfx1201");
  }
  const Environment unset("TESSERA_HIP_ARCH", "");
  EXPECT_EQ(thrown([] { candidates(Operation::forward); }), "nothing");
}

TEST_F(HipBackend, SaysWhatWorksWhereNothingDoes) {
  EXPECT_EQ(candidates(Operation::backward),
            (Texts{"backward.hip: this build has none of the hip backend's kernels for it: a build "
                   "with BACKEND=kokkos computes it"}));
  EXPECT_EQ(candidates(Operation::decode),
            (Texts{"decode.hip: this build has none of the hip backend's kernels for it: a build "
                   "with BACKEND=kokkos computes it"}));
  EXPECT_EQ(thrown([] {
              backend::launch({.kernel = "backward.matrix"}, {.operation = Operation::backward},
                              kernel::BackwardArguments{}, nullptr, Stream());
            }),
            "Unsupported: this build has no family of kernels for backward.matrix");
}

TEST_F(HipBackend, LaunchesWithTheKernelsArgument) {
  char stream = 0;
  const Stream second = Stream::from_native(&stream, 1);
  launch("forward.matrix.fake", second);
  ASSERT_EQ(fake.launches.size(), 1U);
  const FakeLaunch& launched = fake.launches[0];
  EXPECT_EQ(launched.kernel, "tessera_launched");
  EXPECT_EQ(launched.grid, (std::array<unsigned, 3>{5, 6, 7}));
  EXPECT_EQ(launched.block, (std::array<unsigned, 3>{256, 1, 1}));
  EXPECT_EQ(launched.shared_bytes, 1024U);
  EXPECT_EQ(launched.stream, &stream);
  EXPECT_EQ(launched.device, 1);
  ASSERT_EQ(launched.argument.size(), sizeof(Parameters));
  Parameters parameters{};
  std::memcpy(&parameters, launched.argument.data(), sizeof parameters);
  EXPECT_NE(parameters.workspace, nullptr);
  EXPECT_EQ(parameters.device, 1);
  EXPECT_STREQ(parameters.text, "parameters");
  EXPECT_EQ(count("hipMallocAsync 32 on 1"), 1);
  EXPECT_EQ(count("hipFreeAsync on 1"), 1);
  EXPECT_EQ(thrown([] { launch("forward.other", Stream()); }),
            "Unsupported: this build has no family of kernels for forward.other");
}

TEST_F(HipBackend, SaysThatALaunchFailed) {
  fake.fails["hipModuleLaunchKernel"] = kLaunchFailure;
  EXPECT_EQ(thrown([] { launch("forward.matrix.fake", Stream()); }),
            "DeviceError: launching forward.matrix.fake (launched) failed: the kernel failed "
            "(hipErrorLaunchFailure)");
}

// A fault that the device does not recover from: each call after it says so.
TEST_F(HipBackend, AFaultIsSaidBeforeTheNextLaunch) {
  fake.fault = fake.noted = kLaunchFailure;
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(thrown([] { launch("forward.matrix.fake", Stream()); }),
              "DeviceError: a call before forward.matrix.fake was launched failed: the kernel "
              "failed (hipErrorLaunchFailure); it may come from an earlier launch on this device: "
              "TESSERA_SYNC_LAUNCHES=1 shows which");
  }
  EXPECT_TRUE(fake.launches.empty());
}

}  // namespace
}  // namespace testing
}  // namespace tessera
