// Vector instructions on 16-bit floats. Sums and products are exact or innocuously rounded in 32
// bits before they are rounded to 16; a fused multiply-add goes by way of an odd rounding.

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

float half_fused(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;
  return double_to_float_odd(product + c);
}

void register_arithmetic(Opcodes& t) {
  t.add("v_add_f16", lanewise<F16, F16, F16>([](float a, float b) { return a + b; }));
  t.add("v_sub_f16", lanewise<F16, F16, F16>([](float a, float b) { return a - b; }));
  t.add("v_subrev_f16", lanewise<F16, F16, F16>([](float a, float b) { return b - a; }));
  t.add("v_mul_f16", lanewise<F16, F16, F16>([](float a, float b) { return a * b; }));
  t.add("v_fma_f16", lanewise<F16, F16, F16, F16>(
                         [](float a, float b, float c) { return half_fused(a, b, c); }));
  t.add("v_fmac_f16", accumulating<F16, F16, F16, F16>(
                          [](float a, float b, float c) { return half_fused(a, b, c); }));
  t.add("v_max_f16", lanewise<F16, F16, F16>([](float a, float b) { return maximum(a, b); }));
  t.add("v_min_f16", lanewise<F16, F16, F16>([](float a, float b) { return minimum(a, b); }));
  t.add("v_max3_f16", lanewise<F16, F16, F16, F16>(
                          [](float a, float b, float c) { return maximum(maximum(a, b), c); }));
  t.add("v_min3_f16", lanewise<F16, F16, F16, F16>(
                          [](float a, float b, float c) { return minimum(minimum(a, b), c); }));
  t.add("v_med3_f16", lanewise<F16, F16, F16, F16>([](float a, float b, float c) {
          return maximum(minimum(a, b), minimum(maximum(a, b), c));
        }));
}

void register_functions(Opcodes& t) {
  t.add("v_exp_f16", lanewise<F16, F16>([](float a) { return exp2f(a); }));
  t.add("v_log_f16", lanewise<F16, F16>([](float a) { return log2f(a); }));
  t.add("v_rcp_f16", lanewise<F16, F16>([](float a) { return 1.f / a; }));
  t.add("v_rsq_f16", lanewise<F16, F16>([](float a) {
          return static_cast<float>(1.0 / std::sqrt(static_cast<double>(a)));
        }));
  t.add("v_sqrt_f16", lanewise<F16, F16>([](float a) { return std::sqrt(a); }));
  t.add("v_floor_f16", lanewise<F16, F16>([](float a) { return std::floor(a); }));
  t.add("v_ceil_f16", lanewise<F16, F16>([](float a) { return std::ceil(a); }));
  t.add("v_trunc_f16", lanewise<F16, F16>([](float a) { return std::trunc(a); }));
  t.add("v_rndne_f16", lanewise<F16, F16>([](float a) { return std::nearbyint(a); }));
  t.add("v_ldexp_f16", lanewise<F16, F16, I16>([](float a, i32 b) { return std::ldexp(a, b); }));
}

// Two halves side by side, each with its modifiers.
void pack(Wave& w, const Instruction& in) {
  const Argument<U16> low(w, in, 1), high(w, in, 2);
  Row result;
  for (int l = 0; l < kLanes; ++l) result.lane[l] = low[l] | high[l] << 16;
  store32(w, in, result);
}

// A source of the mixed instructions: 32 bits, or the half that op_sel names where op_sel_hi is
// set.
void mixed_source(Wave& w, const Instruction& in, int at, float* out) {
  const u32 bit = 1u << (at - 1);
  const Modifiers& m = in.modifiers;
  const bool is_half = m.has_op_sel_hi && (m.op_sel_hi & bit);
  Row buffer;
  const Operand& operand = in[at];
  const u32* from = raw_lanes(w, in, at, buffer);
  const int shift = m.op_sel & bit ? 16 : 0;
  for (int l = 0; l < kLanes; ++l) {
    u32 bits = from[l];
    if (is_half && operand.kind == OperandKind::Constant)
      bits = static_cast<u32>(operand.value16) << shift;
    float value = is_half ? half_to_float(bits >> shift & 0xffff) : as_float(bits);
    if (operand.absolute || (m.neg_hi & bit)) value = std::fabs(value);
    if (operand.negate || (m.neg_lo & bit)) value = -value;
    out[l] = value;
  }
}

enum class MixResult { Full, Low, High };

template <MixResult kResult>
void mixed_fma(Wave& w, const Instruction& in) {
  float a[kLanes], b[kLanes], c[kLanes];
  mixed_source(w, in, 1, a);
  mixed_source(w, in, 2, b);
  mixed_source(w, in, 3, c);
  Row result;
  const u32* old = w.vector[in[0].index].lane;
  for (int l = 0; l < kLanes; ++l) {
    float value = std::fma(a[l], b[l], c[l]);
    if (in.modifiers.clamp) value = minimum(maximum(value, 0.f), 1.f);
    if (kResult == MixResult::Full)
      result.lane[l] = as_bits(value);
    else if (kResult == MixResult::Low)
      result.lane[l] = (old[l] & 0xffff0000u) | float_to_half(value);
    else
      result.lane[l] = (old[l] & 0xffffu) | float_to_half(value) << 16;
  }
  store32(w, in, result);
}

}  // namespace

void register_vector_half(Opcodes& t) {
  register_arithmetic(t);
  register_functions(t);
  t.add("v_pack_b32_f16", pack);
  t.add("v_fma_mix_f32", mixed_fma<MixResult::Full>);
  t.add("v_fma_mixlo_f16", mixed_fma<MixResult::Low>);
  t.add("v_fma_mixhi_f16", mixed_fma<MixResult::High>);
}

}  // namespace tessera::amdgpu
