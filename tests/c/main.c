#include "check.h"

long checks = 0, failures = 0;

void fill(float* data, size_t count, unsigned seed) {
  uint32_t state = seed * 2654435761u + 1u;
  size_t i;
  for (i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    data[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
  }
}

int main(void) {
  test_results();
  test_wrong();
  test_sizes();
  test_rest();
  printf("%ld checks, %ld failed\n", checks, failures);
  return failures == 0 && checks > 0 ? 0 : 1;
}
