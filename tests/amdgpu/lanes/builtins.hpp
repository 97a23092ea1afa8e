#pragma once
// Read before a kernel's source that is compiled for the host: clang's builtins for AMD's
// instructions, which it leaves undefined there. A kernel that uses another does not compile.

#include <cstdint>

#include "tests/amdgpu/lanes/operations.hpp"
#include "tests/amdgpu/lanes/work_group.hpp"

// Attributes that clang refuses where there are no kernels.
#define amdgpu_flat_work_group_size(...) unused
#define amdgpu_waves_per_eu(...) unused

#define TESSERA_LANES_BUILTIN [[gnu::always_inline]] inline

namespace tessera::amdgpu::lanes {

template <class Result, class Argument>
TESSERA_LANES_BUILTIN Result meet(const Operation& operation, const Argument& argument) {
  Result result;
  meet(operation, &argument, &result);
  return result;
}

template <class Sums, class Factor>
TESSERA_LANES_BUILTIN Sums multiply(const Operation& operation, const Factor& a, const Factor& b,
                                    const Sums& sums) {
  return meet<Sums>(operation, Factors{&a, &b, reinterpret_cast<const float*>(&sums)});
}

template <int kCount>
using Words = std::uint32_t __attribute__((ext_vector_type(kCount)));
template <class T, int kCount>
using Vector = T __attribute__((ext_vector_type(kCount)));

template <int kCount>
TESSERA_LANES_BUILTIN Words<kCount> load(const Buffer& buffer, int offset, int further) {
  std::uint32_t words[kCount];
  load_buffer(buffer, static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(further),
              kCount, words);
  Words<kCount> result;
  for (int i = 0; i < kCount; ++i) result[i] = words[i];
  return result;
}

}  // namespace tessera::amdgpu::lanes

// --- Who a lane is -------------------------------------------------------------------------------

TESSERA_LANES_BUILTIN unsigned __builtin_amdgcn_workitem_id_x() {
  return static_cast<unsigned>(tessera::amdgpu::lanes::thread());
}
TESSERA_LANES_BUILTIN unsigned __builtin_amdgcn_workgroup_id_x() {
  return tessera::amdgpu::lanes::group();
}
TESSERA_LANES_BUILTIN const void* __builtin_amdgcn_kernarg_segment_ptr() {
  return tessera::amdgpu::lanes::argument();
}

// --- Between lanes -------------------------------------------------------------------------------

TESSERA_LANES_BUILTIN int __builtin_amdgcn_readfirstlane(int x) {
  return tessera::amdgpu::lanes::meet<int>(tessera::amdgpu::lanes::kFirstLane, x);
}
TESSERA_LANES_BUILTIN std::uint64_t __builtin_amdgcn_ballot_w64(bool p) {
  return tessera::amdgpu::lanes::meet<std::uint64_t>(tessera::amdgpu::lanes::kBallot, p);
}
TESSERA_LANES_BUILTIN std::uint32_t __builtin_amdgcn_ballot_w32(bool p) {
  return static_cast<std::uint32_t>(__builtin_amdgcn_ballot_w64(p));
}
TESSERA_LANES_BUILTIN int __builtin_amdgcn_ds_bpermute(int byte, int word) {
  using tessera::amdgpu::lanes::Permute;
  return tessera::amdgpu::lanes::meet<int>(tessera::amdgpu::lanes::kPermute,
                                           Permute{byte, static_cast<std::uint32_t>(word)});
}

// --- Order and waves -----------------------------------------------------------------------------

TESSERA_LANES_BUILTIN void __builtin_amdgcn_sched_barrier(int) {}
TESSERA_LANES_BUILTIN void __builtin_amdgcn_s_setprio(int) {}
TESSERA_LANES_BUILTIN void __builtin_amdgcn_fence(unsigned, const char*, const char*) {}
TESSERA_LANES_BUILTIN void __builtin_amdgcn_s_barrier() { tessera::amdgpu::lanes::barrier(); }

// --- Memory --------------------------------------------------------------------------------------

