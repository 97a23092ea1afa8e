// expect: could not convert .* to 'tessera::Plan'
// expect: no matching constructor for initialization of 'tessera::Plan'
#include <tessera/plan.hpp>

tessera::Plan make() {
#ifdef SOUND
  return tessera::plan({});
#else
  return {};
#endif
}
