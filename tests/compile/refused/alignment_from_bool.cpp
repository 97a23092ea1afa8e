// expect: from 'bool' to 'tessera::Alignment'
#include <tessera/options.hpp>

#ifdef SOUND
tessera::Mask mask = tessera::Mask::causal(tessera::Alignment::TopLeft);
#else
tessera::Mask mask = tessera::Mask::causal(true);
#endif
