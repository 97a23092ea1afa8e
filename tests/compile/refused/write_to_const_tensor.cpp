// expect: 'const void ?\*( const)?' to (type )?'float ?\*' casts away qualifiers
#include <tessera/tensor.hpp>

void fill(const tessera::Tensor& out, const tessera::ConstTensor& query) {
#ifdef SOUND
  static_cast<void>(query);
  *static_cast<float*>(out.data) = 0;
#else
  static_cast<void>(out);
  *static_cast<float*>(query.data) = 0;
#endif
}
