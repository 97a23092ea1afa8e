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
#if !defined(TESSERA_WITHOUT_KOKKOS)
  all.push_back(kokkos::generic::candidate(problem));
#endif
  return all;
}

namespace {

#if defined(TESSERA_WITHOUT_KOKKOS)

template <class Arguments>
bool launch_generic(const Candidate&, const Problem&, const Arguments&, void*, const Stream&) {
  return false;
}

#else

void launch_teams(const Candidate& candidate, const Problem& problem,
                  const kernel::ForwardArguments& arguments, void* workspace,
                  const Stream& stream) {
  kokkos::generic::launch_forward(candidate.kernel, problem, arguments, workspace, stream);
}
void launch_teams(const Candidate&, const Problem& problem,
                  const kernel::BackwardArguments& arguments, void* workspace,
                  const Stream& stream) {
  kokkos::generic::launch_backward(problem, arguments, workspace, stream);
}

// Is it a generic kernel? Then it is launched.
template <class Arguments>
bool launch_generic(const Candidate& candidate, const Problem& problem, const Arguments& arguments,
                    void* workspace, const Stream& stream) {
  using namespace kokkos::generic;
  if (candidate.kernel != kForward && candidate.kernel != kBackward && candidate.kernel != kDecode)
    return false;
  if (kokkos::inside_parallel_region()) {  // teams cannot do with the caller's thread alone
    throw DeviceError(std::string(candidate.kernel) +
                      " cannot run inside an OpenMP parallel region: call it outside");
  }
  launch_teams(candidate, problem, arguments, workspace, stream);
  return true;
}

#endif

}  // namespace

void launch(const Candidate& candidate, const Problem& problem,
            const kernel::ForwardArguments& arguments, void* workspace, const Stream& stream) {
  kokkos::ensure_initialized();
  const std::lock_guard lock(kokkos::launch_lock());
  kokkos::begin_launch(stream);
  if (launch_generic(candidate, problem, arguments, workspace, stream)) return;
  if (problem.operation == Operation::decode) {
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
  if (launch_generic(candidate, problem, arguments, workspace, stream)) return;
  kokkos::vector::launch_backward(candidate, problem, arguments, workspace, stream);
}

}  // namespace tessera::backend
