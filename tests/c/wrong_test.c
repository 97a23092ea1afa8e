/* Wrong arguments: status, the argument's name, the text; and outputs stay as they were. */

#include <limits.h>
#include <stdint.h>

#include "check.h"

enum { kSeq = 6, kDim = 8, kCount = kSeq * kDim };

static float q[kCount], out[kCount], lse[kSeq], dq[kCount];
static const int64_t kShape[4] = {1, 1, kSeq, kDim};
static const int64_t kRowShape[4] = {1, 1, kSeq, 1};

static tessera_args good(void) {
  tessera_args args = {.size = sizeof args,
                       .query = tessera_bhsd(q, tessera_fp32, kShape),
                       .key = tessera_bhsd(q, tessera_fp32, kShape),
                       .value = tessera_bhsd(q, tessera_fp32, kShape),
                       .out = tessera_bhsd(out, tessera_fp32, kShape),
                       .lse = tessera_bhsd(lse, tessera_fp32, kRowShape)};
  return args;
}

static void clear(void) {
  int i;
  for (i = 0; i < kCount; ++i) out[i] = dq[i] = -7;
  for (i = 0; i < kSeq; ++i) lse[i] = -7;
}

static void check_untouched(void) {
  int i, touched = 0;
  for (i = 0; i < kCount; ++i) touched += out[i] != -7 || dq[i] != -7;
  for (i = 0; i < kSeq; ++i) touched += lse[i] != -7;
  CHECK(touched == 0);
}

/* Every function that takes arguments refuses them in the same words. */
static void refused(const tessera_args* args, const tessera_options* options, tessera_status status,
                    const char* argument, const char* words) {
  tessera_plan* plan = (tessera_plan*)&plan; /* not null, to see that it becomes so */
  clear();
  CHECK_REFUSED(tessera_forward(args, options, NULL), status, argument, words);
  CHECK_REFUSED(tessera_decode(args, options, NULL), status, argument, words);
  CHECK_REFUSED(tessera_supports(tessera_op_forward, args, options), status, argument, words);
  CHECK_REFUSED(tessera_plan_create(&plan, tessera_op_forward, args, options), status, argument,
                words);
  CHECK(plan == NULL);
  check_untouched();
}

#define REFUSED(change, argument, words)                             \
  do {                                                               \
    tessera_args args = good();                                      \
    change;                                                          \
    refused(&args, NULL, tessera_invalid_argument, argument, words); \
  } while (0)

#define REFUSED_OPTION(change, argument, words)                          \
  do {                                                                   \
    const tessera_args args = good();                                    \
    tessera_options options = {.size = sizeof options};                  \
    change;                                                              \
    refused(&args, &options, tessera_invalid_argument, argument, words); \
  } while (0)

static tessera_vector indices(int64_t count) {
  static const int32_t numbers[4] = {0, 1, 1, 1};
  const tessera_vector vector = {.data = numbers, .dtype = tessera_int32, .count = count};
  return vector;
}

/* What only execution looks at, in this interface's words. */
static void executed(void) {
  static double scratch[16];
  tessera_args args = good();
  uintptr_t aligned = ((uintptr_t)scratch + 63) / 64 * 64;
  clear();
  args.key_end = indices(3);
  CHECK_REFUSED(tessera_forward(&args, NULL, NULL), tessera_invalid_argument, "key_end.count",
                "key_end.count is 3; must equal query.extent.batch");
  args = good();
  args.workspace_size = 1;
  CHECK_REFUSED(tessera_forward(&args, NULL, NULL), tessera_invalid_argument, "workspace",
                "workspace is null; must point to workspace_size (1) bytes");
  args.workspace = (void*)aligned;
  CHECK_REFUSED(tessera_forward(&args, NULL, NULL), tessera_invalid_argument, "workspace_size",
                "workspace_size is 1; must be at least tessera_plan_workspace_size (");
  check_untouched();
}

