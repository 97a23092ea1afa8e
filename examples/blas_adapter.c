// An adapter (<tessera/adapter.h>): attention as one composes it from a BLAS. Per head, the scores
// are a matrix in memory, written by sgemm; then softmax, in place, by all threads; then another
// sgemm. For masks, rows are taken in blocks, so that keys which no row of a block sees cost
// nothing. It computes fp32 with masks, scale, grouped heads and lse, and declines the rest.
//
//     conformance --adapter=libblas_adapter.so
//     tessera_bench --adapter=libblas_adapter.so
//
// It is also what the benchmarks call naive, where a BLAS is found.
#define _POSIX_C_SOURCE 200809L  // NOLINT(bugprone-reserved-identifier): POSIX reserves it
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tessera/adapter.h>

// As every <cblas.h> has it, whatever that file is called and wherever it lies.
enum { kRowMajor = 101, kNoTrans = 111, kTrans = 112 };
void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                 const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);

enum { kBlock = 256, kSlice = 128, kMaxThreads = 256, kMaxSize = 1 << 30 };

static const char* why = "";

static tessera_status decline(const char* text) {
  why = text;
  return tessera_unsupported;
}

static const char* last_error(void) { return why; }

static int fits(const tessera_tensor* t) {
  return t->dtype == tessera_fp32 && t->extent[2] < kMaxSize && t->extent[3] < kMaxSize &&
         t->stride[2] >= t->extent[3] && t->stride[2] < kMaxSize &&
         (t->stride[3] == 1 || t->extent[3] == 1);
}

static tessera_status supports(tessera_operation operation, const tessera_args* args,
                               const tessera_options* options) {
  if (operation == tessera_op_backward) return decline("no gradients");
  if (!fits(&args->query) || !fits(&args->key) || !fits(&args->value) || !fits(&args->out))
    return decline("fp32 only, in rows one after another");
  if (args->query.extent[2] == 0 || args->key.extent[2] == 0) return decline("no empty sequences");
  if (args->softcap != 0 || options->dropout != 0 || args->alibi_slopes.data || args->bias.data ||
      args->boolean_mask.data || args->sinks.data)
    return decline("nothing but masks and scale touches a score");
  if (args->key_begin.data || args->key_end.data || args->query_end.data || args->cu_seqlens_q.data)
    return decline("no ranges, no packed input");
  if (args->query.extent[2] > kMaxSize / args->key.extent[2])
    return decline("no more than 2^30 scores a head");
  if (options->batch_invariant) return decline("bits depend on the shape");
  return tessera_ok;
}

// A block of rows, and what they see: row i sees keys from i + first - left to i + first + right.
typedef struct {
  float* scores;  // [rows, keys]
  float* lse;     // or null
  int64_t lse_stride;
  int64_t rows, keys;
  int64_t first, left, right;
  int64_t key_offset;  // the first key of the block's scores
} Block;

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif
static void
softmax_row(float* s, int64_t n, float* lse) {
  float maximum = s[0];
  double sum = 0;  // in float, equal weights would be rounded the same way every time
  for (int64_t j = 1; j < n; ++j) maximum = s[j] > maximum ? s[j] : maximum;
  for (int64_t j = 0; j < n; ++j) {
    s[j] = expf(s[j] - maximum);
    sum += (double)s[j];
  }
  const float inverse = (float)(1 / sum);
  for (int64_t j = 0; j < n; ++j) s[j] *= inverse;
  *lse = maximum + (float)log(sum);
}

// Which scores of a row are seen: [from, to).
typedef struct {
  int64_t from, to;
} Interval;

static Interval seen(const Block* b, int64_t i) {
  const int64_t first = b->first + i - b->key_offset;
  const int64_t from = clamp(first - b->left, 0, b->keys);
  return (Interval){from, clamp(first + b->right + 1, from, b->keys)};
}

static void softmax_rows(const Block* b, int64_t begin, int64_t end) {
  static const uint32_t kMinusInfinity = 0xFF800000U;
  for (int64_t i = begin; i < end; ++i) {
    float* s = b->scores + i * b->keys;
    const Interval keys = seen(b, i);
    float lse;
    memcpy(&lse, &kMinusInfinity, sizeof lse);
    if (keys.from < keys.to) softmax_row(s + keys.from, keys.to - keys.from, &lse);
    memset(s, 0, (size_t)keys.from * sizeof *s);
    memset(s + keys.to, 0, (size_t)(b->keys - keys.to) * sizeof *s);
    if (b->lse) b->lse[i * b->lse_stride] = lse;
  }
}

typedef struct {
  const Block* block;
  int64_t begin, end;
} Share;

static void* softmax_share(void* data) {
  const Share* share = data;
  softmax_rows(share->block, share->begin, share->end);
  return NULL;
}

