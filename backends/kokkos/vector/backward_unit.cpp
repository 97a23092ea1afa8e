// One instruction set's gradients of the vector path: compiled once for each, see CMakeLists.txt.

#include "backends/kokkos/vector/backward_task.hpp"
#include "backends/kokkos/vector/unit.hpp"

namespace isa = tessera::kokkos::vector::TESSERA_VECTOR_ISA;
using tessera::kokkos::Bf16;
using tessera::kokkos::Fp16;
using tessera::kokkos::vector::Flavour;

extern "C" const tessera::kokkos::vector::BackwardUnit TESSERA_PASTE(tessera_vector_backward_,
                                                                     TESSERA_VECTOR_ISA) = {
    {isa::rows_task<float>, isa::rows_task<Fp16>, isa::rows_task<Bf16>},
    {{isa::backward_task<float, Flavour::Plain>, isa::backward_task<float, Flavour::General>},
     {isa::backward_task<Fp16, Flavour::Plain>, isa::backward_task<Fp16, Flavour::General>},
     {isa::backward_task<Bf16, Flavour::Plain>, isa::backward_task<Bf16, Flavour::General>}},
    {isa::keys_task<float>, isa::keys_task<Fp16>, isa::keys_task<Bf16>},
    {isa::bias_task<float>, isa::bias_task<Fp16>, isa::bias_task<Bf16>}};