static void arguments(void) {
  tessera_args none = {.size = sizeof none};
  refused(NULL, NULL, tessera_invalid_argument, "args", "args is null");
  refused(&none, NULL, tessera_invalid_argument, "query", "query is missing");
  REFUSED(args.key.extent[3] = 7, "key.extent.dim", "key.extent.dim is 7; must equal query");
  REFUSED(args.value.dtype = tessera_bf16, "value.dtype", "bf16");
  REFUSED(args.query.dtype = 256, "query.dtype", "query.dtype is 256");
  REFUSED(args.query.dtype = -1, "query.dtype", "query.dtype is -1");
  REFUSED(args.out.data = NULL, "out.data", "out.data is null");
  REFUSED(args.out.stride[2] = 0, "out.stride", "out.stride is [48, 48, 0, 1]");
  REFUSED(args.lse.reserved = 1, "lse.reserved", "must be 0");
  REFUSED(args.bias.reserved = 1, "bias.reserved", "must be 0");
  REFUSED(args.reserved = 3, "args.reserved", "args.reserved is 3");
  REFUSED(args.key_end.count = 1, "key_end.data", "key_end.data is null");
  REFUSED((args.key_end.count = 1, args.key_end.data = q), "key_end.dtype",
          "key_end.dtype is fp32; must be int32");
  REFUSED((args.key_end.dtype = tessera_int64, args.key_end.data = q), "key_end.dtype",
          "key_end.dtype is int64; must be int32");
  REFUSED((args.query_end = indices(-2)), "query_end.count", "query_end.count is -2; must be at");
  REFUSED((args.cu_seqlens_q = indices(3), args.cu_seqlens_k = indices(2)), "cu_seqlens_k.count",
          "must equal cu_seqlens_q.count (3)");
  REFUSED(args.scale = 0.5f, "scale", "set has_scale to 1");
  REFUSED(args.has_scale = 2, "has_scale", "must be 0 or 1");
  REFUSED((args.has_scale = 1, args.scale = NAN), "scale", "must be finite");
  REFUSED(args.softcap = -1, "softcap", "at least 0");
}

static void options(void) {
  REFUSED_OPTION(options.mask = tessera_mask_causal, "options.alignment", "there is no default");
  REFUSED_OPTION(options.mask = 3, "options.mask", "options.mask is 3");
  REFUSED_OPTION(options.alignment = tessera_top_left, "options.alignment", "has no diagonal");
  REFUSED_OPTION(options.alignment = 9, "options.alignment", "options.alignment is 9");
  REFUSED_OPTION(options.window_left = 4, "options.window_left", "unless options.mask");
  REFUSED_OPTION(options.window_right = 4, "options.window_right", "unless options.mask");
  REFUSED_OPTION((options.mask = tessera_mask_window, options.alignment = tessera_top_left,
                  options.window_left = -2),
                 "options.window_left", "options.window_left is -2");
  REFUSED_OPTION(options.dropout = 1.5, "options.dropout", "1.5");
  REFUSED_OPTION(options.accumulate = 2, "options.accumulate", "options.accumulate is 2");
  REFUSED_OPTION(options.deterministic = -1, "options.deterministic", "must be 0 or 1");
  REFUSED_OPTION(options.batch_invariant = 2, "options.batch_invariant", "must be 0 or 1");
  REFUSED_OPTION(options.reserved = 1, "options.reserved", "must be 0");
  REFUSED_OPTION(options.max_seq_q = 5, "options.max_seq_q", "options.max_seq_q is 5");
}

static void backward(void) {
  tessera_args args = good();
  clear();
  args.dq = tessera_bhsd(dq, tessera_fp32, kShape);
  CHECK_REFUSED(tessera_backward(&args, NULL, NULL), tessera_invalid_argument, "dout",
                "dout is missing");
  args.dout = tessera_bhsd(q, tessera_fp32, kShape);
  CHECK_REFUSED(tessera_backward(&args, NULL, NULL), tessera_invalid_argument, "dk",
                "dk is missing");
  check_untouched();
}

