// expect: 'const tessera::Buffer&' from expression of type 'int'
// expect: from 'int' to 'const tessera::Buffer'
#include <tessera/buffer.hpp>

void fill(const tessera::Buffer& buffer);

void run() {
#ifdef SOUND
  fill(tessera::Buffer(4096));
#else
  fill(4096);
#endif
}
