#pragma once
// The runtime's error codes as exceptions.

#include <string>
#include <string_view>

namespace tessera::gpu {

// "out of memory (cudaErrorMemoryAllocation)"
std::string describe(int error);

// What is said where an error may be an earlier launch's.
inline constexpr std::string_view kMaybeEarlier =
    "; it may come from an earlier launch on this device: TESSERA_SYNC_LAUNCHES=1 shows which";

// Throws DeviceError, "<what> failed: <error><hint>", unless `error` is 0. The runtime's own note
// of the error is taken back first, so that nobody else is charged with it; a fault that the device
// does not recover from stays.
void check(int error, std::string_view what, std::string_view hint = {});

// Takes that note back where nothing can be thrown.
void forget_error() noexcept;

}  // namespace tessera::gpu
