/* Structs of other versions: shorter and longer ones; and the layout that other languages copy. */

#include "check.h"

enum { kSeq = 6, kDim = 8, kCount = kSeq * kDim };

static float q[kCount], out[kCount];
static const int64_t kShape[4] = {1, 1, kSeq, kDim};

/* On 64-bit machines nothing is between the fields. A number below 0 does not compile. */
typedef char tensor_is_80_bytes[sizeof(void*) != 8 || sizeof(tessera_tensor) == 80 ? 1 : -1];
typedef char vector_is_24_bytes[sizeof(void*) != 8 || sizeof(tessera_vector) == 24 ? 1 : -1];
typedef char stream_is_24_bytes[sizeof(void*) != 8 || sizeof(tessera_stream) == 24 ? 1 : -1];
typedef char options_are_72_bytes[sizeof(void*) != 8 || sizeof(tessera_options) == 72 ? 1 : -1];
typedef char args_are_1472_bytes[sizeof(void*) != 8 || sizeof(tessera_args) == 1472 ? 1 : -1];
typedef char
    scale_is_at_968[sizeof(void*) != 8 || offsetof(tessera_args, has_scale) == 968 ? 1 : -1];
typedef char status_is_4_bytes[sizeof(tessera_status) == 4 ? 1 : -1];

/* What a program of a later version would hand over. */
typedef struct {
  tessera_args args;
  uint64_t later;
} LongArgs;
typedef struct {
  tessera_options options;
  unsigned char later[16];
} LongOptions;

static int same_bits(const void* a, const void* b, size_t bytes) {
  return memcmp(a, b, bytes) == 0;
}

static void set(tessera_args* args) {
  args->query = args->key = args->value = tessera_bhsd(q, tessera_fp32, kShape);
  args->out = tessera_bhsd(out, tessera_fp32, kShape);
}

static void inputs(void) {
  static LongArgs longer; /* static: all zero */
  static LongOptions options;
  tessera_args args = {.size = sizeof args};
  float expected[kCount];
  set(&args);
  set(&longer.args);
  CHECK_OK(tessera_forward(&args, NULL, NULL));
  memcpy(expected, out, sizeof out);

  memset(out, 0, sizeof out);
  args.size = offsetof(tessera_args, dout); /* the rest counts as zero, whatever is there */
  memset(&args.bias, 0xFF, sizeof args.bias);
  CHECK_OK(tessera_forward(&args, NULL, NULL));
  CHECK(same_bits(expected, out, sizeof out));

  memset(out, 0, sizeof out);
  longer.args.size = sizeof longer;
  options.options.size = sizeof options;
  CHECK_OK(tessera_forward(&longer.args, &options.options, NULL));
  CHECK(same_bits(expected, out, sizeof out));

  memset(out, 0, sizeof out);
  longer.later = 1;
  CHECK_REFUSED(tessera_forward(&longer.args, NULL, NULL), tessera_unsupported, "",
                "args sets byte 1472 of its 1480");
  longer.later = 0;
  options.later[15] = 1;
  CHECK_REFUSED(tessera_forward(&longer.args, &options.options, NULL), tessera_unsupported, "",
                "options sets byte 87");
  longer.args.size = 0;
  CHECK_REFUSED(tessera_forward(&longer.args, NULL, NULL), tessera_invalid_argument, "args.size",
                "args.size is 0; must be the struct's sizeof");
  longer.args.size = sizeof longer.args - 1;
  CHECK_REFUSED(tessera_forward(&longer.args, NULL, NULL), tessera_invalid_argument, "args.size",
                "1471");
  longer.args.size = SIZE_MAX & ~(size_t)7;
  CHECK_REFUSED(tessera_forward(&longer.args, NULL, NULL), tessera_invalid_argument, "args.size",
                "sizeof");
  CHECK(out[0] == 0);
}

static void outputs(void) {
  static struct {
    tessera_build build;
    uint64_t later;
  } longer;
  struct {
    size_t size;
    const char* version;
    const char* beyond;
  } shorter = {2 * sizeof(size_t), NULL, "as it was"};
  longer.build.size = sizeof longer;
  longer.later = 1;
  CHECK_OK(tessera_build_info(&longer.build));
  CHECK(longer.later == 0 && longer.build.size == sizeof longer);
  CHECK_TEXT(longer.build.version, tessera_version());
  /* NOLINTNEXTLINE(bugprone-casting-through-void): a caller of an older header does this */
  CHECK_OK(tessera_build_info((tessera_build*)(void*)&shorter));
  CHECK_TEXT(shorter.version, tessera_version());
  CHECK_TEXT(shorter.beyond, "as it was");
}

void test_sizes(void) {
  fill(q, kCount, 1);
  inputs();
  outputs();
}
