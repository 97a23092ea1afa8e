// One instruction set's decode of the vector path: compiled once for each, see CMakeLists.txt.

#include "backends/kokkos/vector/decode_task.hpp"
#include "backends/kokkos/vector/unit.hpp"

namespace isa = tessera::kokkos::vector::TESSERA_VECTOR_ISA;
using tessera::kokkos::Bf16;
using tessera::kokkos::Fp16;

extern "C" const tessera::kokkos::vector::DecodeUnit TESSERA_PASTE(tessera_vector_decode_,
                                                                   TESSERA_VECTOR_ISA) = {
    {isa::decode_task<float>, isa::decode_task<Fp16>, isa::decode_task<Bf16>},
    {isa::decode_merge<float>, isa::decode_merge<Fp16>, isa::decode_merge<Bf16>}};
