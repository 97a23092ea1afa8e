#pragma once
// The vector path: forward on host spaces with queries in SIMD lanes, compiled once an instruction
// set.

#include <vector>

#include <tessera/stream.hpp>

#include "core/src/backend.hpp"

namespace tessera::kokkos::vector {

/// Best instruction set that this processor and build have: "avx512", "avx2" or "portable".
std::string_view best_isa() noexcept;

/// Appends a candidate an instruction set, best first; those that the processor lacks or that
/// cannot compute `problem` carry the reason. Their `id` is what `launch` needs.
void append_candidates(const Problem& problem, std::vector<backend::Candidate>& candidates);

/// Runs it; the caller holds the launch lock. `workspace` may be null.
void launch(const backend::Candidate& candidate, const Problem& problem,
            const kernel::ForwardArguments& arguments, void* workspace, const Stream& stream);

}  // namespace tessera::kokkos::vector
