// One instruction set's forward kernels of the vector path: compiled once for each, see
// CMakeLists.txt.

#include "backends/kokkos/vector/forward_task.hpp"
#include "backends/kokkos/vector/unit.hpp"

namespace isa = tessera::kokkos::vector::TESSERA_VECTOR_ISA;
using tessera::kokkos::Bf16;
using tessera::kokkos::vector::Flavour;

extern "C" const tessera::kokkos::vector::Unit TESSERA_PASTE(tessera_vector_,
                                                             TESSERA_VECTOR_ISA) = {
    TESSERA_TEXT(TESSERA_VECTOR_ISA),
    isa::kPanel,
    isa::kColumns,
    isa::kKeyBlocks,
#if defined(TESSERA_VECTOR_BF16)
    {{}, {}, {isa::forward_task<Bf16, Flavour::Plain>, isa::forward_task<Bf16, Flavour::General>}}
#else
    {{isa::forward_task<float, Flavour::Plain>, isa::forward_task<float, Flavour::General>},
     {isa::forward_task<tessera::kokkos::Fp16, Flavour::Plain>,
      isa::forward_task<tessera::kokkos::Fp16, Flavour::General>},
     {isa::forward_task<Bf16, Flavour::Plain>, isa::forward_task<Bf16, Flavour::General>}}
#endif
};
