// Memory instructions of every kind, with results that a test can foresee.
#include "tests/amdgpu/isa/kernels/device.hpp"

typedef int int2v __attribute__((ext_vector_type(2)));
typedef int int3v __attribute__((ext_vector_type(3)));
typedef int int4v __attribute__((ext_vector_type(4)));
typedef short short4v __attribute__((ext_vector_type(4)));

// Every width through LDS: item i gets what item 255 - i brought.
TEST_KERNEL(256) void widths(const char* in, char* out) {
  TEST_LDS int4v quads[256];
  TEST_LDS int3v triples[256];
  TEST_LDS int2v pairs[256];
  TEST_LDS int words[256];
  TEST_LDS short halves[256];
  TEST_LDS char bytes[256];
  const unsigned i = item_id(), j = 255 - i;
  quads[i] = *(const int4v*)(in + 16 * i);
  triples[i] = *(const int3v*)(in + 16 * i);
  pairs[i] = *(const int2v*)(in + 8 * i);
  words[i] = *(const int*)(in + 4 * i);
  halves[i] = *(const short*)(in + 2 * i);
  bytes[i] = in[i];
  workgroup_barrier();
  *(int4v*)(out + 16 * i) = quads[j];
  *(int3v*)(out + 4096 + 16 * i) = triples[j];
  *(int2v*)(out + 8192 + 8 * i) = pairs[j];
  *(int*)(out + 10240 + 4 * i) = words[j];
  *(short*)(out + 11264 + 2 * i) = halves[j];
  out[11776 + i] = bytes[j];
}

// Buffer accesses with a bound: lanes beyond it read zero, and their stores are dropped.
TEST_KERNEL(64) void bounded(int* data, int* out, int* stored, int bytes, int flags) {
  const auto resource = __builtin_amdgcn_make_buffer_rsrc(data, 0, bytes, flags);
  const int i = (int)item_id();
  out[i] = (int)__builtin_amdgcn_raw_buffer_load_b32(resource, 4 * i, 0, 0);
  const auto quad =
      __builtin_bit_cast(int4v, __builtin_amdgcn_raw_buffer_load_b128(resource, 4 * i, 16, 0));
  out[64 + i] = quad.x + quad.y + quad.z + quad.w;
  out[128 + i] = (short)__builtin_amdgcn_raw_buffer_load_b16(resource, 2 * i, 0, 0);
  const auto target = __builtin_amdgcn_make_buffer_rsrc(stored, 0, bytes, flags);
  __builtin_amdgcn_raw_buffer_store_b32(1000u + i, target, 4 * i, 128, 0);
}

TEST_KERNEL(256) void atomics(unsigned* sum, unsigned long* wide, float* real, unsigned* before) {
  const unsigned i = item_id() + 256 * group_id();
  before[i] = __hip_atomic_fetch_add(sum, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_max(sum + 1, i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_min((int*)sum + 2, -(int)i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_or(sum + 3, 1u << (i & 31), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add(wide, (unsigned long)i << 20, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  unsigned long expected = 0;
  __hip_atomic_compare_exchange_strong(wide + 1, &expected, i + 1ul, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  [[clang::atomic(no_remote_memory, no_fine_grained_memory, ignore_denormal_mode)]] {
    __hip_atomic_fetch_add(real, 0.5f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }
}

TEST_KERNEL(256) void lds_atomics(unsigned* out) {
  TEST_LDS unsigned counts[8];
  TEST_LDS float real;
  const unsigned i = item_id();
  if (i < 8) counts[i] = 0;
  if (i == 0) real = 0;
  workgroup_barrier();
  __hip_atomic_fetch_add(&counts[i & 7], i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  __hip_atomic_fetch_add(&real, 0.25f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  workgroup_barrier();
  if (i < 8) out[i] = counts[i];
  if (i == 8) out[8] = (unsigned)real;
}

// Generic pointers: to LDS for odd items, to memory for even ones.
TEST_KERNEL(64) void generic(const int* in, int* out) {
  TEST_LDS int local[64];
  const unsigned i = item_id();
  local[i] = in[i] + 1000;
  workgroup_barrier();
  const int* from = (i & 1) ? local : in;
  asm volatile("" : "+v"(from));
  out[i] = from[i ^ 2];
}

#if defined(__gfx942__) || defined(__gfx950__)
#define AS1 __attribute__((address_space(1)))
#define AS3 __attribute__((address_space(3)))
// Four bytes a lane straight into LDS, then read across waves.
TEST_KERNEL(256) void direct(const int* in, int* out) {
  TEST_LDS int local[256];
  const unsigned i = item_id(), wave = __builtin_amdgcn_readfirstlane(i >> 6);
  __builtin_amdgcn_global_load_lds((AS1 void*)(in + (i ^ 5)), (AS3 void*)(local + 64 * wave), 4, 0,
                                   0);
  __builtin_amdgcn_s_waitcnt(0x0f70);  // vmcnt(0)
  workgroup_barrier();
  out[i] = local[255 - i];
}
#endif

#ifdef __gfx950__
TEST_KERNEL(64) void direct_wide(const int4v* in, int4v* out, int* transposed) {
  TEST_LDS int4v local[64];
  const unsigned i = item_id();
  __builtin_amdgcn_global_load_lds((AS1 void*)(in + (i ^ 9)), (AS3 void*)local, 16, 0, 0);
  __builtin_amdgcn_s_waitcnt(0x0f70);
  workgroup_barrier();
  out[i] = local[63 - i];
  const auto four = __builtin_amdgcn_ds_read_tr16_b64_v4i16((AS3 short4v*)((char*)local + 8 * i));
  *(short4v*)(transposed + 2 * i) = four;
}
#endif
