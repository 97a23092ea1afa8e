#pragma once
// AMD's instructions, one function each. No vendor header: clang's own builtins.

#include <cstdint>

#include "core/kernel/lanes.hpp"
#include "core/kernel/macros.hpp"

#define TESSERA_DEVICE __attribute__((device)) inline __attribute__((always_inline))

// Before a kernel's declaration: threads of its work-groups, and waves that a SIMD unit must hold
// at once, which bounds the registers of each.
#define TESSERA_HIP_KERNEL(threads, waves) \
  __attribute__((global, amdgpu_flat_work_group_size(threads, threads), amdgpu_waves_per_eu(waves)))

namespace tessera::hip {

// --- Who we are ------------------------------------------------------------------------------

#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
inline constexpr int kWave = 64;
#else
inline constexpr int kWave = 32;
#endif

TESSERA_DEVICE int thread() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
TESSERA_DEVICE std::uint32_t group() { return __builtin_amdgcn_workgroup_id_x(); }
TESSERA_DEVICE int lane() { return thread() % kWave; }
// The same in all lanes, and known to be.
TESSERA_DEVICE int wave() { return __builtin_amdgcn_readfirstlane(thread() / kWave); }

// The kernel's one argument, where the launch put it. Read through this and not as a parameter, it
// stays there until something of it is used.
template <class Parameters>
TESSERA_DEVICE const Parameters& kernel_argument() {
  return *(const Parameters*)__builtin_amdgcn_kernarg_segment_ptr();  // of another address space
}

// A value that is the same in all lanes, in scalar registers: what was loaded from memory the
// compiler keeps a copy a lane of.
template <class T>
TESSERA_DEVICE T uniform(const T& value) {
  static_assert(sizeof(T) % 4 == 0);
  struct Raw {
    int word[sizeof(T) / 4];
  };
  Raw raw = __builtin_bit_cast(Raw, value);
  TESSERA_UNROLL
  for (int& word : raw.word) word = __builtin_amdgcn_readfirstlane(word);
  return __builtin_bit_cast(T, raw);
}

// --- Vectors of registers --------------------------------------------------------------------

template <int kCount>
using Words = std::uint32_t __attribute__((ext_vector_type(kCount)));
using Words2 = Words<2>;
using Words4 = Words<4>;
using Pair = float __attribute__((ext_vector_type(2)));

// --- Memory ----------------------------------------------------------------------------------

// A buffer is an address with a length: a load beyond it gives 0. Ours end 2^31 bytes on.
inline constexpr std::uint32_t kBeyondBuffer = 0x80000000u;
#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
inline constexpr int kBufferFlags = 0x00020000;  // the descriptor's last word: 32-bit data
#else
inline constexpr int kBufferFlags = 0x31004000;
#endif

TESSERA_DEVICE __amdgpu_buffer_rsrc_t buffer_of(const void* data) {
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<void*>(data), 0,
                                           static_cast<int>(kBeyondBuffer), kBufferFlags);
}
// 4, 8 or 16 bytes, `offset` bytes on, and `further` bytes, the same in all lanes.
template <int kCount>
TESSERA_DEVICE Words<kCount> load_words(__amdgpu_buffer_rsrc_t buffer, std::uint32_t offset,
                                        std::uint32_t further) {
  const int at = static_cast<int>(offset), more = static_cast<int>(further);
  if constexpr (kCount == 4) {
    return __builtin_amdgcn_raw_buffer_load_b128(buffer, at, more, 0);
  } else if constexpr (kCount == 2) {
    return __builtin_amdgcn_raw_buffer_load_b64(buffer, at, more, 0);
  } else {
    return __builtin_amdgcn_raw_buffer_load_b32(buffer, at, more, 0);
  }
}
TESSERA_DEVICE Words4 load_words4(__amdgpu_buffer_rsrc_t buffer, std::uint32_t offset) {
  return load_words<4>(buffer, offset, 0);
}

// --- Arithmetic ------------------------------------------------------------------------------

// The hardware's 2^x: relative error 2^-23, results below 2^-126 are 0.
struct GcnLanes : kernel::ScalarLanes {
  TESSERA_FN static float exp2(float x) {
#if defined(__HIP_DEVICE_COMPILE__)
    return __builtin_amdgcn_exp2f(x);
#else
    return kernel::ScalarLanes::exp2(x);
#endif
  }
};

// The larger; NaN never wins.
TESSERA_DEVICE float larger(float a, float b) { return __builtin_fmaxf(a, b); }

// --- Between lanes ---------------------------------------------------------------------------

// Does it hold in a lane of the wave?
TESSERA_DEVICE bool any(bool p) {
#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
  return __builtin_amdgcn_ballot_w64(p) != 0;
#else
  return __builtin_amdgcn_ballot_w32(p) != 0;
#endif
}

// The word of the lane in the same place of the other half of the wave.
TESSERA_DEVICE std::uint32_t other_half(std::uint32_t word) {
  const int from = (lane() ^ (kWave / 2)) * 4;
  return static_cast<std::uint32_t>(__builtin_amdgcn_ds_bpermute(from, static_cast<int>(word)));
}
TESSERA_DEVICE float other_half(float x) {
  return __builtin_bit_cast(float, other_half(__builtin_bit_cast(std::uint32_t, x)));
}

// --- Order -----------------------------------------------------------------------------------

// No instruction moves over it: what is between two of them has the registers to itself.
TESSERA_DEVICE void keep_order() { __builtin_amdgcn_sched_barrier(0); }

// Which of a SIMD unit's waves goes first.
template <int kPriority>
TESSERA_DEVICE void set_priority() {
  __builtin_amdgcn_s_setprio(kPriority);
}

// --- Between waves ---------------------------------------------------------------------------

// All of the work-group's waves, whose accesses to LDS before it are done for those after it.
TESSERA_DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

}  // namespace tessera::hip
