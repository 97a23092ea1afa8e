// What the backend says where there is no HIP runtime at all. ctest runs these tests with
// TESSERA_HIP_RUNTIME naming no file: a process opens its runtime once.

#include <string>

#include <gtest/gtest.h>

#include "backends/gpu_common/devices.hpp"
#include "backends/hip/host.hpp"
#include "backends/hip/modules.hpp"
#include "tests/unit/hip/with_fake_hip.hpp"
#include "tests/unit/src/environment.hpp"

namespace tessera::testing {
namespace {

const std::string kWhy =
    "the environment variable TESSERA_HIP_RUNTIME is '/nowhere/libamdhip64.so', which cannot be "
    "opened: ";

TEST(NoRuntime, IsNoDevice) {
  EXPECT_EQ(backend::device_count(), 0);
  EXPECT_EQ(gpu::current_device(), 0);
  const std::string why = gpu::why_no_device();
  EXPECT_EQ(why.substr(0, kWhy.size()), kWhy);
  EXPECT_TRUE(why.ends_with(" (no HIP runtime)")) << why;
}

TEST(NoRuntime, PlansSayWhy) {
  const auto all = backend::candidates({.operation = Operation::forward});
  ASSERT_EQ(all.size(), 1U);
  const std::string begins = "there is no HIP device: " + kWhy;
  EXPECT_EQ(all[0].rejected.substr(0, begins.size()), begins);
  const Environment assumed("TESSERA_HIP_ARCH", "gfx942");
  EXPECT_EQ(backend::candidates({.operation = Operation::forward})[0].rejected, "");
}

TEST(NoRuntime, EverythingElseIsADeviceError) {
  const auto begins_with = [](const std::string& text, const std::string& begins) {
    EXPECT_EQ(text.substr(0, begins.size()), begins);
  };
  begins_with(thrown([] { backend::device_info(0); }),
              "DeviceError: asking for the properties of device 0 failed: " + kWhy);
  begins_with(thrown([] { backend::allocate(1, 0); }),
              "DeviceError: asking for the current device failed: " + kWhy);
  begins_with(thrown([] { backend::synchronize(Stream()); }),
              "DeviceError: asking for the current device failed: " + kWhy);
  begins_with(thrown([] { hip::function(0, "first"); }),
              "DeviceError: asking for the properties of device 0 failed: " + kWhy);
  begins_with(thrown([] {
                backend::launch({.kernel = "forward.matrix.fake"}, {}, kernel::ForwardArguments{},
                                nullptr, Stream());
              }),
              "DeviceError: asking for the current device failed: " + kWhy);
  EXPECT_EQ(gpu::device_api().peek_error(), 0);
  EXPECT_EQ(gpu::device_api().last_error(), 0);
}

}  // namespace
}  // namespace tessera::testing
