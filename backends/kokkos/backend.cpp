// Which kernels there are, and the way to them.

#include "core/src/backend.hpp"

#include <mutex>

#include <tessera/error.hpp>

#include "backends/kokkos/generic/forward.hpp"
#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/runtime.hpp"
#include "backends/kokkos/vector/vector.hpp"
#include "tessera_head_dims.hpp"

namespace tessera::backend {

std::string_view name() noexcept { return "kokkos"; }

std::string_view head_dims() noexcept { return TESSERA_BUILD_HEAD_DIMS; }

std::vector<Candidate> candidates(const Problem& problem) {
  std::vector<Candidate> all;
  switch (problem.operation) {
    case Operation::forward:
      if (kokkos::host_space()) kokkos::vector::append_forward(problem, all);
      all.push_back(kokkos::generic::candidate(problem));
      break;
    case Operation::backward:
      if (kokkos::host_space()) kokkos::vector::append_backward(problem, all);
      break;
    case Operation::decode:
      if (kokkos::host_space()) kokkos::vector::append_decode(problem, all);
      break;
  }
  return all;
}

void launch(const Candidate& candidate, const Problem& problem,
            const kernel::ForwardArguments& arguments, void* workspace, const Stream& stream) {
  kokkos::ensure_initialized();
  const std::lock_guard lock(kokkos::launch_lock());
  kokkos::begin_launch(stream);
  if (candidate.kernel == kokkos::generic::kForward) {
    if (kokkos::inside_parallel_region()) {
      throw DeviceError(
          "forward.generic cannot run inside an OpenMP parallel region: call it outside");
    }
    kokkos::generic::launch(problem, arguments, workspace, stream);
  } else if (problem.operation == Operation::decode) {
    kokkos::vector::launch_decode(candidate, problem, arguments, workspace, stream);
  } else {
    kokkos::vector::launch_forward(candidate, problem, arguments, workspace, stream);
  }
}

void launch(const Candidate& candidate, const Problem& problem,
            const kernel::BackwardArguments& arguments, void* workspace, const Stream& stream) {
  kokkos::ensure_initialized();
  const std::lock_guard lock(kokkos::launch_lock());
  kokkos::begin_launch(stream);
  kokkos::vector::launch_backward(candidate, problem, arguments, workspace, stream);
}

}  // namespace tessera::backend
