#pragma once
// The generic path: TeamPolicy kernels that any Kokkos device runs, one for each element type,
// every other property of a problem at run time.

#include <string_view>

#include <tessera/stream.hpp>

#include "core/src/backend.hpp"

namespace tessera::kokkos::generic {

inline constexpr std::string_view kForward = "forward.generic";
inline constexpr std::string_view kBackward = "backward.generic";
inline constexpr std::string_view kDecode = "decode.generic";  // forward's kernel

// What computes the problem's operation.
backend::Candidate candidate(const Problem& problem);

// The caller holds the launch lock. `workspace` may be null. Throw DeviceError, which names
// `kernel`.
void launch_forward(std::string_view kernel, const Problem& problem,
                    const kernel::ForwardArguments& arguments, void* workspace,
                    const Stream& stream);
void launch_backward(const Problem& problem, const kernel::BackwardArguments& arguments,
                     void* workspace, const Stream& stream);

}  // namespace tessera::kokkos::generic
