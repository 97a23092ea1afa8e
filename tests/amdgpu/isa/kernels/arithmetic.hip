// Scalar and vector arithmetic as the compiler makes it; arithmetic.hpp tells what.
#include "tests/amdgpu/isa/kernels/arithmetic.hpp"

#include "tests/amdgpu/isa/kernels/device.hpp"

namespace t = tessera::amdgpu::testing;

TEST_DEVICE unsigned item() { return group_id() * 64 + item_id(); }

TEST_KERNEL(64) void run_integers(const int* in, int* out, int uniform) {
  t::integers(in + 4 * item(), uniform, out + t::kIntegerResults * item());
}
TEST_KERNEL(64) void run_longs(const long* in, long* out, long uniform) {
  t::longs(in + 4 * item(), uniform, out + t::kLongResults * item());
}
TEST_KERNEL(64) void run_floats(const float* in, float* out, float uniform) {
  t::floats(in + 4 * item(), uniform, out + t::kFloatResults * item());
}
TEST_KERNEL(64) void run_doubles(const double* in, double* out, double uniform) {
  t::doubles(in + 4 * item(), uniform, out + t::kDoubleResults * item());
}
TEST_KERNEL(64) void run_shorts(const short* in, short* out) {
  t::shorts(in + 4 * item(), out + t::kShortResults * item());
}

// A call and an array indexed by a value: a stack, private memory and s_swappc.
__attribute__((device, noinline)) float table(const float* in, float scale, int at) {
  float values[32];
  for (int i = 0; i < 32; ++i) values[i] = in[i] * scale;
  return values[at & 31] + values[(at * 5) & 31];
}
TEST_KERNEL(64) void run_calls(const float* in, float* out) {
  const auto i = static_cast<int>(item());
  out[i] = table(in, 2.f, i) + table(in + 1, 4.f, i + 3);
}
