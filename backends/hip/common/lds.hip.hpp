#pragma once
// LDS: where it is declared, and gfx950's instructions that bring numbers there and take them.

#include <cstdint>

#include "backends/hip/common/gcn.hip.hpp"

// A variable of the work-group's, in a function.
#define TESSERA_HIP_LDS(Type, name, alignment) \
  __attribute__((shared, aligned(alignment))) static Type name

namespace tessera::hip {

#if defined(__gfx950__)

// 16 bytes a lane from memory to LDS, where they follow one another from byte `lds` on; the wave
// waits for them with wait_for_loads. In assembly, because clang would make every later read of
// LDS wait for all of them. What it would see to is seen to here: m0, which is nobody else's, must
// be set one instruction before, and scalars that vector instructions wrote five before (`settled`:
// none of these has been).
template <bool kSettled>
TESSERA_DEVICE void load_to_lds(std::uint32_t lds, __amdgpu_buffer_rsrc_t buffer,
                                std::uint32_t offset, std::uint32_t further) {
  asm volatile(
      "s_mov_b32 m0, %0\n\t"
      "s_nop %4\n\t"
      "buffer_load_dwordx4 %1, %2, %3 offen lds" ::"s"(lds),
      "v"(offset), "s"(buffer), "s"(further), "n"(kSettled ? 0 : 4)
      : "memory");
}
// Until only the last kLater of the wave's loads may be on their way.
template <int kLater>
TESSERA_DEVICE void wait_for_loads() {
  static_assert(kLater < 64);
  asm volatile("s_waitcnt vmcnt(%0)" ::"n"(kLater) : "memory");
}
TESSERA_DEVICE std::uint32_t lds_address(const std::uint16_t* in) {
  return static_cast<std::uint32_t>(
      reinterpret_cast<std::uintptr_t>((__attribute__((address_space(3))) const std::uint16_t*)in));
}
// Of 16 lanes lane p reads four numbers; lane l gets number l % 4 of lanes 4·i + l / 4, i < 4.
TESSERA_DEVICE Words2 read_transposed(const std::uint16_t* from) {
  using Numbers = short __attribute__((ext_vector_type(4)));
  using InLds = __attribute__((address_space(3))) Numbers;
  return __builtin_bit_cast(Words2, __builtin_amdgcn_ds_read_tr16_b64_v4i16((InLds*)from));
}

#endif

}  // namespace tessera::hip
