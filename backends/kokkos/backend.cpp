// Which kernels there are, and the way to them.

#include "core/src/backend.hpp"

#include <mutex>
#include <string>

#include <tessera/error.hpp>

#include "backends/kokkos/generic/generic.hpp"
#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/runtime.hpp"
#include "backends/kokkos/vector/vector.hpp"
#include "tessera_head_dims.hpp"

namespace tessera::backend {

std::string_view name() noexcept { return "kokkos"; }

std::string_view head_dims() noexcept { return TESSERA_BUILD_HEAD_DIMS; }

std::vector<Candidate> candidates(const Problem& problem) {
  std::vector<Candidate> all;
  if (kokkos::host_space()) {
    switch (problem.operation) {
      case Operation::forward:
        kokkos::vector::append_forward(problem, all);
        break;
      case Operation::backward:
        kokkos::vector::append_backward(problem, all);
        break;
      case Operation::decode:
        kokkos::vector::append_decode(problem, all);
        break;
    }
  }
  all.push_back(kokkos::generic::candidate(problem));
  return all;
}

namespace {

bool is_generic(const Candidate& candidate) {
  using namespace kokkos::generic;
  return candidate.kernel == kForward || candidate.kernel == kBackward ||
         candidate.kernel == kDecode;
}

// Teams cannot do with the caller's thread alone.
void refuse_inside_parallel_region(const Candidate& candidate) {
  if (!kokkos::inside_parallel_region()) return;
  throw DeviceError(std::string(candidate.kernel) +
                    " cannot run inside an OpenMP parallel region: call it outside");
}

}  // namespace

void launch(const Candidate& candidate, const Problem& problem,
            const kernel::ForwardArguments& arguments, void* workspace, const Stream& stream) {
  kokkos::ensure_initialized();
  const std::lock_guard lock(kokkos::launch_lock());
  kokkos::begin_launch(stream);
  if (is_generic(candidate)) {
    refuse_inside_parallel_region(candidate);
    kokkos::generic::launch_forward(candidate.kernel, problem, arguments, workspace, stream);
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
  if (is_generic(candidate)) {
    refuse_inside_parallel_region(candidate);
    kokkos::generic::launch_backward(problem, arguments, workspace, stream);
  } else {
    kokkos::vector::launch_backward(candidate, problem, arguments, workspace, stream);
  }
}

}  // namespace tessera::backend
