// expect: give an Alignment
#include <tessera/options.hpp>

#ifndef SOUND
tessera::Mask mask = 1;
#endif
