// The C interface: causal self-attention over four tokens. With queries of zero every visible key
// weighs the same, so each row of the result is the mean of the values up to it. Then a mistake,
// and how it is told.
//
// Prints:
//   0 0.5 1 1.5
//   invalid argument: key.extent.dim is 7; must equal query.extent.dim (8)
#include <stdio.h>
#include <stdlib.h>
#include <tessera/tessera.h>

static void check(tessera_status status) {
  if (status == tessera_ok) return;
  fprintf(stderr, "%s: %s\n", tessera_status_text(status), tessera_last_error());
  exit(1);
}

/* A copy of 32 numbers on the device. */
static tessera_buffer* upload(const float* numbers) {
  tessera_buffer* buffer = NULL;
  check(tessera_buffer_create(&buffer, 32 * sizeof(float), 0));
  check(tessera_copy(tessera_buffer_data(buffer), numbers, 32 * sizeof(float), NULL));
  return buffer;
}

int main(void) {
  const int64_t shape[4] = {1, 1, 4, 8}; /* batch, head, seq, dim */
  float zeros[32] = {0}, values[32], result[32];
  for (int i = 0; i < 32; ++i) {
    const int key = i / 8;
    values[i] = (float)key;
  }
  tessera_buffer *q = upload(zeros), *k = upload(zeros), *v = upload(values), *out = upload(zeros);

  tessera_args args = {.size = sizeof args,
                       .query = tessera_bhsd(tessera_buffer_data(q), tessera_fp32, shape),
                       .key = tessera_bhsd(tessera_buffer_data(k), tessera_fp32, shape),
                       .value = tessera_bhsd(tessera_buffer_data(v), tessera_fp32, shape),
                       .out = tessera_bhsd(tessera_buffer_data(out), tessera_fp32, shape)};
  const tessera_options options = {
      .size = sizeof options, .mask = tessera_mask_causal, .alignment = tessera_bottom_right};
  check(tessera_forward(&args, &options, NULL));

  check(tessera_copy(result, tessera_buffer_data(out), sizeof result, NULL));
  check(tessera_synchronize(NULL));
  printf("%g %g %g %g\n", result[0], result[8], result[16], result[24]);

  args.key.extent[3] = 7;
  const tessera_status status = tessera_forward(&args, &options, NULL);
  printf("%s: %s\n", tessera_status_text(status), tessera_last_error());

  tessera_buffer_destroy(q);
  tessera_buffer_destroy(k);
  tessera_buffer_destroy(v);
  tessera_buffer_destroy(out);
  return 0;
}
