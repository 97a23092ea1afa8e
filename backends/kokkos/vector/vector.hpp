#pragma once
// The vector path: attention and its gradients on host spaces with queries in SIMD lanes, compiled
// once an instruction set.

#include <vector>

#include <tessera/stream.hpp>

#include "core/src/backend.hpp"

namespace tessera::kokkos::vector {

/// Best instruction set that this processor and build have: "avx512", "avx2" or "portable".
std::string_view best_isa() noexcept;

/// Appends a candidate an instruction set, best first; those that the processor lacks or that
/// cannot compute `problem` carry the reason. Their `id` is what `launch` needs.
void append_forward(const Problem& problem, std::vector<backend::Candidate>& candidates);
void append_backward(const Problem& problem, std::vector<backend::Candidate>& candidates);
void append_decode(const Problem& problem, std::vector<backend::Candidate>& candidates);

/// The candidate for one instruction set, by its id.
backend::Candidate forward_candidate(const Problem& problem, int id);

/// Runs it; the caller holds the launch lock. `workspace` may be null.
void launch_forward(const backend::Candidate& candidate, const Problem& problem,
                    const kernel::ForwardArguments& arguments, void* workspace,
                    const Stream& stream);
void launch_backward(const backend::Candidate& candidate, const Problem& problem,
                     const kernel::BackwardArguments& arguments, void* workspace,
                     const Stream& stream);
void launch_decode(const backend::Candidate& candidate, const Problem& problem,
                   const kernel::ForwardArguments& arguments, void* workspace,
                   const Stream& stream);

}  // namespace tessera::kokkos::vector
