// expect: anything
#include <tessera/options.hpp>

tessera::Mask mask = tessera::Mask::none();
