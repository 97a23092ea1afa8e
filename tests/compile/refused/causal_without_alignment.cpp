// expect: give an Alignment: TopLeft or BottomRight
#include <tessera/options.hpp>

#ifdef SOUND
tessera::Mask mask = tessera::Mask::causal(tessera::Alignment::BottomRight);
#else
tessera::Mask mask = tessera::Mask::causal();
#endif
