// expect: 'const void\*' to 'void\*'
// expect: 'void \*' with an lvalue of type 'const void \*'
#include <tessera/tensor.hpp>

tessera::Tensor make(void* data, const void* read_only) {
#ifdef SOUND
  static_cast<void>(read_only);
  return tessera::Tensor::bhsd(data, tessera::DType::fp32, {.seq = 4, .dim = 8});
#else
  static_cast<void>(data);
  return tessera::Tensor::bhsd(read_only, tessera::DType::fp32, {.seq = 4, .dim = 8});
#endif
}
