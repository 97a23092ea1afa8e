#pragma once
// The environment variables that the library reads, each at every use: a program may change them
// between calls.

#include <string_view>

namespace tessera::detail {

// TESSERA_KERNEL: only kernels that are called so ("generic"). Empty: any.
std::string_view forced_kernel() noexcept;

// Is `wanted` the kernel's whole name, or parts of it that follow one another, between dots?
bool is_called(std::string_view kernel, std::string_view wanted);

// TESSERA_CHECK_VALUES: execute looks at indices in device memory, which costs a synchronisation on
// a GPU. This and the next: 1; off if 0, empty or absent; InvalidArgument if anything else.
bool check_values();

// TESSERA_SYNC_LAUNCHES: execute waits for each launch, so that a fault is reported by the call
// that made it.
bool sync_launches();

}  // namespace tessera::detail
