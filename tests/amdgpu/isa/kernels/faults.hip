// Kernels that are right as they stand; a test takes something out of them. And some that are
// wrong.
#include "tests/amdgpu/isa/kernels/device.hpp"

typedef int int4v __attribute__((ext_vector_type(4)));

// Loads, waits, crosses waves through LDS, waits again.
TEST_KERNEL(256) void exchange(const int* in, int* out) {
  TEST_LDS int local[256];
  const unsigned i = item_id();
  local[i] = in[i] + 1;
  workgroup_barrier();
  const int value = local[255 - i];
  workgroup_barrier();
  local[i] = value * 2;
  workgroup_barrier();
  out[i] = local[i ^ 128];
}

// Touches item_id + shift: outside for a shift that is not 0.
TEST_KERNEL(64) void shifted(const int* in, int* out, int in_shift, int out_shift) {
  out[(int)item_id() + out_shift] = in[(int)item_id() + in_shift];
}

extern TEST_LDS int dynamic[];
TEST_KERNEL(64) void unaligned(const char* in, int* out, int bytes) {
  dynamic[item_id()] = *(const int*)(in + 4 * item_id() + bytes);
  workgroup_barrier();
  out[item_id()] = dynamic[item_id()];
}
TEST_KERNEL(64) void unaligned_lds(int* out, int bytes) {
  dynamic[item_id()] = (int)item_id();
  workgroup_barrier();
  out[item_id()] = *(const volatile int*)((char*)dynamic + bytes);
}
TEST_KERNEL(64) void dynamic_lds(int* out, int stride) {
  dynamic[item_id() * stride] = (int)item_id();
  workgroup_barrier();
  out[item_id()] = dynamic[item_id() * stride];
}

// Two waves write one word with no barrier between.
TEST_KERNEL(128) void write_write(int* out) {
  TEST_LDS int local[64];
  local[item_id() & 63] = (int)item_id();
  workgroup_barrier();
  out[item_id()] = local[item_id() & 63];
}

// Neighbouring bytes and halves of one word by two waves: no race.
TEST_KERNEL(128) void neighbours(char* out) {
  TEST_LDS char local[128];
  TEST_LDS short halves[128];
  const unsigned i = item_id(), at = (i & 63) * 2 + (i >> 6);
  local[at] = (char)i;
  halves[at] = (short)i;
  workgroup_barrier();
  out[i] = (char)(local[i] + halves[i]);
}

#if defined(__gfx942__) || defined(__gfx950__)
TEST_KERNEL(64) void direct(const int* in, int* out) {
  TEST_LDS int local[64];
  const unsigned i = item_id();
  __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) void*)(in + i),
                                   (__attribute__((address_space(3))) void*)local, 4, 0, 0);
  __builtin_amdgcn_s_waitcnt(0x0f70);  // vmcnt(0)
  workgroup_barrier();
  out[i] = local[63 - i];
}

// Waits for its own load only after the barrier: what other waves read may not have arrived.
TEST_KERNEL(256) void direct_late(const int* in, int* out) {
  TEST_LDS int local[256];
  const unsigned i = item_id(), wave = __builtin_amdgcn_readfirstlane(i >> 6);
  __builtin_amdgcn_global_load_lds((__attribute__((address_space(1))) void*)(in + i),
                                   (__attribute__((address_space(3))) void*)(local + 64 * wave), 4,
                                   0, 0);
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_s_waitcnt(0x0f70);  // vmcnt(0)
  out[i] = local[255 - i];
}
#endif
