// expect: 'const tessera::Support' and 'int'
#include <tessera/plan.hpp>

bool ask(const tessera::Support& support) {
#ifdef SOUND
  return static_cast<bool>(support);
#else
  return support + 1 == 2;
#endif
}
