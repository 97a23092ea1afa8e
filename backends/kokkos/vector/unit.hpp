#pragma once
// Names of a unit's tables.

#define TESSERA_PASTE_(a, b) a##b
#define TESSERA_PASTE(a, b) TESSERA_PASTE_(a, b)
#define TESSERA_TEXT_(a) #a
#define TESSERA_TEXT(a) TESSERA_TEXT_(a)
