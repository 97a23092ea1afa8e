/* Right results, against loops in double precision. */

#include "check.h"

enum { kBatch = 2, kHeadQ = 4, kHeadK = 2, kSeqQ = 37, kSeqK = 53, kDim = 16, kDimV = 24 };
enum {
  kQuery = kBatch * kHeadQ * kSeqQ * kDim,
  kKey = kBatch * kHeadK * kSeqK * kDim,
  kValue = kBatch * kHeadK * kSeqK * kDimV,
  kOut = kBatch * kHeadQ * kSeqQ * kDimV,
  kRows = kBatch * kHeadQ * kSeqQ
};

/* A problem in buffers of the device, and what it must give. */
typedef struct {
  float q[kQuery], k[kKey], v[kValue], dout[kOut], dlse[kRows];
  double out[kOut], lse[kRows], dq[kQuery], dk[kKey], dv[kValue];
  double scale;
  int left, right; /* row i sees keys from i + diagonal - left to i + diagonal + right */
  int diagonal;
  int key_end[kBatch];
} Case;

static int sees(const Case* c, int b, int i, int j) {
  return j < c->key_end[b] && j >= i + c->diagonal - c->left && j <= i + c->diagonal + c->right;
}

static void row_answer(Case* c, int b, int h, int i) {
  const int row = (b * kHeadQ + h) * kSeqQ + i;
  const int head = b * kHeadK + h / (kHeadQ / kHeadK);
  const float* q = c->q + row * kDim;
  const float* dout = c->dout + row * kDimV;
  double score[kSeqK], sum = 0, maximum = -INFINITY, drow = 0;
  int j, d;
  for (d = 0; d < kDimV; ++d) c->out[row * kDimV + d] = 0;
  for (d = 0; d < kDim; ++d) c->dq[row * kDim + d] = 0;
  for (j = 0; j < kSeqK; ++j) {
    score[j] = 0;
    for (d = 0; d < kDim; ++d) score[j] += (double)q[d] * c->k[(head * kSeqK + j) * kDim + d];
    score[j] *= c->scale;
    if (sees(c, b, i, j) && score[j] > maximum) maximum = score[j];
  }
  for (j = 0; j < kSeqK; ++j) sum += sees(c, b, i, j) ? exp(score[j] - maximum) : 0;
  c->lse[row] = sum > 0 ? maximum + log(sum) : -INFINITY;
  if (!(sum > 0)) return;
  for (j = 0; j < kSeqK; ++j) {
    const double p = sees(c, b, i, j) ? exp(score[j] - c->lse[row]) : 0;
    for (d = 0; d < kDimV; ++d) c->out[row * kDimV + d] += p * c->v[(head * kSeqK + j) * kDimV + d];
  }
  for (d = 0; d < kDimV; ++d) drow += dout[d] * c->out[row * kDimV + d];
  for (j = 0; j < kSeqK; ++j) {
    const double p = sees(c, b, i, j) ? exp(score[j] - c->lse[row]) : 0;
    double dp = 0, ds;
    for (d = 0; d < kDimV; ++d) {
      dp += (double)dout[d] * c->v[(head * kSeqK + j) * kDimV + d];
      c->dv[(head * kSeqK + j) * kDimV + d] += p * dout[d];
    }
    ds = p * (dp - drow + c->dlse[row]) * c->scale;
    for (d = 0; d < kDim; ++d) {
      c->dq[row * kDim + d] += ds * c->k[(head * kSeqK + j) * kDim + d];
      c->dk[(head * kSeqK + j) * kDim + d] += ds * q[d];
    }
  }
}

static void answer(Case* c) {
  int b, h, i;
  memset(c->dk, 0, sizeof c->dk);
  memset(c->dv, 0, sizeof c->dv);
  for (b = 0; b < kBatch; ++b)
    for (h = 0; h < kHeadQ; ++h)
      for (i = 0; i < kSeqQ; ++i) row_answer(c, b, h, i);
}

static void* upload(tessera_buffer** buffer, const void* data, size_t bytes) {
  CHECK_OK(tessera_buffer_create(buffer, bytes, 0));
  CHECK(tessera_buffer_size(*buffer) == bytes);
  if (data != NULL) CHECK_OK(tessera_copy(tessera_buffer_data(*buffer), data, bytes, NULL));
  return tessera_buffer_data(*buffer);
}

