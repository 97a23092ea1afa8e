#pragma once
// Tests over the fake runtime, which TESSERA_HIP_RUNTIME must name.

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <tessera/error.hpp>

#include "tests/unit/hip/fake_hip.hpp"

namespace tessera::testing {

// The one that a library file has; it stays open.
inline FakeHip& fake_hip_of(const char* file) {
  void* const library = file != nullptr ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
  void* const get = library != nullptr ? dlsym(library, "fake_hip") : nullptr;
  if (get == nullptr) throw std::runtime_error("TESSERA_HIP_RUNTIME must name the fake runtime");
  return *reinterpret_cast<GetFakeHip>(get)();
}

// Starts each test with a new one, and ends it with nothing left: no device of ours current, no
// error that others would be charged with.
class WithFakeHip : public ::testing::Test {
 protected:
  void SetUp() override { reset(); }
  void TearDown() override {
    EXPECT_EQ(fake.current, 0);
    EXPECT_EQ(fake.noted, fake.fault);
    reset();
  }

  // Functions stay what they are: modules are never unloaded.
  void reset() {
    fake.devices = 2;
    fake.arch = "gfx942:sramecc+:xnack-";
    fake.fails.clear();
    fake.capture_status = fake.fault = fake.current = fake.noted = 0;
    fake.calls.clear();
    fake.launches.clear();
  }

  std::ptrdiff_t count(const std::string& call) const {
    return std::count(fake.calls.begin(), fake.calls.end(), call);
  }

  FakeHip& fake = fake_hip_of(std::getenv("TESSERA_HIP_RUNTIME"));
};

// "DeviceError: text" or "Unsupported: text"; what `body` throws, or "nothing".
template <class Body>
std::string thrown(Body body) {
  try {
    body();
  } catch (const DeviceError& error) {
    return std::string("DeviceError: ") + error.what();
  } catch (const Unsupported& error) {
    return std::string("Unsupported: ") + error.what();
  }
  return "nothing";
}

}  // namespace tessera::testing
