#pragma once
// wgmma: matrix products of a warpgroup. Accumulators and operands in registers must not be touched
// between the issue of a product and the wait for its group.
//
// Tiles in shared memory are panels of 64 columns, 128 bytes a row, which TMA has swizzled: in
// every eight rows (1024 bytes) the 16-byte chunk c of row r lies at c ^ r.

#include <cstdint>

#include "wgmma_shapes.cuh"

namespace tessera::cuda::hopper {

inline constexpr int kPanelColumns = 64;
inline constexpr int kPanelRowBytes = 128;

// Before the first product, and after ordinary writes to its accumulators or operands.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// All groups but the newest kPending are done.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps the compiler from moving reads or writes of accumulators across this point.
template <int kCount>
__device__ __forceinline__ void pin(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// Descriptors of operands: the address, in units of 16 bytes as all of it, in the low bits; the
// distance of neighbouring panels (only where the columns are not the depth); that of eight rows;
// the swizzle. Of the depth of a product, `depth_step` advances by 16.
namespace descriptor {

inline constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kEightRows = std::uint64_t{1024 >> 4} << 32;

__device__ __forceinline__ std::uint64_t start(std::uint32_t address) {
  return (address & 0x3FFFF) >> 4;
}
// [rows, depth]: queries and keys.
__device__ __forceinline__ std::uint64_t of_rows(std::uint32_t address) {
  return kSwizzle128 | kEightRows | start(address);
}
__device__ constexpr std::uint64_t row_depth_step(int step, int rows) {
  return static_cast<std::uint64_t>((step / 4) * rows * kPanelRowBytes + (step % 4) * 32) >> 4;
}
// [depth, columns], `rows` of it: values.
__device__ __forceinline__ std::uint64_t of_columns(std::uint32_t address, int rows) {
  return kSwizzle128 | kEightRows | (static_cast<std::uint64_t>(rows * kPanelRowBytes >> 4) << 16) |
         start(address);
}
__device__ constexpr std::uint64_t column_depth_step(int step) {
  return static_cast<std::uint64_t>(step * 16 * kPanelRowBytes) >> 4;
}

}  // namespace descriptor

}  // namespace tessera::cuda::hopper
