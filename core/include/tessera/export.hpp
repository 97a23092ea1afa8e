#pragma once
/// Symbol visibility. Everything is hidden unless it carries TESSERA_API.

#if defined(_WIN32)
#error "Tessera does not support Windows: see the support table in README.md"
#else
#define TESSERA_API __attribute__((visibility("default")))
#endif
