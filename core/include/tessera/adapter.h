#ifndef TESSERA_ADAPTER_H
#define TESSERA_ADAPTER_H
/**
 * Bring your own kernel: what a shared library exports so that Tessera's conformance and benchmark
 * programs run it in Tessera's place (`--adapter PATH.so`), on the same cases, judged by the same
 * tolerances and timed by the same clock. examples/blas_adapter.c is one, of a page or two.
 *
 * An adapter needs this header and <tessera/tessera.h>, and does not link libtessera. Arguments are
 * as <tessera/tessera.h> has them, valid, and complete to this version's sizeof; whatever the
 * adapter does not compute it answers with tessera_unsupported, and the case is counted as skipped,
 * not as passed.
 */

#include <tessera/tessera.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What an adapter does. Functions may be null where that is said. None may throw. */
typedef struct tessera_adapter {
  size_t size;      /**< sizeof(tessera_adapter) */
  const char* name; /**< as a file name: letters, digits, '-', '_', '.'; "blas" */

  /** Does it compute this? tessera_ok or tessera_unsupported; reads no data. */
  tessera_status (*supports)(tessera_operation operation, const tessera_args* args,
                             const tessera_options* options);

  /** As tessera_forward, tessera_backward and tessera_decode: null for what it does not have.
   * `options` and `stream` are never null here. Must have finished, or be ordered in the stream,
   * when it returns. */
  tessera_status (*forward)(const tessera_args* args, const tessera_options* options,
                            const tessera_stream* stream);
  tessera_status (*backward)(const tessera_args* args, const tessera_options* options,
                             const tessera_stream* stream);
  tessera_status (*decode)(const tessera_args* args, const tessera_options* options,
                           const tessera_stream* stream);

  /** Text of the calling thread's last call that was not tessera_ok. May be null. */
  const char* (*last_error)(void); /* NOLINT(modernize-redundant-void-arg): C */
} tessera_adapter;

/** The one function that the library exports. The table lives as long as the library is loaded. */
TESSERA_C_API const tessera_adapter* tessera_adapter_table(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TESSERA_ADAPTER_H */
