// Devices, memory and streams over a fake runtime.

#include <cstdint>

#include <gtest/gtest.h>
#include <tessera/error.hpp>

#include "backends/gpu_common/device_guard.hpp"
#include "core/src/backend.hpp"
#include "tests/unit/gpu_common/fake_device.hpp"

namespace tessera::testing {
namespace {

class Runtime : public WithFakeDevice {};

const Stream kSecond = Stream::from_native(nullptr, 1);

// The text of the DeviceError that `work` throws.
template <class Work>
std::string failure(Work work) {
  try {
    work();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_F(Runtime, CountsNoDeviceWithoutOne) {
  EXPECT_EQ(backend::device_count(), 2);
  fake.devices = 0;
  EXPECT_EQ(backend::device_count(), 0);
  EXPECT_EQ(fake.noted, 0);
}

TEST_F(Runtime, DescribesADevice) {
  const DeviceInfo info = backend::device_info(1);
  EXPECT_EQ(info.name, "fake 1");
  EXPECT_EQ(info.isa, "fake_90");
  EXPECT_EQ(info.space, "Fake");
  EXPECT_EQ(info.threads, 1);
  EXPECT_EQ(info.memory, 1000U);
  fake.fails["properties"] = kFault;
  EXPECT_EQ(failure([] { backend::device_info(1); }),
            "asking for the properties of device 1 failed: a fault (fakeFault)");
}

TEST_F(Runtime, AllocatesEvenNothing) {
  for (const std::size_t bytes : {0U, 1U, 1000U}) {
    void* const data = backend::allocate(bytes, 1);
    EXPECT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 128, 0U);
    EXPECT_EQ(fake.asked_for, bytes == 0 ? 1 : bytes);
    EXPECT_EQ(fake.current, 0);
    backend::release(data, 1);
  }
  EXPECT_TRUE(fake.was_called("allocate 1000 on 1"));
  EXPECT_TRUE(fake.was_called("release 0 on 1"));
}

TEST_F(Runtime, SaysWhatIsFreeWhereAnAllocationFails) {
  fake.fails["allocate"] = kOutOfMemory;
  const std::string text = "allocating 64 bytes on device 1 failed: no memory (fakeOutOfMemory)";
  EXPECT_EQ(failure([] { backend::allocate(64, 1); }), text + "; 11 of its 1000 bytes are free");
  EXPECT_EQ(fake.current, 0);
  fake.fails["memory_info"] = kFault;
  EXPECT_EQ(failure([] { backend::allocate(64, 1); }), text);
}

TEST_F(Runtime, ReleasingNeverThrows) {
  void* const data = backend::allocate(1, 1);
  for (const char* const function : {"release", "set_device", "get_device"}) {
    fake.fails = {{function, kFault}};
    backend::release(data, 1);
    EXPECT_EQ(fake.noted, 0) << function;
    EXPECT_EQ(fake.current, 0) << function;
  }
  fake.fails.clear();
  backend::release(data, 1);
}

TEST_F(Runtime, CopiesAndWaitsOnTheStreamsDevice) {
  backend::copy(nullptr, nullptr, 3, kSecond);
  backend::synchronize(kSecond);
  EXPECT_EQ(fake.calls,
            (std::vector<std::string>{"copy_async 3 on 1", "stream_synchronize 0 on 1"}));
  EXPECT_FALSE(backend::host_reads_device_memory());
}

TEST_F(Runtime, RestoresTheDeviceAfterErrors) {
  fake.fails = {{"copy_async", kFault}, {"stream_synchronize", kFault}};
  const std::string hint =
      " failed: a fault (fakeFault); it may come from an earlier launch on this device: "
      "TESSERA_SYNC_LAUNCHES=1 shows which";
  EXPECT_EQ(failure([] { backend::copy(nullptr, nullptr, 3, kSecond); }), "copying 3 bytes" + hint);
  EXPECT_EQ(fake.current, 0);
  EXPECT_EQ(failure([] { backend::synchronize(kSecond); }),
            "waiting for a stream of device 1" + hint);
  EXPECT_EQ(fake.current, 0);
}

TEST_F(Runtime, SaysWhichDeviceCannotBeHad) {
  fake.fails["set_device"] = kFault;
  EXPECT_EQ(failure([] { backend::synchronize(kSecond); }),
            "making device 1 current failed: a fault (fakeFault)");
  EXPECT_TRUE(fake.calls.empty());
  fake.fails = {{"get_device", kFault}};
  EXPECT_EQ(failure([] { backend::synchronize(kSecond); }),
            "asking for the current device failed: a fault (fakeFault)");
}

TEST_F(Runtime, GuardsNest) {
  {
    const gpu::DeviceGuard outer(1);
    EXPECT_EQ(fake.current, 1);
    {
      const gpu::DeviceGuard inner(0);
      const gpu::DeviceGuard same(0);
      EXPECT_EQ(fake.current, 0);
    }
    EXPECT_EQ(fake.current, 1);
  }
  EXPECT_EQ(fake.current, 0);
}

}  // namespace
}  // namespace tessera::testing
