// expect: Tessera needs C\+\+20: compile with -std=c\+\+20 or later
// standard: 17
#include <tessera/version.hpp>
