// expect: 'short unsigned int\*' to 'float\*'
// expect: 'float \*' with an lvalue of type 'unsigned short \*'
#include <tessera/tensor.hpp>

tessera::Tensor make(float* sums, unsigned short* halves) {
#ifdef SOUND
  static_cast<void>(halves);
  return tessera::Tensor::lse(sums, 1, 2, 3);
#else
  static_cast<void>(sums);
  return tessera::Tensor::lse(halves, 1, 2, 3);
#endif
}
