/* What is left: errors of several threads, constants, devices. */

#include <pthread.h>

#include "check.h"

static void numbers(void) {
  int32_t count = 0;
  tessera_build build = {.size = sizeof build};
  tessera_device device = {.size = sizeof device};
  CHECK_OK(tessera_build_info(&build));
  CHECK_TEXT(build.version, tessera_version());
  CHECK(strlen(build.backend) > 0 && strlen(build.toolkit) > 0 && strlen(build.compiler) > 0);
  CHECK(strlen(build.build_type) > 0 && strlen(build.head_dims) > 0 && strlen(build.commit) > 0);
  CHECK_OK(tessera_device_count(&count));
  CHECK(count >= 1);
  CHECK_OK(tessera_device_info(count - 1, &device));
  CHECK(device.size == sizeof device && strlen(device.isa) > 0 && strlen(device.space) > 0);
  CHECK(device.threads >= 1 && device.memory > 0);
  CHECK_REFUSED(tessera_device_info(count, &device), tessera_invalid_argument, "device",
                "must be in");

  CHECK(tessera_size_of(tessera_fp32) == 4 && tessera_size_of(tessera_fp16) == 2);
  CHECK(tessera_size_of(tessera_bf16) == 2 && tessera_size_of(tessera_int32) == 4);
  CHECK(tessera_size_of(tessera_int64) == 8 && tessera_size_of(tessera_uint8) == 1);
  CHECK(tessera_size_of(6) == 0 && tessera_size_of(-1) == 0 && tessera_size_of(256) == 0);

  CHECK_TEXT(tessera_status_text(tessera_ok), "ok");
  CHECK_TEXT(tessera_status_text(tessera_invalid_argument), "invalid argument");
  CHECK_TEXT(tessera_status_text(tessera_unsupported), "unsupported");
  CHECK_TEXT(tessera_status_text(tessera_device_error), "device error");
  CHECK_TEXT(tessera_status_text(tessera_out_of_memory), "out of memory");
  CHECK_TEXT(tessera_status_text(tessera_internal_error), "internal error");
  CHECK_TEXT(tessera_status_text(-5), "unknown status");
}

static void tensors(void) {
  const int64_t extent[4] = {2, 3, 5, 7};
  char data;
  const tessera_tensor a = tessera_bhsd(&data, tessera_fp16, extent);
  const tessera_tensor b = tessera_bshd(&data, tessera_bf16, extent);
  CHECK(a.data == &data && a.dtype == tessera_fp16 && a.reserved == 0);
  CHECK(memcmp(a.extent, extent, sizeof extent) == 0);
  CHECK(a.stride[0] == 105 && a.stride[1] == 35 && a.stride[2] == 7 && a.stride[3] == 1);
  CHECK(b.dtype == tessera_bf16 && memcmp(b.extent, extent, sizeof extent) == 0);
  CHECK(b.stride[0] == 105 && b.stride[1] == 7 && b.stride[2] == 21 && b.stride[3] == 1);
}

static void dropout(void) {
  static float q[8], result[8];
  const int64_t shape[4] = {1, 1, 1, 8};
  const tessera_options options = {.size = sizeof options, .dropout = 0.1};
  tessera_args args = {.size = sizeof args, .seed = 5, .offset = 7};
  tessera_plan* plan = NULL;
  args.query = args.key = args.value = tessera_bhsd(q, tessera_fp32, shape);
  args.out = tessera_bhsd(result, tessera_fp32, shape);
  CHECK_OK(tessera_plan_create(&plan, tessera_op_forward, &args, &options));
  CHECK(tessera_plan_realised_dropout(plan) == 6554.0 / 65536.0);
  tessera_plan_destroy(plan);
}

/* Each thread fails in its own way and finds its own text. */
typedef struct {
  int32_t device;
  int wrong;
} Failing;

static void* fail_often(void* data) {
  Failing* failing = data;
  char expected[32];
  int i;
  snprintf(expected, sizeof expected, "device is %d;", (int)failing->device);
  failing->wrong += strcmp(tessera_last_error(), "") != 0; /* nothing of another thread's */
  for (i = 0; i < 2000; ++i) {
    failing->wrong += tessera_device_info(failing->device, NULL) != tessera_invalid_argument;
    failing->wrong += strncmp(tessera_last_error(), expected, strlen(expected)) != 0;
    failing->wrong += strcmp(tessera_last_error_argument(), "device") != 0;
  }
  return NULL;
}

static void threads(void) {
  enum { kThreads = 4 };
  pthread_t thread[kThreads];
  Failing failing[kThreads];
  int i;
  CHECK_REFUSED(tessera_device_count(NULL), tessera_invalid_argument, "count", "count is null");
  for (i = 0; i < kThreads; ++i) {
    failing[i].device = -1 - i;
    failing[i].wrong = 0;
    CHECK(pthread_create(&thread[i], NULL, fail_often, &failing[i]) == 0);
  }
  for (i = 0; i < kThreads; ++i) {
    CHECK(pthread_join(thread[i], NULL) == 0);
    CHECK(failing[i].wrong == 0);
  }
  CHECK_TEXT(tessera_last_error_argument(), "count"); /* as this thread left it */
  CHECK_OK(tessera_synchronize(NULL));
  CHECK_TEXT(tessera_last_error_argument(), "count"); /* success does not clear it */
}

void test_rest(void) {
  numbers();
  tensors();
  dropout();
  threads();
}
