#pragma once
// A GPU runtime that only takes notes, as the host side of the GPU backends sees it.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tessera::testing {

// Its error codes.
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNoDevice = 100;
inline constexpr int kFault = 700;

struct FakeDevice {
  // What it is.
  int devices = 2;
  bool capturing = false;            // is every stream
  std::map<std::string, int> fails;  // these functions, with that error

  // What happened.
  int current = 0;  // the current device
  int noted = 0;    // the thread's last error
  std::size_t asked_for = 0;
  std::vector<std::string> calls;  // those that do something: "copy_async 3 on 1"
  int live = 0;                    // allocations

  bool was_called(const std::string& call) const;
};

// The one in this process.
FakeDevice& fake_device();

// Starts each test with a new one, and ends it with nothing left: no device of ours current, no
// memory, no error that others would be charged with.
class WithFakeDevice : public ::testing::Test {
 protected:
  void SetUp() override { fake = {}; }
  void TearDown() override {
    EXPECT_EQ(fake.current, 0);
    EXPECT_EQ(fake.live, 0);
    EXPECT_EQ(fake.noted, 0);
    fake = {};
  }
  FakeDevice& fake = fake_device();
};

}  // namespace tessera::testing
