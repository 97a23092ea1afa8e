// The CUDA backend's way to its families of kernels, over a fake runtime and fake families: it
// needs neither a device nor nvcc.

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tessera/error.hpp>

#include "backends/cuda/host.hpp"
#include "tests/unit/gpu_common/fake_device.hpp"
#include "tests/unit/src/environment.hpp"

namespace tessera {
namespace {

std::vector<std::string> launched;  // "hopper forward.hopper.plain on 1"

backend::Candidate candidate(std::string_view kernel, const cuda::Device& device, int least) {
  backend::Candidate made{.kernel = kernel, .workspace = 32};
  if (device.capability < least) made.rejected = "too old";
  return made;
}

void launch(const char* family, const cuda::Launch& launch) {
  EXPECT_NE(launch.workspace, nullptr);
  launched.push_back(std::string(family) + " " + std::string(launch.candidate.kernel) + " on " +
                     std::to_string(launch.device.index));
}

}  // namespace

namespace cuda::hopper {
void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all) {
  if (problem.operation != Operation::forward) return;
  all.push_back(candidate("forward.hopper.plain", device, 90));
}
void launch(const Launch& launch) { tessera::launch("hopper", launch); }
}  // namespace cuda::hopper

namespace cuda::mma {
void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all) {
  if (problem.operation == Operation::decode) return;
  const bool forward = problem.operation == Operation::forward;
  all.push_back(candidate(forward ? "forward.mma" : "backward.mma", device, forward ? 80 : 120));
}
void launch(const Launch& launch) { tessera::launch("mma", launch); }
}  // namespace cuda::mma

namespace testing {
namespace {

class CudaBackend : public WithFakeDevice {
 protected:
  void SetUp() override {
    WithFakeDevice::SetUp();
    launched.clear();
  }
};

// "forward.hopper.plain" or "forward.hopper.plain: why not", in order.
std::vector<std::string> candidates(Operation operation) {
  std::vector<std::string> texts;
  for (const backend::Candidate& c : backend::candidates({.operation = operation}))
    texts.push_back(std::string(c.kernel) + (c.rejected.empty() ? "" : ": ") + c.rejected);
  return texts;
}

using Texts = std::vector<std::string>;

TEST_F(CudaBackend, AsksTheFamiliesInOrder) {
  EXPECT_EQ(candidates(Operation::forward), (Texts{"forward.hopper.plain", "forward.mma"}));
  const Environment ampere("TESSERA_CUDA_ARCH", "80");
  EXPECT_EQ(candidates(Operation::forward),
            (Texts{"forward.hopper.plain: too old", "forward.mma"}));
  EXPECT_EQ(cuda::device(0).multiprocessors, 7);  // it is the device that is there all the same
}

TEST_F(CudaBackend, SaysWhatWorksWhereNothingDoes) {
  const std::string no_backward =
      "backward.cuda: the cuda backend has no backward yet: forward and decode work here, and a "
      "build with BACKEND=kokkos computes gradients";
  EXPECT_EQ(candidates(Operation::backward), (Texts{"backward.mma: too old", no_backward}));
  EXPECT_EQ(candidates(Operation::decode),
            (Texts{"decode.cuda: this build has none of the cuda backend's kernels for it: a build "
                   "with BACKEND=kokkos computes it"}));
}

TEST_F(CudaBackend, ListsKernelsWithoutADevice) {
  fake.devices = 0;
  // Devices are looked at once: of one that nobody has looked at.
  fake.current = 5;
  const std::string why =
      ": there is no CUDA device: no device (fakeNoDevice); "
      "TESSERA_CUDA_ARCH=80 or 90 plans without one";
  EXPECT_EQ(candidates(Operation::forward),
            (Texts{"forward.hopper.plain" + why, "forward.mma" + why}));
  {
    const Environment hopper("TESSERA_CUDA_ARCH", "90");
    EXPECT_EQ(candidates(Operation::forward), (Texts{"forward.hopper.plain", "forward.mma"}));
    EXPECT_EQ(cuda::device(5).multiprocessors, 132);
    EXPECT_EQ(cuda::device(5).shared_memory, 227U * 1024);
  }
  const Environment ampere("TESSERA_CUDA_ARCH", "80");
  EXPECT_EQ(candidates(Operation::forward),
            (Texts{"forward.hopper.plain: too old", "forward.mma"}));
  EXPECT_EQ(cuda::device(5).multiprocessors, 108);
  fake.current = 0;
}

TEST_F(CudaBackend, RefusesAnotherArchitecture) {
  for (const char* const value : {"90a", "89", "sm_80", " 80"}) {
    const Environment other("TESSERA_CUDA_ARCH", value);
    try {
      static_cast<void>(candidates(Operation::forward));
      ADD_FAILURE() << value;
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.what(), "the environment variable TESSERA_CUDA_ARCH is '" +
                                  std::string(value) + "'; must be 80 or 90");
    }
  }
  const Environment unset("TESSERA_CUDA_ARCH", "");
  EXPECT_NO_THROW(static_cast<void>(candidates(Operation::forward)));
}

TEST_F(CudaBackend, LaunchesByFamily) {
  const Stream second = Stream::from_native(nullptr, 1);
  for (const std::string_view kernel : {"forward.hopper.plain", "forward.mma", "decode.mma.x"})
    backend::launch({.kernel = kernel, .workspace = 32}, {}, kernel::ForwardArguments{}, nullptr,
                    second);
  EXPECT_EQ(launched, (Texts{"hopper forward.hopper.plain on 1", "mma forward.mma on 1",
                             "mma decode.mma.x on 1"}));
  EXPECT_TRUE(fake.was_called("allocate_async 32 on 1"));
  EXPECT_THROW(
      backend::launch({.kernel = "forward.simt"}, {}, kernel::ForwardArguments{}, nullptr, second),
      Unsupported);
  EXPECT_THROW(
      backend::launch({.kernel = "backward.mma"}, {}, kernel::BackwardArguments{}, nullptr, second),
      Unsupported);
}

TEST_F(CudaBackend, ChecksTheRuntimesErrors) {
  EXPECT_NO_THROW(cuda::check(0, "nothing"));
  try {
    cuda::check(kFault, "encoding a tensor map");
    ADD_FAILURE();
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "encoding a tensor map failed: a fault (fakeFault)");
  }
}

}  // namespace
}  // namespace testing
}  // namespace tessera
