#pragma once
// Why no kernel of a build takes a problem's head dimensions, where it is the same for all.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/problem.hpp>

#include "tessera_head_dims.hpp"

namespace tessera::gpu {

#define TESSERA_LIST_ITEM(dim) dim,
inline constexpr auto kHeadDims =
    std::to_array<std::int64_t>({TESSERA_FOR_EACH_HEAD_DIM(TESSERA_LIST_ITEM)});
#undef TESSERA_LIST_ITEM

constexpr bool is_built(std::int64_t bucket) {
  return std::find(kHeadDims.begin(), kHeadDims.end(), bucket) != kHeadDims.end();
}

// The smallest bucket that holds `dim`; 0 if none does.
constexpr std::int64_t bucket(std::int64_t dim) {
  for (const std::int64_t b : kHeadDims)
    if (b >= dim) return b;
  return 0;
}

inline std::string reject_dim(std::string_view name, std::int64_t dim) {
  const std::string is = std::string(name) + ".extent.dim is " + std::to_string(dim) + "; ";
  if (dim % 8 != 0)
    return is + "must be a multiple of 8: pad to " + std::to_string((dim + 7) / 8 * 8);
  if (bucket(dim) != 0) return {};
  return is + "the largest of this build's head dimensions (" TESSERA_BUILD_HEAD_DIMS ") is " +
         std::to_string(kHeadDims.back());
}

inline std::string reject_dims(const Problem& p) {
  std::string reason = reject_dim("query", p.query.extent.dim);
  return reason.empty() ? reject_dim("value", p.value.extent.dim) : reason;
}

// What is said where a family has no kernel that holds them, though the build has the buckets.
inline std::string both_dims(const Problem& p) {
  return "query.extent.dim is " + std::to_string(p.query.extent.dim) + " and value.extent.dim " +
         std::to_string(p.value.extent.dim) + "; ";
}

}  // namespace tessera::gpu
