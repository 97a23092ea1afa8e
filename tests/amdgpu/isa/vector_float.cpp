// Vector instructions on 32-bit floats.

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

float fused(float a, float b, float c) { return std::fma(a, b, c); }
float legacy_product(float a, float b) { return a == 0 || b == 0 ? 0.f : a * b; }

// The transcendental unit neither reads nor writes denormals.
template <class F>
float transcendental(float a, F f) {
  return flushed(f(flushed(a)));
}

float fraction(float a) {
  const float r = a - std::floor(a);
  return r >= 1.f ? as_float(0x3f7fffffu) : r;
}

int exponent_of(float a) {
  if (a == 0 || !std::isfinite(a)) return 0;
  int exponent = 0;
  std::frexp(a, &exponent);
  return exponent;
}
float mantissa_of(float a) {
  int exponent = 0;
  return std::isfinite(a) ? std::frexp(a, &exponent) : a;
}

void register_arithmetic(Opcodes& t) {
  t.add("v_add_f32", lanewise<F32, F32, F32>([](float a, float b) { return a + b; }));
  t.add("v_sub_f32", lanewise<F32, F32, F32>([](float a, float b) { return a - b; }));
  t.add("v_subrev_f32", lanewise<F32, F32, F32>([](float a, float b) { return b - a; }));
  t.add("v_mul_f32", lanewise<F32, F32, F32>([](float a, float b) { return a * b; }));
  t.add("v_mul_legacy_f32",
        lanewise<F32, F32, F32>([](float a, float b) { return legacy_product(a, b); }));
  t.add("v_fma_f32",
        lanewise<F32, F32, F32, F32>([](float a, float b, float c) { return fused(a, b, c); }));
  t.add("v_fmaak_f32", t.find("v_fma_f32"));
  t.add("v_fmamk_f32", t.find("v_fma_f32"));
  t.add("v_mad_f32",
        lanewise<F32, F32, F32, F32>([](float a, float b, float c) { return a * b + c; }));
  t.add("v_madak_f32", t.find("v_mad_f32"));
  t.add("v_madmk_f32", t.find("v_mad_f32"));
  t.add("v_fmac_f32",
        accumulating<F32, F32, F32, F32>([](float a, float b, float c) { return fused(a, b, c); }));
  t.add("v_mac_f32",
        accumulating<F32, F32, F32, F32>([](float a, float b, float c) { return a * b + c; }));
  t.add("v_max_f32", lanewise<F32, F32, F32>([](float a, float b) { return maximum(a, b); }));
  t.add("v_min_f32", lanewise<F32, F32, F32>([](float a, float b) { return minimum(a, b); }));
  t.add("v_max3_f32", lanewise<F32, F32, F32, F32>(
                          [](float a, float b, float c) { return maximum(maximum(a, b), c); }));
  t.add("v_min3_f32", lanewise<F32, F32, F32, F32>(
                          [](float a, float b, float c) { return minimum(minimum(a, b), c); }));
  t.add("v_maxmin_f32", lanewise<F32, F32, F32, F32>(
                            [](float a, float b, float c) { return minimum(maximum(a, b), c); }));
  t.add("v_minmax_f32", lanewise<F32, F32, F32, F32>(
                            [](float a, float b, float c) { return maximum(minimum(a, b), c); }));
  t.add("v_med3_f32", lanewise<F32, F32, F32, F32>([](float a, float b, float c) {
          if (a != a || b != b || c != c) return minimum(minimum(a, b), c);
          return maximum(minimum(a, b), minimum(maximum(a, b), c));
        }));
  // The maximum of IEEE 754-2019: a NaN wins.
  t.add("v_maximum3_f32", lanewise<F32, F32, F32, F32>([](float a, float b, float c) {
          return a != a || b != b || c != c ? as_float(0x7fc00000u) : maximum(maximum(a, b), c);
        }));
  t.add("v_minimum3_f32", lanewise<F32, F32, F32, F32>([](float a, float b, float c) {
          return a != a || b != b || c != c ? as_float(0x7fc00000u) : minimum(minimum(a, b), c);
        }));
  t.add("v_maximum_f32", lanewise<F32, F32, F32>([](float a, float b) {
          return a != a || b != b ? as_float(0x7fc00000u) : maximum(a, b);
        }));
  t.add("v_minimum_f32", lanewise<F32, F32, F32>([](float a, float b) {
          return a != a || b != b ? as_float(0x7fc00000u) : minimum(a, b);
        }));
}

void register_functions(Opcodes& t) {
  t.add("v_exp_f32", lanewise<F32, F32>([](float a) {
          return transcendental(a, [](float x) { return exp2f(x); });
        }));
  t.add("v_log_f32", lanewise<F32, F32>([](float a) {
          return transcendental(a, [](float x) { return log2f(x); });
        }));
  t.add("v_rcp_f32", lanewise<F32, F32>([](float a) {
          return transcendental(a, [](float x) { return 1.f / x; });
        }));
  t.add("v_rcp_iflag_f32", t.find("v_rcp_f32"));
  t.add("v_rsq_f32", lanewise<F32, F32>([](float a) {
          return transcendental(a, [](float x) {
            return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
          });
        }));
  t.add("v_sqrt_f32", lanewise<F32, F32>([](float a) {
          return transcendental(a, [](float x) { return std::sqrt(x); });
        }));
  // The argument counts turns.
  t.add("v_sin_f32", lanewise<F32, F32>([](float a) {
          return static_cast<float>(std::sin(static_cast<double>(a) * 6.283185307179586));
        }));
  t.add("v_cos_f32", lanewise<F32, F32>([](float a) {
          return static_cast<float>(std::cos(static_cast<double>(a) * 6.283185307179586));
        }));
  t.add("v_fract_f32", lanewise<F32, F32>([](float a) { return fraction(a); }));
  t.add("v_floor_f32", lanewise<F32, F32>([](float a) { return std::floor(a); }));
  t.add("v_ceil_f32", lanewise<F32, F32>([](float a) { return std::ceil(a); }));
  t.add("v_trunc_f32", lanewise<F32, F32>([](float a) { return std::trunc(a); }));
  t.add("v_rndne_f32", lanewise<F32, F32>([](float a) { return std::nearbyint(a); }));
  t.add("v_ldexp_f32", lanewise<F32, F32, I32>([](float a, i32 b) { return std::ldexp(a, b); }));
  t.add("v_frexp_exp_i32_f32", lanewise<I32, F32>([](float a) { return exponent_of(a); }));
  t.add("v_frexp_mant_f32", lanewise<F32, F32>([](float a) { return mantissa_of(a); }));
}

}  // namespace

void register_vector_float(Opcodes& t) {
  register_arithmetic(t);
  register_functions(t);
}

}  // namespace tessera::amdgpu
