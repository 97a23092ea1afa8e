#pragma once
// Against too many registers: what the compiler would compute before a loop and keep through it is
// computed, or read, anew where it is used.

#include <cstdint>

#include "backends/hip/common/gcn.hip.hpp"

namespace tessera::hip {

// The same number, of which the compiler does not know that it is the same each time.
TESSERA_DEVICE int anew(int x) {
  asm volatile("" : "+v"(x));
  return x;
}
TESSERA_DEVICE std::uint32_t anew(std::uint32_t x) {
  asm volatile("" : "+v"(x));
  return x;
}

// Likewise of one that all lanes share.
TESSERA_DEVICE std::int64_t uniform_anew(std::int64_t x) {
  asm volatile("" : "+s"(x));
  return x;
}

// A number that all lanes share, of which the compiler does not know what it is.
TESSERA_DEVICE float opaque(float x) {
  asm("" : "+s"(x));
  return x;
}

// As kernel_argument, and what is read through it is read again.
template <class Parameters>
TESSERA_DEVICE const Parameters& argument_anew() {
  auto* argument = __builtin_amdgcn_kernarg_segment_ptr();
  asm volatile("" : "+s"(argument));
  return *(const Parameters*)argument;  // of another address space
}

}  // namespace tessera::hip