// Threads of a moment: a parallel runtime's would spin for some time after it, and take the
// processors from sgemm's.
static void softmax(const Block* b) {
  static int64_t processors = 0;
  if (processors == 0) processors = clamp(sysconf(_SC_NPROCESSORS_ONLN), 1, kMaxThreads);
  const int64_t work = b->rows * b->keys / (1 << 16);  // a thread costs as much as that many scores
  const int64_t count = clamp(work, 1, processors);
  pthread_t threads[kMaxThreads];
  Share shares[kMaxThreads];
  int64_t started = 0;
  for (int64_t i = count - 1; i >= 0; --i) {
    shares[i] = (Share){b, b->rows * i / count, b->rows * (i + 1) / count};
    if (i > 0 && pthread_create(&threads[started], NULL, softmax_share, &shares[i]) == 0)
      ++started;
    else
      softmax_share(&shares[i]);
  }
  while (started > 0) pthread_join(threads[--started], NULL);
}

// A row that sees nothing is 0, even where a weight of 0 met a value that is no number.
static void clear_unseeing(const Block* b, float* out, int64_t stride, int64_t columns) {
  for (int64_t i = 0; i < b->rows; ++i) {
    const Interval keys = seen(b, i);
    if (keys.from == keys.to) memset(out + i * stride, 0, (size_t)columns * sizeof *out);
  }
}

static float* row(const tessera_tensor* t, int64_t batch, int64_t head, int64_t seq) {
  return (float*)t->data + batch * t->stride[0] + head * t->stride[1] + seq * t->stride[2];
}

// The matrix of the scores, kept from call to call: its pages are there already.
static float* score_matrix(size_t count) {
  static float* scores = NULL;
  static size_t room = 0;
  if (count > room) {
    free(scores);
    scores = malloc(count * sizeof *scores);
    room = scores ? count : 0;
  }
  return scores;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static tessera_status locked_forward(const tessera_args* args, const tessera_options* options) {
  const tessera_tensor *q = &args->query, *k = &args->key, *v = &args->value, *out = &args->out;
  const int64_t seq_q = q->extent[2], seq_k = k->extent[2];
  const int64_t unbounded = INT64_MAX / 4;
  int64_t left = unbounded, right = options->mask == tessera_mask_causal ? 0 : unbounded;
  if (options->mask == tessera_mask_window) {
    left = options->window_left < 0 ? left : clamp(options->window_left, 0, unbounded);
    right = options->window_right < 0 ? right : clamp(options->window_right, 0, unbounded);
  }
  const int64_t diagonal = options->alignment == tessera_bottom_right ? seq_k - seq_q : 0;
  const int64_t block = options->mask == tessera_mask_none ? seq_q : kBlock;
  const float scale = args->has_scale ? args->scale : 1 / sqrtf((float)q->extent[3]);
  float* scores = score_matrix((size_t)(seq_q * seq_k));
  if (!scores) return tessera_out_of_memory;

  for (int64_t batch = 0; batch < q->extent[0]; ++batch) {
    for (int64_t head = 0; head < q->extent[1]; ++head) {
      const int64_t head_k = head / (q->extent[1] / k->extent[1]);
      for (int64_t begin = 0; begin < seq_q; begin += block) {
        const int64_t rows = clamp(block, 0, seq_q - begin), first = begin + diagonal;
        const int64_t from = clamp(first - left, 0, seq_k);
        const int64_t to = clamp(first + rows - 1 + right + 1, from, seq_k);
        const Block b = {.scores = scores + begin * seq_k,
                         .lse = args->lse.data ? row(&args->lse, batch, head, begin) : NULL,
                         .lse_stride = args->lse.stride[2],
                         .rows = rows,
                         .keys = to - from,
                         .first = first,
                         .left = left,
                         .right = right,
                         .key_offset = from};
        const int m = (int)rows, n = (int)b.keys, ld = n > 0 ? n : 1;
        cblas_sgemm(kRowMajor, kNoTrans, kTrans, m, n, (int)q->extent[3], scale,
                    row(q, batch, head, begin), (int)q->stride[2], row(k, batch, head_k, from),
                    (int)k->stride[2], 0, b.scores, ld);
        softmax(&b);
        // In slices: some BLAS add all keys in one chain, whose rounding grows with their number.
        int at = 0;
        do {
          const int keys = n - at < kSlice ? n - at : kSlice;
          cblas_sgemm(kRowMajor, kNoTrans, kNoTrans, m, (int)v->extent[3], keys, 1, b.scores + at,
                      ld, row(v, batch, head_k, from + at), (int)v->stride[2], at == 0 ? 0 : 1,
                      row(out, batch, head, begin), (int)out->stride[2]);
          at += kSlice;
        } while (at < n);
        clear_unseeing(&b, row(out, batch, head, begin), out->stride[2], v->extent[3]);
      }
    }
  }
  return tessera_ok;
}

static tessera_status forward(const tessera_args* args, const tessera_options* options,
                              const tessera_stream* stream) {
  const tessera_status status = supports(tessera_op_forward, args, options);
  if (status != tessera_ok) return status;
  (void)stream;  // the host has one
  pthread_mutex_lock(&lock);
  const tessera_status result = locked_forward(args, options);
  pthread_mutex_unlock(&lock);
  return result;
}

const tessera_adapter* tessera_adapter_table(void) {
  static const tessera_adapter table = {.size = sizeof table,
                                        .name = "blas",
                                        .supports = supports,
                                        .forward = forward,
                                        .decode = forward,
                                        .last_error = last_error};
  return &table;
}
