#include <algorithm>
#include <array>
#include <string>

#include "backends/kokkos/generic/config.hpp"
#include "backends/kokkos/generic/generic.hpp"
#include "backends/kokkos/generic/workspace.hpp"
#include "tessera_head_dims.hpp"

namespace tessera::kokkos::generic {
namespace {

#define TESSERA_LIST_ITEM(dim) dim,
constexpr std::array kHeadDims{TESSERA_FOR_EACH_HEAD_DIM(TESSERA_LIST_ITEM)};
#undef TESSERA_LIST_ITEM

// The smallest bucket that holds `dim`; 0 if none does.
std::int64_t bucket(std::int64_t dim) {
  const auto found = std::ranges::find_if(kHeadDims, [dim](std::int64_t b) { return b >= dim; });
  return found == kHeadDims.end() ? 0 : *found;
}

std::string reject_dim(const char* name, std::int64_t dim) {
  if (dim % 8 != 0) {
    return std::string(name) + ".extent.dim is " + std::to_string(dim) +
           "; must be a multiple of 8: pad to " + std::to_string((dim + 7) / 8 * 8);
  }
  if (bucket(dim) == 0) {
    return std::string(name) + ".extent.dim is " + std::to_string(dim) +
           "; the largest of this build's head dimensions (" + TESSERA_BUILD_HEAD_DIMS + ") is " +
           std::to_string(kHeadDims.back());
  }
  return {};
}

std::string reject(const Problem& p) {
  std::string reason = reject_dim("query", p.query.extent.dim);
  return reason.empty() ? reject_dim("value", p.value.extent.dim) : reason;
}

std::string_view kernel_of(Operation operation) {
  switch (operation) {
    case Operation::backward:
      return kBackward;
    case Operation::decode:
      return kDecode;
    default:
      return kForward;
  }
}

}  // namespace

backend::Candidate candidate(const Problem& problem) {
  const bool backward = problem.operation == Operation::backward;
  return {.kernel = kernel_of(problem.operation),
          .rejected = reject(problem),
          .tile_q = kRows,
          .tile_k = kKeys,
          .head_dim = bucket(problem.query.extent.dim),
          .head_dim_v = bucket(problem.value.extent.dim),
          .splits = 1,
          .workspace = Workspace::of(problem).size,
          .why = std::string("runs on every Kokkos device") +
                 (backward && !problem.out ? "; recomputes what forward gave" : ""),
          .id = -1};
}

}  // namespace tessera::kokkos::generic
