// expect: 'const void\*' to 'void\*'
// expect: 'void \*' with an rvalue of type 'const void \*'
#include <tessera/buffer.hpp>

void* data_of(tessera::Buffer& buffer, const tessera::Buffer& read_only) {
#ifdef SOUND
  static_cast<void>(read_only);
  return buffer.data();
#else
  static_cast<void>(buffer);
  return read_only.data();
#endif
}
