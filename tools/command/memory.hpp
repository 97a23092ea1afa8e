#pragma once
/// How much memory this process has, and had at most.

#include <cstdint>
#include <optional>
#include <string_view>

#include "bench/resident.hpp"

namespace tessera::tools {

using bench::release_free_memory;
using bench::resident_bytes;

/// Forgets the peak so far. Returns whether the system lets us.
bool reset_peak();

/// The most bytes that were resident at a time since reset_peak().
std::optional<std::int64_t> peak_resident_bytes();

/// Throws Unsupported if `bytes` are more than the machine has to give: the system would rather end
/// us than refuse them. `who` begins the message: a file or a flag.
void require_memory(std::string_view who, double bytes);

}  // namespace tessera::tools
