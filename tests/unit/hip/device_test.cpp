// From memory to a launch and back on a device: the tests' own kernel, which doubles numbers.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <string>

#include <gtest/gtest.h>
#include <tessera/error.hpp>

#include "backends/gpu_common/device_api.hpp"
#include "backends/gpu_common/devices.hpp"
#include "backends/gpu_common/launch_scope.hpp"
#include "backends/hip/host.hpp"

namespace tessera::testing {
namespace {

struct Parameters {
  const float* in;
  float* out;
};

constexpr unsigned kCount = 256;
using Numbers = std::array<float, kCount>;

void queue_plain(const Parameters& parameters, const Stream& stream) {
  const gpu::LaunchScope scope("forward.test", 0, nullptr, stream);
  const backend::Candidate candidate{.kernel = "forward.test"};
  hip::queue({.candidate = candidate,
              .problem = {},
              .arguments = {},
              .workspace = nullptr,
              .stream = stream.native(),
              .device = hip::device(stream.device())},
             "plain", {1, 1, 1}, kCount, 0, &parameters, sizeof parameters);
  scope.finish();
}

TEST(HipDevice, IsTheOneThatIsWanted) {
  ASSERT_GT(backend::device_count(), 0) << gpu::why_no_device();
  const char* const wanted = std::getenv("TESSERA_SIMULATED_DEVICE");
  if (wanted != nullptr) {
    EXPECT_EQ(hip::device(0).isa, wanted);
  }
  EXPECT_NE(hip::device(0).generation, hip::Generation::Unknown) << hip::device(0).isa;
  EXPECT_GT(hip::device(0).multiprocessors, 0);
  EXPECT_GE(hip::device(0).shared_memory, 64U * 1024);
}

TEST(HipDevice, DoublesNumbers) {
  Numbers in, out;
  std::iota(in.begin(), in.end(), -3.5F);
  out.fill(0);
  const Stream stream;
  auto* const from = static_cast<float*>(backend::allocate(sizeof in, 0));
  auto* const to = static_cast<float*>(backend::allocate(sizeof out, 0));
  backend::copy(from, in.data(), sizeof in, stream);
  queue_plain({from, to}, stream);
  backend::copy(out.data(), to, sizeof out, stream);
  backend::synchronize(stream);
  for (unsigned i = 0; i < kCount; ++i) EXPECT_EQ(out[i], 2 * in[i]) << i;
  backend::release(from, 0);
  backend::release(to, 0);
}

}  // namespace
}  // namespace tessera::testing
