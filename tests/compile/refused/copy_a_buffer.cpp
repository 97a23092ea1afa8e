// expect: use of deleted function 'tessera::Buffer::Buffer\(const tessera::Buffer&\)'
// expect: deleted
// constructor of 'tessera::Buffer'
#include <utility>

#include <tessera/buffer.hpp>

tessera::Buffer keep(tessera::Buffer& buffer) {
#ifdef SOUND
  return std::move(buffer);
#else
  return buffer;
#endif
}
