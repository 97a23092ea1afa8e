// expect: from 'void\*' to 'tessera::Stream'
// expect: 'void \*' to function return type 'tessera::Stream'
#include <tessera/stream.hpp>

tessera::Stream make(void* native) {
#ifdef SOUND
  return tessera::Stream::from_native(native);
#else
  return native;
#endif
}
