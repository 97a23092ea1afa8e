// One instruction set's kernels of the vector path: compiled once for each, see CMakeLists.txt.

#include "backends/kokkos/vector/forward_task.hpp"

#define TESSERA_PASTE_(a, b) a##b
#define TESSERA_PASTE(a, b) TESSERA_PASTE_(a, b)
#define TESSERA_TEXT_(a) #a
#define TESSERA_TEXT(a) TESSERA_TEXT_(a)

namespace isa = tessera::kokkos::vector::TESSERA_VECTOR_ISA;
using tessera::kokkos::Bf16;
using tessera::kokkos::Fp16;
using tessera::kokkos::vector::Flavour;

extern "C" const tessera::kokkos::vector::Unit TESSERA_PASTE(tessera_vector_,
                                                             TESSERA_VECTOR_ISA) = {
    TESSERA_TEXT(TESSERA_VECTOR_ISA),
    isa::kPanel,
    {{isa::forward_task<float, Flavour::Plain>, isa::forward_task<float, Flavour::General>},
     {isa::forward_task<Fp16, Flavour::Plain>, isa::forward_task<Fp16, Flavour::General>},
     {isa::forward_task<Bf16, Flavour::Plain>, isa::forward_task<Bf16, Flavour::General>}}};
