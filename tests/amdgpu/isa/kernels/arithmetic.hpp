#pragma once
// What every item of the kernels in arithmetic.hip computes, for the device's compiler and for the
// host's: the results must be the same bits.

#ifdef __HIP_DEVICE_COMPILE__
#define TEST_ITEM __attribute__((device)) inline
#else
#define TEST_ITEM inline
#endif

namespace tessera::amdgpu::testing {

inline constexpr int kIntegerResults = 24, kLongResults = 20, kFloatResults = 26,
                     kDoubleResults = 12, kShortResults = 14;

TEST_ITEM void integers(const int* in, int uniform, int* out) {
  const int x = in[0], y = in[1];
  const auto p = static_cast<unsigned>(in[2]), q = static_cast<unsigned>(in[3]);
  out[0] = y == 0 || (y == -1) ? 0 : x / y;
  out[1] = y == 0 || (y == -1) ? 0 : x % y;
  out[2] = static_cast<int>(q == 0 ? 0 : p / q);
  out[3] = static_cast<int>(q == 0 ? 0 : p % q);
  out[4] = __builtin_popcount(p) + __builtin_clz(q | 1) + __builtin_ctz(p | 0x80000000u);
  out[5] = x > y ? x : y;
  out[6] = static_cast<int>(p < q ? p : q);
  out[7] = static_cast<int>((static_cast<long>(x) * y) >> 32);
  out[8] = static_cast<int>((static_cast<unsigned long>(p) * q) >> 32);
  out[9] = static_cast<int>(p << (q & 31) | p >> (-q & 31));
  out[10] = x >> (q & 31);
  out[11] = static_cast<int>(p >> (q & 31));
  out[12] = static_cast<int>(p >> 7 & 0x1ff);
  out[13] = static_cast<int>(p << 9) >> 22;
  out[14] = static_cast<int>((p & q) | (~p & 0x0f0f1234u));
  out[15] = static_cast<int>((p ^ q) + 77u * p);
  out[16] = static_cast<int>((p & 0xffffffu) * (q & 0xffffffu) + 5u);
  out[17] = static_cast<int>(p + q < p) + static_cast<int>(p > q);
  int collatz = static_cast<int>(p & 1023) + 1, steps = 0;
  while (collatz != 1 && steps < 40) {
    collatz = (collatz & 1) ? 3 * collatz + 1 : collatz >> 1;
    ++steps;
  }
  out[18] = steps;
  switch (q & 7) {
    case 0:
      out[19] = x;
      break;
    case 1:
      out[19] = y ^ 5;
      break;
    case 2:
      out[19] = x + 3 * y / 8;
      break;
    case 5:
      out[19] = -x;
      break;
    default:
      out[19] = uniform;
      break;
  }
  out[20] = static_cast<int>((p >> 16) * (q & 0xffffu) + (p & 0xffu));
  out[21] = uniform / 7 + (uniform >> 3) * 11 - uniform % 13;
  out[22] = static_cast<int>(__builtin_bswap32(p) ^ q);
  out[23] =
      static_cast<signed char>(p) + static_cast<unsigned char>(q >> 8) * static_cast<short>(p >> 8);
}

TEST_ITEM void longs(const long* in, long uniform, long* out) {
  const long x = in[0], y = in[1];
  const auto p = static_cast<unsigned long>(in[2]), q = static_cast<unsigned long>(in[3]);
  out[0] = static_cast<long>(p * q + static_cast<unsigned long>(uniform));
  out[1] = static_cast<long>(p + q - static_cast<unsigned long>(x));
  out[2] = static_cast<long>(p << (q & 63));
  out[3] = x >> (q & 63);
  out[4] = static_cast<long>(p >> (q & 63));
  out[5] = x < y ? x : y;
  out[6] = static_cast<long>(p > q ? p : q);
  out[7] = static_cast<long>(q == 0 ? 0 : p / q);
  out[8] = y == 0 || y == -1 ? 0 : x % y;
  out[9] = (x & y) | (~x ^ uniform);
  out[10] = __builtin_popcountl(p) + __builtin_clzl(q | 1) + __builtin_ctzl(p | 1ul << 63);
  out[11] = x == y;
  out[12] = static_cast<int>(x) * static_cast<long>(static_cast<int>(y)) + x;
  out[13] = static_cast<long>((p & 0xffffffffu) * (q & 0xffffffffu) + p);
  out[14] = uniform * 3 + (uniform >> 5);
  out[15] = uniform / 1000003;
  out[16] = static_cast<long>(p << 3) - x;
  out[17] = x < 0 ? -x : x;
  out[18] = x >= uniform;
  out[19] = static_cast<long>(p >> 33 | q << 31);
}

TEST_ITEM void floats(const float* in, float uniform, float* out) {
  const float x = in[0], y = in[1], z = in[2];
  out[0] = x / y;
  out[1] = __builtin_sqrtf(__builtin_fabsf(x));
  out[2] = __builtin_fmaf(x, y, z);
  out[3] = x * y + z;
  out[4] = __builtin_fmaxf(x, y);
  out[5] = __builtin_fminf(__builtin_fmaxf(x, -1.f), 1.f);
  out[6] = __builtin_floorf(x);
  out[7] = __builtin_ceilf(y);
  out[8] = __builtin_truncf(z);
  out[9] = __builtin_rintf(x);
  out[10] = x < y ? z : x;
  out[11] = !(x >= y) ? 1.f : 0.f;
  out[12] = __builtin_copysignf(x, y);
  out[13] = -__builtin_fabsf(z) - y;
  out[14] = static_cast<float>(static_cast<int>(in[3]));
  out[15] = static_cast<float>(static_cast<unsigned>(__builtin_fabsf(in[3])) & 0xffu);
  out[16] = static_cast<float>(static_cast<long>(in[3]) * 1000003l);
  out[17] = uniform / x;
  out[18] = (x - y) * (x + y);
  out[19] = x == y || x != x ? 4.f : z;
  out[20] = static_cast<float>(static_cast<unsigned char>(static_cast<int>(in[3]) & 127));
  out[21] = static_cast<float>(static_cast<double>(x) * y);
  out[22] = __builtin_fmaxf(__builtin_fmaxf(x, y), z);
  out[23] = __builtin_fminf(x, __builtin_fminf(y, z));
  out[24] = static_cast<float>(static_cast<unsigned long>(static_cast<long>(in[3])) * 77ul);
  out[25] = uniform * x - z * uniform;
}

TEST_ITEM void doubles(const double* in, double uniform, double* out) {
  const double x = in[0], y = in[1];
  out[0] = x * y + uniform;
  out[1] = x / y;
  out[2] = x < y ? x : y;
  out[3] = static_cast<float>(x);
  out[4] = static_cast<int>(in[2]);
  out[5] = __builtin_fma(x, y, uniform);
  out[6] = __builtin_fmax(x, y);
  out[7] = __builtin_floor(x);
  out[8] = static_cast<unsigned>(__builtin_fabs(in[2]));
  out[9] = -x - y;
  out[10] = static_cast<double>(static_cast<int>(in[2]) * 7);
  out[11] = x >= y ? 1 : __builtin_trunc(y);
}

TEST_ITEM void shorts(const short* in, short* out) {
  const short x = in[0], y = in[1];
  const auto p = static_cast<unsigned short>(in[2]), q = static_cast<unsigned short>(in[3]);
  out[0] = static_cast<short>(x * y + x);
  out[1] = static_cast<short>(x << (q & 15));
  out[2] = static_cast<short>(x >> (q & 15));
  out[3] = static_cast<short>(p >> (q & 15));
  out[4] = x > y ? x : y;
  out[5] = static_cast<short>(p < q ? p : q);
  out[6] = static_cast<short>(x - y);
  out[7] = static_cast<short>((x & y) | ~x);
  out[8] = static_cast<short>(p + q);
  out[9] = x < y;
  out[10] = static_cast<short>(static_cast<signed char>(x) >> 2);
  out[11] = static_cast<short>(static_cast<unsigned char>(p) * static_cast<unsigned char>(q));
  out[12] = static_cast<short>(p > 77 ? p / 77 : q);
  out[13] = static_cast<short>(x == y ? 3 : p ^ q);
}

}  // namespace tessera::amdgpu::testing
