/* An adapter of Tessera itself, through its C interface: what an adapter is given must be all that
 * a right answer needs, gradients included. */
#include <stddef.h>
#include <tessera/adapter.h>

const tessera_adapter* tessera_adapter_table(void) {
  static const tessera_adapter table = {.size = sizeof table,
                                        .name = "tessera",
                                        .supports = tessera_supports,
                                        .forward = tessera_forward,
                                        .backward = tessera_backward,
                                        .decode = tessera_decode,
                                        .last_error = tessera_last_error};
  return &table;
}
