// Kokkos' variables in the environment, each in a process of its own: for what Kokkos ends a
// process for, the library has an error, and the process can go on.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <tessera/error.hpp>
#include <tessera/info.hpp>

namespace tessera::testing {
namespace {

// Status of a child in which the variable is set: 0 if `body` returns true.
template <class Body>
int status_with(const char* name, const char* value, Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    ::setenv(name, value, 1);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(Environment, WhatKokkosEndsTheProcessForIsAnError) {
  constexpr std::pair<const char*, const char*> kWrong[] = {
      {"KOKKOS_NUM_THREADS", "0"},
      {"KOKKOS_NUM_THREADS", "-1"},
      {"KOKKOS_NUM_THREADS", "abc"},
      {"KOKKOS_NUM_THREADS", ""},
      {"KOKKOS_NUM_THREADS", "2x"},
      {"KOKKOS_NUM_THREADS", "99999999999"},
      {"KOKKOS_DEVICE_ID", "-1"},
      {"KOKKOS_DEVICE_ID", "gpu"},
      {"KOKKOS_MAP_DEVICE_ID_BY", "chance"},
      {"KOKKOS_DISABLE_WARNINGS", "perhaps"},
      {"KOKKOS_PRINT_CONFIGURATION", "2"},
      {"KOKKOS_TUNE_INTERNALS", "x"},
  };
  for (const auto& [name, value] : kWrong) {
    const std::string expected = name + std::string(" is '") + value + "'; must be ";
    const int status = status_with(name, value, [&] {
      try {
        static_cast<void>(device_info());
        return false;
      } catch (const DeviceError& error) {
        return std::string(error.what()).find(expected) != std::string::npos;
      }
    });
    EXPECT_EQ(status, 0) << name << "=" << value;
  }
}

TEST(Environment, ThreadsAreAsManyAsAskedForUpToTheMost) {
  for (const int threads : {1, 2, 3}) {
    const std::string text = std::to_string(threads);
    EXPECT_EQ(status_with("KOKKOS_NUM_THREADS", text.c_str(),
                          [&] { return device_info().threads == threads; }),
              0)
        << threads;
  }
  EXPECT_EQ(status_with("KOKKOS_NUM_THREADS", "600", [] { return device_info().threads <= 512; }),
            0);
}

}  // namespace
}  // namespace tessera::testing
