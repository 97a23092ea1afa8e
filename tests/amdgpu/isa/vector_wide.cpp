// Vector instructions on 64 bits.

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

// Result, carry out, a, b, c: the product of 32-bit factors and a 64-bit sum.
template <bool kSigned>
void multiply_add(Wave& w, const Instruction& in) {
  Row b1, b2;
  WideRow c, result;
  const u32* a = lanes32(w, in, 2, b1);
  const u32* b = lanes32(w, in, 3, b2);
  lanes64(w, in, 4, false, c);
  u64 carry = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u64 product =
        kSigned
            ? static_cast<u64>(static_cast<i64>(static_cast<i32>(a[l])) * static_cast<i32>(b[l]))
            : static_cast<u64>(a[l]) * b[l];
    result.lane[l] = product + c.lane[l];
    if constexpr (kSigned)
      carry |= static_cast<u64>(((~(product ^ c.lane[l]) & (product ^ result.lane[l])) >> 63) & 1)
               << l;
    else
      carry |= static_cast<u64>(result.lane[l] < product) << l;
  }
  set_mask(w, in, 1, carry & w.active);
  store64(w, in, result);
}

void register_integers(Opcodes& t) {
  t.add("v_mov_b64", lanewise<U64, U64>([](u64 a) { return a; }));
  t.add("v_lshlrev_b64", lanewise<U64, U32, U64>([](u32 a, u64 b) { return b << (a & 63); }));
  t.add("v_lshrrev_b64", lanewise<U64, U32, U64>([](u32 a, u64 b) { return b >> (a & 63); }));
  t.add("v_ashrrev_i64", lanewise<I64, U32, I64>([](u32 a, i64 b) { return b >> (a & 63); }));
  t.add("v_lshl_add_u64",
        lanewise<U64, U64, U32, U64>([](u64 a, u32 b, u64 c) { return (a << (b & 7)) + c; }));
  t.add("v_add_nc_u64", lanewise<U64, U64, U64>([](u64 a, u64 b) { return a + b; }));
  t.add("v_mad_u64_u32", multiply_add<false>);
  t.add("v_mad_i64_i32", multiply_add<true>);
}

void register_doubles(Opcodes& t) {
  t.add("v_add_f64", lanewise<F64, F64, F64>([](double a, double b) { return a + b; }));
  t.add("v_mul_f64", lanewise<F64, F64, F64>([](double a, double b) { return a * b; }));
  t.add("v_fma_f64", lanewise<F64, F64, F64, F64>(
                         [](double a, double b, double c) { return std::fma(a, b, c); }));
  t.add("v_fmac_f64", accumulating<F64, F64, F64, F64>(
                          [](double a, double b, double c) { return std::fma(a, b, c); }));
  t.add("v_max_f64", lanewise<F64, F64, F64>([](double a, double b) { return std::fmax(a, b); }));
  t.add("v_min_f64", lanewise<F64, F64, F64>([](double a, double b) { return std::fmin(a, b); }));
  t.add("v_floor_f64", lanewise<F64, F64>([](double a) { return std::floor(a); }));
  t.add("v_ceil_f64", lanewise<F64, F64>([](double a) { return std::ceil(a); }));
  t.add("v_trunc_f64", lanewise<F64, F64>([](double a) { return std::trunc(a); }));
  t.add("v_rndne_f64", lanewise<F64, F64>([](double a) { return std::nearbyint(a); }));
  t.add("v_ldexp_f64", lanewise<F64, F64, I32>([](double a, i32 b) { return std::ldexp(a, b); }));
  t.add("v_rcp_f64", lanewise<F64, F64>([](double a) { return 1 / a; }));
  t.add("v_rsq_f64", lanewise<F64, F64>([](double a) { return 1 / std::sqrt(a); }));
  t.add("v_sqrt_f64", lanewise<F64, F64>([](double a) { return std::sqrt(a); }));
}

}  // namespace

void register_vector_wide(Opcodes& t) {
  register_integers(t);
  register_doubles(t);
}

}  // namespace tessera::amdgpu
