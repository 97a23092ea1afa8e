#ifndef TESSERA_TESTS_C_CHECK_H
#define TESSERA_TESTS_C_CHECK_H
/* A test in C99: functions that check, counted. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/adapter.h>
#include <tessera/tessera.h>

extern long checks, failures;

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    ++checks;                                                                                   \
    if (!(condition)) {                                                                         \
      ++failures;                                                                               \
      printf("%s:%d: failed: %s (%s)\n", __FILE__, __LINE__, #condition, tessera_last_error()); \
    }                                                                                           \
  } while (0)

#define CHECK_OK(call) CHECK((call) == tessera_ok)

#define CHECK_TEXT(text, expected)                                                     \
  do {                                                                                 \
    const char* text_ = (text);                                                        \
    ++checks;                                                                          \
    if (strcmp(text_, (expected)) != 0) {                                              \
      ++failures;                                                                      \
      printf("%s:%d: is \"%s\", not \"%s\"\n", __FILE__, __LINE__, text_, (expected)); \
    }                                                                                  \
  } while (0)

/* The call is refused with that status, about that argument, and its text holds those words. */
#define CHECK_REFUSED(call, wanted_status, wanted_argument, words)                            \
  do {                                                                                        \
    CHECK((call) == (wanted_status));                                                         \
    CHECK_TEXT(tessera_last_error_argument(), wanted_argument);                               \
    ++checks;                                                                                 \
    if (strstr(tessera_last_error(), (words)) == NULL) {                                      \
      ++failures;                                                                             \
      printf("%s:%d: \"%s\" does not say \"%s\"\n", __FILE__, __LINE__, tessera_last_error(), \
             (words));                                                                        \
    }                                                                                         \
  } while (0)

/* Numbers in [-1, 1) that every run gives again. */
void fill(float* data, size_t count, unsigned seed);

/* The groups of tests. */
void test_results(void);
void test_wrong(void);
void test_sizes(void);
void test_rest(void);

#endif
