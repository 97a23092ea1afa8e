// expect: 'int' to 'tessera::DType'
// expect: 'tessera::DType' with an rvalue of type 'int'
#include <tessera/problem.hpp>

#ifdef SOUND
tessera::TensorSpec spec{.dtype = tessera::DType::bf16};
#else
tessera::TensorSpec spec{.dtype = 2};
#endif
