// expect: give an Alignment: TopLeft or BottomRight
#include <tessera/options.hpp>

#ifdef SOUND
tessera::Mask mask = tessera::Mask::window(127, 0, tessera::Alignment::BottomRight);
#else
tessera::Mask mask = tessera::Mask::window(127, 0);
#endif
