/* An adapter of plain loops, fp32 forward without any option: right as it is (FAULT 0), wrong in
 * one way otherwise. What conformance says of each is tested. */
#include <math.h>
#include <stddef.h>
#include <tessera/adapter.h>

enum {
  kRight = 0,
  kWrongOut = 1,     /* the last element by a thousandth */
  kSilent = 2,       /* nothing is written */
  kBeyond = 3,       /* one element before out */
  kChangesInput = 4, /* the first element of query */
  kDeclines = 5,     /* supports nothing */
  kDeclinesLate = 6, /* supports everything, and declines when it is called */
  kFails = 7,        /* with another status */
  kMisnamed = 8      /* not as a file may be */
};
static const int fault = FAULT;

enum { kMaxKeys = 4096 };

static const char* last_error(void) { return "not by loops"; }

static tessera_status supports(tessera_operation operation, const tessera_args* args,
                               const tessera_options* options) {
  if (fault == kDeclines) return tessera_unsupported;
  if (fault == kDeclinesLate) return tessera_ok;
  if (operation != tessera_op_forward || args->query.dtype != tessera_fp32 ||
      options->mask != tessera_mask_none || options->dropout != 0 || options->batch_invariant ||
      args->softcap != 0 || args->alibi_slopes.data || args->bias.data || args->boolean_mask.data ||
      args->sinks.data || args->key_begin.data || args->key_end.data || args->query_end.data ||
      args->cu_seqlens_q.data || args->key.extent[2] > kMaxKeys)
    return tessera_unsupported;
  return tessera_ok;
}

static float* element(const tessera_tensor* t, int64_t batch, int64_t head, int64_t seq,
                      int64_t dim) {
  const int64_t* s = t->stride;
  return (float*)t->data + batch * s[0] + head * s[1] + seq * s[2] + dim * s[3];
}

static double score(const tessera_args* a, int64_t b, int64_t h, int64_t i, int64_t j) {
  const int64_t dim = a->query.extent[3], head_k = h / (a->query.extent[1] / a->key.extent[1]);
  double sum = 0;
  for (int64_t d = 0; d < dim; ++d)
    sum += (double)*element(&a->query, b, h, i, d) * *element(&a->key, b, head_k, j, d);
  return sum * (a->has_scale ? (double)a->scale : 1 / sqrt((double)dim));
}

static void attend_row(const tessera_args* a, int64_t b, int64_t h, int64_t i) {
  static double weight[kMaxKeys];
  const int64_t keys = a->key.extent[2], head_k = h / (a->query.extent[1] / a->key.extent[1]);
  double maximum = -HUGE_VAL, sum = 0;
  for (int64_t j = 0; j < keys; ++j) {
    weight[j] = score(a, b, h, i, j);
    maximum = fmax(maximum, weight[j]);
  }
  for (int64_t j = 0; j < keys; ++j) sum += weight[j] = exp(weight[j] - maximum);
  for (int64_t d = 0; d < a->value.extent[3]; ++d) {
    double out = 0;
    for (int64_t j = 0; j < keys; ++j)
      out += weight[j] / sum * (double)*element(&a->value, b, head_k, j, d);
    *element(&a->out, b, h, i, d) = (float)out;
  }
  if (a->lse.data)
    *element(&a->lse, b, h, i, 0) = keys > 0 ? (float)(maximum + log(sum)) : -HUGE_VALF;
}

static tessera_status forward(const tessera_args* a, const tessera_options* options,
                              const tessera_stream* stream) {
  const int64_t *e = a->out.extent, last[4] = {e[0] - 1, e[1] - 1, e[2] - 1, e[3] - 1};
  (void)options;
  (void)stream;
  if (fault == kDeclinesLate) return tessera_unsupported;
  if (fault == kFails) return tessera_device_error;
  if (fault == kSilent || e[0] * e[1] * e[2] == 0) return tessera_ok;
  for (int64_t b = 0; b < e[0]; ++b)
    for (int64_t h = 0; h < e[1]; ++h)
      for (int64_t i = 0; i < e[2]; ++i) attend_row(a, b, h, i);
  if (fault == kWrongOut) *element(&a->out, last[0], last[1], last[2], last[3]) *= 1.001F;
  if (fault == kBeyond) *((float*)a->out.data - 1) = 0;
  if (fault == kChangesInput) *(float*)a->query.data += 1;
  return tessera_ok;
}

const tessera_adapter* tessera_adapter_table(void) {
  static const tessera_adapter table = {.size = sizeof table,
                                        .name = FAULT == kMisnamed ? "../x y" : "loops",
                                        .supports = supports,
                                        .forward = forward,
                                        .last_error = last_error};
  return &table;
}
