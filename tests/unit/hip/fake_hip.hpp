#pragma once
// A HIP runtime that only takes notes: fake_runtime.cpp makes a library of it, which tests open in
// the place of AMD's. Nothing of a kernel is executed.

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tessera::testing {

// Some of HIP's error numbers.
inline constexpr int kOutOfMemory = 2;
inline constexpr int kNoDevice = 100;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kNoBinary = 209;
inline constexpr int kNotFound = 500;
inline constexpr int kLaunchFailure = 719;

struct FakeLaunch {
  std::string kernel{};
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  unsigned shared_bytes = 0;
  void* stream = nullptr;
  std::vector<std::byte> argument{};
  int device = 0;
};

struct FakeHip {
  // What it is.
  int devices = 2;
  std::string arch = "gfx942:sramecc+:xnack-";  // of every device
  std::map<std::string, int> fails{};           // these functions, with that error
  int capture_status = 0;                       // of every stream
  int fault = 0;                                // what launches leave: sticky, as on a device

  // What happened.
  std::mutex changing{};
  int current = 0;
  int noted = 0;                     // the last error
  std::vector<std::string> calls{};  // "hipMemcpyAsync 3 4 on 1": sizes, kinds, flags, values
  std::vector<FakeLaunch> launches{};
  std::map<const void*, std::string> functions{};  // names by handle
};

// What the library exports to tests under the name fake_hip.
using GetFakeHip = FakeHip* (*)();

}  // namespace tessera::testing
