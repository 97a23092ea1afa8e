#pragma once
// The environment variables that the library reads, each at every use: a program may change them
// between calls.

#include <string_view>

namespace tessera::detail {

// TESSERA_KERNEL: only kernels with this name, or with this among their name's parts ("generic").
// Empty: any.
std::string_view forced_kernel() noexcept;

// TESSERA_CHECK_VALUES: execute looks at indices in device memory, which costs a synchronisation on
// a GPU.
bool check_values() noexcept;

// TESSERA_SYNC_LAUNCHES: execute waits for each launch, so that a fault is reported by the call
// that made it.
bool sync_launches() noexcept;

}  // namespace tessera::detail
