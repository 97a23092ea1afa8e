// expect: 'tessera::Problem::softcap' in read-only object
// expect: function 'problem' returns a const value
#include <tessera/plan.hpp>

void change(const tessera::Plan& plan, tessera::Problem& problem) {
#ifdef SOUND
  problem = plan.problem();
  problem.softcap = true;
#else
  static_cast<void>(problem);
  plan.problem().softcap = true;
#endif
}
