// expect: from 'double' to 'tessera::Mask'
#include <tessera/options.hpp>

#ifdef SOUND
tessera::Options options{.dropout = 0.1};
#else
tessera::Options options{0.1};
#endif
