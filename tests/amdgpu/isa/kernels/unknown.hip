// An instruction that is not implemented, in a kernel that is otherwise.
#include "tests/amdgpu/isa/kernels/device.hpp"

TEST_KERNEL(64) void unknown(int* out) {
  int value = (int)item_id();
#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
  asm volatile("v_dot8_i32_i4 %0, %0, %0, %0" : "+v"(value));
#else
  asm volatile("v_dot8_i32_iu4 %0, %0, %0, %0" : "+v"(value));
#endif
  out[item_id()] = value;
}