static void compare(const char* what, tessera_buffer* buffer, const double* expected,
                    size_t count) {
  float* found = malloc(count * sizeof *found);
  size_t i, wrong = 0;
  CHECK(found != NULL);
  if (found == NULL) return;
  CHECK_OK(tessera_copy(found, tessera_buffer_data(buffer), count * sizeof *found, NULL));
  CHECK_OK(tessera_synchronize(NULL));
  for (i = 0; i < count; ++i) {
    const int same = found[i] == expected[i]; /* infinities */
    if (same || fabs(found[i] - expected[i]) <= 2e-5 * (1 + fabs(expected[i]))) continue;
    if (wrong++ == 0) printf("%s[%zu] is %g, not %g\n", what, i, found[i], expected[i]);
  }
  CHECK(wrong == 0);
  free(found);
}

static const int64_t kQueryShape[4] = {kBatch, kHeadQ, kSeqQ, kDim};
static const int64_t kKeyShape[4] = {kBatch, kHeadK, kSeqK, kDim};
static const int64_t kValueShape[4] = {kBatch, kHeadK, kSeqK, kDimV};
static const int64_t kOutShape[4] = {kBatch, kHeadQ, kSeqQ, kDimV};
static const int64_t kRowShape[4] = {kBatch, kHeadQ, kSeqQ, 1};

enum { kBuffers = 12 };

static tessera_args make_args(const Case* c, tessera_buffer** b) {
  tessera_args args = {.size = sizeof args};
  const int32_t key_end[kBatch] = {c->key_end[0], c->key_end[1]};
  args.query = tessera_bhsd(upload(&b[0], c->q, sizeof c->q), tessera_fp32, kQueryShape);
  args.key = tessera_bhsd(upload(&b[1], c->k, sizeof c->k), tessera_fp32, kKeyShape);
  args.value = tessera_bhsd(upload(&b[2], c->v, sizeof c->v), tessera_fp32, kValueShape);
  args.out = tessera_bhsd(upload(&b[3], NULL, kOut * sizeof(float)), tessera_fp32, kOutShape);
  args.lse = tessera_bhsd(upload(&b[4], NULL, kRows * sizeof(float)), tessera_fp32, kRowShape);
  args.key_end.data = upload(&b[5], key_end, sizeof key_end);
  args.key_end.dtype = tessera_int32;
  args.key_end.count = kBatch;
  args.has_scale = 1;
  args.scale = (float)c->scale;
  args.dout = tessera_bhsd(upload(&b[6], c->dout, sizeof c->dout), tessera_fp32, kOutShape);
  args.dlse = tessera_bhsd(upload(&b[7], c->dlse, sizeof c->dlse), tessera_fp32, kRowShape);
  args.dq = tessera_bhsd(upload(&b[8], NULL, kQuery * sizeof(float)), tessera_fp32, kQueryShape);
  args.dk = tessera_bhsd(upload(&b[9], NULL, kKey * sizeof(float)), tessera_fp32, kKeyShape);
  args.dv = tessera_bhsd(upload(&b[10], NULL, kValue * sizeof(float)), tessera_fp32, kValueShape);
  return args;
}

/* A planned call with a workspace of the program's. */
static void planned(tessera_operation operation, tessera_args args, const tessera_options* options,
                    tessera_buffer** workspace) {
  const tessera_stream stream = {.size = sizeof stream};
  tessera_plan* plan = NULL;
  CHECK_OK(tessera_supports(operation, &args, options));
  CHECK_OK(tessera_plan_create(&plan, operation, &args, options));
  CHECK(plan != NULL);
  CHECK(strlen(tessera_plan_kernel(plan)) > 0);
  CHECK(strstr(tessera_plan_describe(plan), tessera_plan_kernel(plan)) != NULL);
  CHECK(tessera_plan_splits(plan) >= 1);
  CHECK(tessera_plan_realised_dropout(plan) == 0);
  args.workspace_size = tessera_plan_workspace_size(plan);
  args.workspace = upload(workspace, NULL, args.workspace_size);
  CHECK_OK(tessera_plan_execute(plan, &args, &stream));
  CHECK_OK(tessera_synchronize(&stream));
  tessera_plan_destroy(plan);
}

