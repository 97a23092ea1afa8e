// The table that the GPU backends share, over a fake HIP runtime, and what they make of it.

#include "backends/gpu_common/device_api.hpp"

#include <array>
#include <string>

#include "backends/gpu_common/devices.hpp"
#include "backends/hip/abi.hpp"
#include "core/src/backend.hpp"
#include "tests/unit/hip/with_fake_hip.hpp"

namespace tessera::testing {
namespace {

class HipApi : public WithFakeHip {
 protected:
  const gpu::DeviceApi& api = gpu::device_api();
};

TEST_F(HipApi, TellsWhatADeviceIs) {
  const gpu::DeviceProperties p = gpu::properties(1);
  EXPECT_STREQ(p.name.data(), "fake 1");
  EXPECT_STREQ(p.isa.data(), "gfx942");
  EXPECT_EQ(p.capability, 0x942);
  EXPECT_EQ(p.multiprocessors, 304);
  EXPECT_EQ(p.shared_memory, 65536U);
  EXPECT_EQ(p.l2, 4096U);
  EXPECT_EQ(p.memory, 1000U);
  fake.arch = "gfx1100";
  EXPECT_EQ(gpu::properties(0).capability, 0x1100);

  const DeviceInfo info = backend::device_info(0);
  EXPECT_EQ(info.isa, "gfx1100");
  EXPECT_EQ(info.space, "HIP");
}

TEST_F(HipApi, MovesMemory) {
  void* const data = backend::allocate(3, 1);
  const Stream second = Stream::from_native(nullptr, 1);
  backend::copy(data, data, 7, second);
  backend::synchronize(second);
  backend::release(data, 1);
  EXPECT_EQ(api.set_async(data, 5, 9, nullptr), 0);
  EXPECT_EQ(fake.calls, (std::vector<std::string>{"hipMalloc 3 on 1", "hipMemcpyAsync 7 4 on 1",
                                                  "hipStreamSynchronize on 1", "hipFree on 1",
                                                  "hipMemsetAsync 5 9 on 0"}));
}

TEST_F(HipApi, OrdersStreamsByEvents) {
  void* event = nullptr;
  EXPECT_EQ(api.event_create(&event), 0);
  EXPECT_NE(event, nullptr);
  EXPECT_EQ(api.event_record(event, nullptr), 0);
  EXPECT_EQ(api.event_wait(event, nullptr), 0);
  EXPECT_EQ(api.event_destroy(event), 0);
  EXPECT_EQ(fake.calls,
            (std::vector<std::string>{"hipEventCreateWithFlags 2 on 0", "hipEventRecord on 0",
                                      "hipStreamWaitEvent 0 on 0", "hipEventDestroy on 0"}));
}

TEST_F(HipApi, SeesACapture) {
  EXPECT_FALSE(backend::capturing(Stream()));
  for (const int status : {1, 2}) {  // active, invalidated
    fake.capture_status = status;
    EXPECT_TRUE(backend::capturing(Stream()));
  }
}

TEST_F(HipApi, AsksHowManyBlocksFit) {
  int blocks = 0;
  const int kernel = 0;
  EXPECT_EQ(api.occupancy(&kernel, 256, 1000, &blocks), 0);
  EXPECT_EQ(blocks, 1256);
  EXPECT_EQ(api.allow_shared_memory(&kernel, 160 * 1024), 0);
}

TEST_F(HipApi, SaysWhyThereIsNoDevice) {
  EXPECT_EQ(gpu::why_no_device(), "");
  EXPECT_EQ(backend::device_count(), 2);
  for (const int error : {kNoDevice, kInvalidDevice}) {
    fake.fails["hipGetDeviceCount"] = error;
    EXPECT_EQ(backend::device_count(), 0);
    EXPECT_EQ(gpu::why_no_device(), "no device is there (hipErrorNoDevice)");
  }
  fake.fails.clear();
  fake.devices = 0;
  EXPECT_EQ(gpu::why_no_device(), "the runtime counts none");
}

TEST_F(HipApi, AFaultStaysAnError) {
  fake.fault = fake.noted = kLaunchFailure;
  const std::string fault =
      "the kernel failed (hipErrorLaunchFailure); it may come from an earlier launch on this "
      "device: TESSERA_SYNC_LAUNCHES=1 shows which";
  fake.fails = {{"hipGetDevice", 0}};  // which touches no device
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(thrown([] { backend::synchronize(Stream()); }),
              "DeviceError: waiting for a stream of device 0 failed: " + fault);
  }
}

TEST_F(HipApi, NoMemoryIsAnErrorWithNumbers) {
  fake.fails["hipMalloc"] = kOutOfMemory;
  EXPECT_EQ(thrown([] { backend::allocate(3, 0); }),
            "DeviceError: allocating 3 bytes on device 0 failed: something else (hipErrorOther); "
            "11 of its 1000 bytes are free");
}

}  // namespace
}  // namespace tessera::testing
