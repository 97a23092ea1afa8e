#pragma once
/// Symbol visibility. Everything is hidden unless it carries TESSERA_API.

#if __cplusplus < 202002L
#error "Tessera needs C++20: compile with -std=c++20 or later"
#endif

#if defined(_WIN32)
#error "Tessera does not support Windows: see the support table in README.md"
#else
#define TESSERA_API __attribute__((visibility("default")))
#endif
