#pragma once
// Element types in memory, to and from the fp32 that is computed in. The vector units include this:
// every function is inlined, none may be left for another object to be linked with.

#include <cstdint>

#include "core/kernel/convert.hpp"
#include "core/kernel/macros.hpp"

namespace tessera::kokkos {

struct Fp32 {
  float value;
  TESSERA_FN float load() const { return value; }
  TESSERA_FN void store(float x) { value = x; }
};

struct Fp16 {
  std::uint16_t bits;
  TESSERA_FN float load() const { return kernel::fp16_to_float(bits); }
  TESSERA_FN void store(float x) { bits = kernel::float_to_fp16(x); }
};

struct Bf16 {
  std::uint16_t bits;
  TESSERA_FN float load() const { return kernel::bf16_to_float(bits); }
  TESSERA_FN void store(float x) { bits = kernel::float_to_bf16(x); }
};

}  // namespace tessera::kokkos
