#pragma once
// Where a tensor's elements lie: counts, spans, and whether two elements can share a byte. Exact in
// 128 bits.

#include <array>
#include <cstdint>
#include <optional>

#include <tessera/problem.hpp>
#include <tessera/tensor.hpp>

namespace tessera::detail {

__extension__ typedef __int128 Wide;

struct Axis {
  const char* name;
  std::int64_t Extents::* extent;
  std::int64_t Strides::* stride;
};
inline constexpr std::array<Axis, 4> kAxes{{{"batch", &Extents::batch, &Strides::batch},
                                            {"head", &Extents::head, &Strides::head},
                                            {"seq", &Extents::seq, &Strides::seq},
                                            {"dim", &Extents::dim, &Strides::dim}}};

inline std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

constexpr bool is_empty(const Extents& e) {
  return e.batch == 0 || e.head == 0 || e.seq == 0 || e.dim == 0;
}

// Number of elements; nullopt from 2^63 on. Extents are at least 0.
std::optional<std::int64_t> element_count(const Extents& extent);

// Bytes from the first element to the end of the last, 0 if there is none; nullopt from 2^63 on.
// Strides of axes with more than one element are at least 0.
std::optional<std::int64_t> byte_span(DType dtype, const Extents& extent, const Strides& stride);

// False only if no two elements share an address. Sorts the axes by stride and asks that each
// stride be at least the span of the axes with smaller ones, which is how arrays, slices of arrays
// and transposed arrays are laid out. Strides that avoid each other in another way, like extents
// (3, 2) with strides (2, 3), are taken to overlap.
bool may_overlap_itself(const Extents& extent, const Strides& stride);

// The bytes of a tensor, a vector or a block.
struct Region {
  std::uintptr_t address = 0;
  DType dtype = DType::uint8;
  Extents extent{};
  Strides stride{};
};

// False only if no byte belongs to both. Interleaved regions, like q and out in one fused
// [batch][seq][3][head][dim] array, are told apart exactly; only strides that share no structure at
// all may cost more search than is worth it and give true.
bool may_overlap(const Region& a, const Region& b);

}  // namespace tessera::detail