static void run(Case* c, const tessera_options* options) {
  tessera_buffer* b[kBuffers] = {NULL};
  tessera_buffer* more[3] = {NULL};
  tessera_args args = make_args(c, b);
  int i;
  answer(c);

  CHECK_OK(tessera_forward(&args, options, NULL));
  compare("out", b[3], c->out, kOut);
  compare("lse", b[4], c->lse, kRows);

  memset(tessera_buffer_data(b[3]), 0xFF, kOut * sizeof(float)); /* NaN: who left it shows */
  planned(tessera_op_decode, args, options, &more[0]);
  compare("decoded out", b[3], c->out, kOut);
  memset(tessera_buffer_data(b[3]), 0xFF, kOut * sizeof(float));
  CHECK_OK(tessera_decode(&args, options, NULL));
  compare("decoded out", b[3], c->out, kOut);
  memset(tessera_buffer_data(b[3]), 0xFF, kOut * sizeof(float));
  planned(tessera_op_forward, args, options, &more[1]);
  compare("planned out", b[3], c->out, kOut);

  CHECK_OK(tessera_backward(&args, options, NULL));
  compare("dq", b[8], c->dq, kQuery);
  compare("dk", b[9], c->dk, kKey);
  compare("dv", b[10], c->dv, kValue);
  memset(&args.out, 0, sizeof args.out); /* lse alone is kept, then nothing */
  planned(tessera_op_backward, args, options, &more[2]);
  compare("dq without out", b[8], c->dq, kQuery);
  memset(&args.lse, 0, sizeof args.lse);
  CHECK_OK(tessera_backward(&args, options, NULL));
  compare("dk without out and lse", b[9], c->dk, kKey);
  compare("dv without out and lse", b[10], c->dv, kValue);

  for (i = 0; i < kBuffers; ++i) tessera_buffer_destroy(b[i]);
  for (i = 0; i < 3; ++i) tessera_buffer_destroy(more[i]);
}

static void packed(void) {
  /* Two segments with one value each: every row of a segment gives its own segment's value. */
  enum { kTotal = 9, kHeads = 2, kWidth = 8 };
  static float q[kTotal * kHeads * kWidth], v[kTotal * kHeads * kWidth],
      out[kTotal * kHeads * kWidth];
  const int32_t cu_seqlens[3] = {0, 4, kTotal};
  const int64_t shape[4] = {1, kHeads, kTotal, kWidth};
  const tessera_vector segments = {.data = cu_seqlens, .dtype = tessera_int32, .count = 3};
  tessera_args args = {.size = sizeof args,
                       .query = tessera_bshd(q, tessera_fp32, shape),
                       .key = tessera_bshd(q, tessera_fp32, shape),
                       .value = tessera_bshd(v, tessera_fp32, shape),
                       .out = tessera_bshd(out, tessera_fp32, shape),
                       .cu_seqlens_q = segments,
                       .cu_seqlens_k = segments};
  const tessera_options options = {.size = sizeof options, .max_seq_q = 5, .max_seq_k = 5};
  int i, wrong = 0;
  fill(q, sizeof q / sizeof *q, 5);
  for (i = 0; i < kTotal * kHeads * kWidth; ++i) v[i] = i < 4 * kHeads * kWidth ? 1.0f : 2.0f;
  CHECK_OK(tessera_forward(&args, &options, NULL));
  for (i = 0; i < kTotal * kHeads * kWidth; ++i) wrong += fabsf(out[i] - v[i]) > 1e-5f;
  CHECK(wrong == 0);
}

void test_results(void) {
  static Case c;
  tessera_options options = {.size = sizeof options};
  fill(c.q, kQuery, 1);
  fill(c.k, kKey, 2);
  fill(c.v, kValue, 3);
  fill(c.dout, kOut, 4);
  fill(c.dlse, kRows, 5);
  c.scale = 0.75;
  c.left = c.right = 1000;
  c.key_end[0] = kSeqK;
  c.key_end[1] = 29;
  run(&c, NULL);
  run(&c, &options);

  options.mask = tessera_mask_causal;
  options.alignment = tessera_top_left;
  options.deterministic = 1;
  c.right = 0;
  c.diagonal = 0;
  run(&c, &options);

  options.mask = tessera_mask_window;
  options.window_left = c.left = 7;
  options.window_right = c.right = 3;
  run(&c, &options);
  options.window_left = tessera_unbounded;
  c.left = 1000;
  run(&c, &options);

  options.alignment = tessera_bottom_right; /* of the same length in both entries */
  options.window_left = c.left = 7;
  c.key_end[0] = c.key_end[1] = 45;
  c.diagonal = 45 - kSeqQ;
  run(&c, &options);
  packed();
}