using __amdgpu_buffer_rsrc_t = tessera::amdgpu::lanes::Buffer;

TESSERA_LANES_BUILTIN __amdgpu_buffer_rsrc_t __builtin_amdgcn_make_buffer_rsrc(void* data, short,
                                                                               int size, int) {
  return {static_cast<const char*>(data), static_cast<std::uint32_t>(size)};
}
TESSERA_LANES_BUILTIN std::uint32_t __builtin_amdgcn_raw_buffer_load_b32(
    const __amdgpu_buffer_rsrc_t& buffer, int offset, int further, int) {
  return tessera::amdgpu::lanes::load<1>(buffer, offset, further)[0];
}
TESSERA_LANES_BUILTIN auto __builtin_amdgcn_raw_buffer_load_b64(
    const __amdgpu_buffer_rsrc_t& buffer, int offset, int further, int) {
  return tessera::amdgpu::lanes::load<2>(buffer, offset, further);
}
TESSERA_LANES_BUILTIN auto __builtin_amdgcn_raw_buffer_load_b128(
    const __amdgpu_buffer_rsrc_t& buffer, int offset, int further, int) {
  return tessera::amdgpu::lanes::load<4>(buffer, offset, further);
}

// --- Arithmetic ----------------------------------------------------------------------------------

TESSERA_LANES_BUILTIN std::uint32_t __builtin_amdgcn_perm(std::uint32_t a, std::uint32_t b,
                                                          std::uint32_t selector) {
  return tessera::amdgpu::lanes::permute_bytes(a, b, selector);
}
TESSERA_LANES_BUILTIN float __builtin_amdgcn_exp2f(float x) {
  return x < -126.0f ? 0.0f : __builtin_exp2f(x);
}
TESSERA_LANES_BUILTIN double __builtin_amdgcn_ldexp(double x, int power) {
  return __builtin_ldexp(x, power);
}

// --- Matrix instructions -------------------------------------------------------------------------

#define TESSERA_LANES_MATRIX(builtin, type, count, sums, operation)                      \
  TESSERA_LANES_BUILTIN auto __builtin_amdgcn_##builtin(                                 \
      tessera::amdgpu::lanes::Vector<type, count> a,                                     \
      tessera::amdgpu::lanes::Vector<type, count> b,                                     \
      tessera::amdgpu::lanes::Vector<float, sums> c, int = 0, int = 0, int = 0) {        \
    return tessera::amdgpu::lanes::multiply(tessera::amdgpu::lanes::operation, a, b, c); \
  }
TESSERA_LANES_MATRIX(mfma_f32_32x32x8f16, _Float16, 4, 16, kMfma32x32x8Half)
TESSERA_LANES_MATRIX(mfma_f32_32x32x8bf16_1k, short, 4, 16, kMfma32x32x8Bfloat)
TESSERA_LANES_MATRIX(mfma_f32_32x32x16_f16, _Float16, 8, 16, kMfma32x32x16Half)
TESSERA_LANES_MATRIX(mfma_f32_32x32x16_bf16, __bf16, 8, 16, kMfma32x32x16Bfloat)
TESSERA_LANES_MATRIX(wmma_f32_16x16x16_f16_w32, _Float16, 16, 8, kWmma11Half)
TESSERA_LANES_MATRIX(wmma_f32_16x16x16_bf16_w32, short, 16, 8, kWmma11Bfloat)
TESSERA_LANES_MATRIX(wmma_f32_16x16x16_f16_w32_gfx12, _Float16, 8, 8, kWmma12Half)
TESSERA_LANES_MATRIX(wmma_f32_16x16x16_bf16_w32_gfx12, short, 8, 8, kWmma12Bfloat)
#undef TESSERA_LANES_MATRIX

TESSERA_LANES_BUILTIN auto __builtin_amdgcn_mfma_f32_32x32x2f32(
    float a, float b, tessera::amdgpu::lanes::Vector<float, 16> sums, int, int, int) {
  return tessera::amdgpu::lanes::multiply(tessera::amdgpu::lanes::kMfma32x32x2Single, a, b, sums);
}