static void unsupported(void) {
  const int64_t wide[4] = {1, 1, 1, 1024};
  static float data[1024], result[1024];
  const tessera_args args = {.size = sizeof args,
                             .query = tessera_bhsd(data, tessera_fp32, wide),
                             .key = tessera_bhsd(data, tessera_fp32, wide),
                             .value = tessera_bhsd(data, tessera_fp32, wide),
                             .out = tessera_bhsd(result, tessera_fp32, wide)};
  result[0] = -7;
  CHECK_REFUSED(tessera_forward(&args, NULL, NULL), tessera_unsupported, "", "1024");
  CHECK_REFUSED(tessera_supports(tessera_op_forward, &args, NULL), tessera_unsupported, "", "1024");
  CHECK(result[0] == -7);
}

static void plans(void) {
  tessera_args args = good();
  tessera_plan* plan = NULL;
  tessera_stream stream = {.size = sizeof stream};
  const int64_t shorter[4] = {1, 1, kSeq - 1, kDim};
  clear();
  CHECK_REFUSED(tessera_plan_create(NULL, tessera_op_forward, &args, NULL),
                tessera_invalid_argument, "plan", "plan is null");
  CHECK_REFUSED(tessera_plan_create(&plan, 3, &args, NULL), tessera_invalid_argument, "operation",
                "operation is 3");
  CHECK_REFUSED(tessera_plan_execute(NULL, &args, NULL), tessera_invalid_argument, "plan",
                "plan is null");
  CHECK_OK(tessera_plan_create(&plan, tessera_op_forward, &args, NULL));
  CHECK_REFUSED(tessera_plan_execute(plan, NULL, NULL), tessera_invalid_argument, "args",
                "args is null");
  args.key = tessera_bhsd(q, tessera_fp32, shorter);
  args.value = args.key;
  CHECK_REFUSED(tessera_plan_execute(plan, &args, NULL), tessera_invalid_argument, "key.extent.seq",
                "is 5");
  args = good();
  stream.device = INT_MAX;
  CHECK_REFUSED(tessera_plan_execute(plan, &args, &stream), tessera_invalid_argument,
                "stream.device", "2147483647");
  stream.device = 0;
  stream.reserved = 1;
  CHECK_REFUSED(tessera_plan_execute(plan, &args, &stream), tessera_invalid_argument,
                "stream.reserved", "must be 0");
  check_untouched();
  tessera_plan_destroy(plan);
  tessera_plan_destroy(NULL);
  CHECK(tessera_plan_workspace_size(NULL) == 0 && tessera_plan_splits(NULL) == 0);
  CHECK(tessera_plan_realised_dropout(NULL) == 0);
  CHECK_TEXT(tessera_plan_kernel(NULL), "");
  CHECK_TEXT(tessera_plan_describe(NULL), "");
}

static void memory(void) {
  tessera_buffer* buffer = (tessera_buffer*)&buffer;
  char bytes[8] = {0};
  CHECK_REFUSED(tessera_buffer_create(&buffer, 8, -1), tessera_invalid_argument, "device", "-1");
  CHECK(buffer == NULL);
  CHECK_REFUSED(tessera_buffer_create(NULL, 8, 0), tessera_invalid_argument, "buffer", "null");
  CHECK_REFUSED(tessera_buffer_create(&buffer, SIZE_MAX / 2, 0), tessera_device_error, "", "");
  CHECK(buffer == NULL);
  CHECK(tessera_buffer_data(NULL) == NULL && tessera_buffer_size(NULL) == 0);
  tessera_buffer_destroy(NULL);
  CHECK_REFUSED(tessera_copy(NULL, bytes, 8, NULL), tessera_invalid_argument, "destination",
                "null");
  CHECK_REFUSED(tessera_copy(bytes, bytes + 4, 4 + 1, NULL), tessera_invalid_argument,
                "destination", "overlap");
  CHECK_REFUSED(tessera_device_info(-1, NULL), tessera_invalid_argument, "device", "-1");
  CHECK_REFUSED(tessera_device_count(NULL), tessera_invalid_argument, "count", "null");
  CHECK_REFUSED(tessera_build_info(NULL), tessera_invalid_argument, "build", "null");
}

void test_wrong(void) {
  fill(q, kCount, 1);
  arguments();
  executed();
  options();
  backward();
  unsupported();
  plans();
  memory();
}
