// Compiled without optimisation: the object must define these functions and nothing else (see
// symbols.cmake).

#include "tests/unit/kernel/instantiate.hpp"

namespace tessera::testing {

void compute_on_host(const kernel::ForwardArguments& a, kernel::Index task, kernel::Index* prefix,
                     float (&out)[2]);
void compute_on_host(const kernel::ForwardArguments& a, kernel::Index task, kernel::Index* prefix,
                     float (&out)[2]) {
  kernel::compute_task<kernel::ScalarLanes>(a, task, prefix, 0, out);
}

}  // namespace tessera::testing
