// Packed vector instructions: two values of 16 bits a register, or two of 32 in a pair.

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

// The halves of source `at` that go into the lower and the upper result. Without an op_sel_hi the
// upper result takes the upper half; a constant is its 16 bits in the lower half and zero above
// for floats, so op_sel_hi is what a compiler writes with it.
void halves(Wave& w, const Instruction& in, int at, bool is_float, Row& low, Row& high) {
  const Modifiers& m = in.modifiers;
  const u32 bit = 1u << (at - 1);
  Row buffer;
  const Operand& operand = in[at];
  const u32* from = nullptr;
  if (operand.kind == OperandKind::Constant && operand.is_float) {
    broadcast(operand.value16, buffer);
    from = buffer.lane;
  } else {
    from = raw_lanes(w, in, at, buffer);
  }
  const int low_shift = m.op_sel & bit ? 16 : 0, high_shift = m.op_sel_hi & bit ? 16 : 0;
  const u32 flip_low = is_float && (m.neg_lo & bit) ? 0x8000u : 0u;
  const u32 flip_high = is_float && (m.neg_hi & bit) ? 0x8000u : 0u;
  for (int l = 0; l < kLanes; ++l) {
    const u32 bits = from[l];
    low.lane[l] = (bits >> low_shift & 0xffff) ^ flip_low;
    high.lane[l] = (bits >> high_shift & 0xffff) ^ flip_high;
  }
}

template <class T, class F, int kSources>
struct Packed {
  static u32 one(const Row* rows, int l) {
    if constexpr (kSources == 2)
      return T::put(kLaneFunction<F>(T::get(rows[0].lane[l]), T::get(rows[1].lane[l])));
    else
      return T::put(kLaneFunction<F>(T::get(rows[0].lane[l]), T::get(rows[1].lane[l]),
                                     T::get(rows[2].lane[l])));
  }
  static void execute(Wave& w, const Instruction& in) {
    Row low[kSources], high[kSources], result;
    for (int i = 0; i < kSources; ++i) halves(w, in, i + 1, T::kFloat, low[i], high[i]);
    for (int l = 0; l < kLanes; ++l) {
      u32 a = one(low, l), b = one(high, l);
      if (in.modifiers.clamp) {
        if (!T::kFloat) refuse(in, "clamp on an integer result");
        a = float_to_half(minimum(maximum(half_to_float(a), 0.f), 1.f));
        b = float_to_half(minimum(maximum(half_to_float(b), 0.f), 1.f));
      }
      result.lane[l] = (a & 0xffff) | b << 16;
    }
    store32(w, in, result);
  }
};

template <class T, int kSources, class F>
constexpr Handler packed(F) {
  return &Packed<T, F, kSources>::execute;
}

void register_halves(Opcodes& t) {
  t.add("v_pk_add_f16", packed<F16, 2>([](float a, float b) { return a + b; }));
  t.add("v_pk_mul_f16", packed<F16, 2>([](float a, float b) { return a * b; }));
  t.add("v_pk_fma_f16", packed<F16, 3>([](float a, float b, float c) {
          return double_to_float_odd(static_cast<double>(a) * b + c);
        }));
  t.add("v_pk_max_f16", packed<F16, 2>([](float a, float b) { return maximum(a, b); }));
  t.add("v_pk_min_f16", packed<F16, 2>([](float a, float b) { return minimum(a, b); }));
  t.add("v_pk_maximum3_f16", packed<F16, 3>([](float a, float b, float c) {
          return a != a || b != b || c != c ? as_float(0x7fc00000u) : maximum(maximum(a, b), c);
        }));
  t.add("v_pk_minimum3_f16", packed<F16, 3>([](float a, float b, float c) {
          return a != a || b != b || c != c ? as_float(0x7fc00000u) : minimum(minimum(a, b), c);
        }));
  t.add("v_pk_add_u16", packed<U16, 2>([](u32 a, u32 b) { return a + b; }));
  t.add("v_pk_add_i16", t.find("v_pk_add_u16"));
  t.add("v_pk_sub_i16", packed<U16, 2>([](u32 a, u32 b) { return a - b; }));
  t.add("v_pk_sub_u16", t.find("v_pk_sub_i16"));
  t.add("v_pk_mul_lo_u16", packed<U16, 2>([](u32 a, u32 b) { return a * b; }));
  t.add("v_pk_mad_u16", packed<U16, 3>([](u32 a, u32 b, u32 c) { return a * b + c; }));
  t.add("v_pk_mad_i16", t.find("v_pk_mad_u16"));
  t.add("v_pk_max_i16", packed<I16, 2>([](i32 a, i32 b) { return a > b ? a : b; }));
  t.add("v_pk_min_i16", packed<I16, 2>([](i32 a, i32 b) { return a < b ? a : b; }));
  t.add("v_pk_max_u16", packed<U16, 2>([](u32 a, u32 b) { return a > b ? a : b; }));
  t.add("v_pk_min_u16", packed<U16, 2>([](u32 a, u32 b) { return a < b ? a : b; }));
  t.add("v_pk_lshlrev_b16", packed<U16, 2>([](u32 a, u32 b) { return b << (a & 15); }));
  t.add("v_pk_lshrrev_b16", packed<U16, 2>([](u32 a, u32 b) { return b >> (a & 15); }));
  t.add("v_pk_ashrrev_i16", packed<I16, 2>([](i32 a, i32 b) { return b >> (a & 15); }));
}

// One of the two registers of a packed 32-bit source.
void word(Wave& w, const Instruction& in, int at, bool upper, bool is_float, u32* out) {
  const Modifiers& m = in.modifiers;
  const u32 bit = 1u << (at - 1);
  const Operand& operand = in[at];
  const bool second = (upper ? m.op_sel_hi : m.op_sel) & bit;
  const u32 flip = is_float && ((upper ? m.neg_hi : m.neg_lo) & bit) ? 0x80000000u : 0u;
  if (operand.kind == OperandKind::Vector) {
    const u32* from = w.vector[operand.index + (second ? 1 : 0)].lane;
    for (int l = 0; l < kLanes; ++l) out[l] = from[l] ^ flip;
    return;
  }
  u32 value = 0;
  if (operand.kind == OperandKind::Scalar)
    value = w.scalar[operand.index + (second && operand.count > 1 ? 1 : 0)];
  else
    value = scalar_value(w, operand);  // a constant is the same for both
  for (int l = 0; l < kLanes; ++l) out[l] = value ^ flip;
}

template <class F, int kSources>
struct PackedFloat {
  static void execute(Wave& w, const Instruction& in) {
    Row result[2];
    for (int part = 0; part < 2; ++part) {
      Row s[3];
      for (int i = 0; i < kSources; ++i) word(w, in, i + 1, part == 1, true, s[i].lane);
      for (int l = 0; l < kLanes; ++l) {
        float value;
        if constexpr (kSources == 2)
          value = kLaneFunction<F>(as_float(s[0].lane[l]), as_float(s[1].lane[l]));
        else
          value = kLaneFunction<F>(as_float(s[0].lane[l]), as_float(s[1].lane[l]),
                                   as_float(s[2].lane[l]));
        result[part].lane[l] = as_bits(value);
      }
      if (in.modifiers.clamp)
        for (u32& lane : result[part].lane) lane = as_bits(scaled(as_float(lane), in.modifiers));
      if (w.mode.flush_out32())
        for (u32& lane : result[part].lane) lane = as_bits(flushed(as_float(lane)));
    }
    store_row(w, in[0].index, result[0].lane);
    store_row(w, in[0].index + 1, result[1].lane);
  }
};

template <int kSources, class F>
constexpr Handler packed_float(F) {
  return &PackedFloat<F, kSources>::execute;
}

// The lower result is of source 1, the upper of source 2.
void packed_move(Wave& w, const Instruction& in) {
  Row low, high;
  word(w, in, 1, false, false, low.lane);
  const bool second = in.modifiers.op_sel >> 1 & 1;
  if (in[2].kind == OperandKind::Vector)
    std::memcpy(high.lane, w.vector[in[2].index + (second ? 1 : 0)].lane, sizeof(Row));
  else
    word(w, in, 2, second, false, high.lane);
  store_row(w, in[0].index, low.lane);
  store_row(w, in[0].index + 1, high.lane);
}

void register_words(Opcodes& t) {
  t.add("v_pk_add_f32", packed_float<2>([](float a, float b) { return a + b; }));
  t.add("v_pk_mul_f32", packed_float<2>([](float a, float b) { return a * b; }));
  t.add("v_pk_fma_f32",
        packed_float<3>([](float a, float b, float c) { return std::fma(a, b, c); }));
  t.add("v_pk_mov_b32", packed_move);
}

// Two products of halves and a sum in 32 bits.
template <float (*kFrom)(u32)>
void dot2(Wave& w, const Instruction& in) {
  const bool accumulates = in.count == 3;  // v_dot2c: the result is the third source
  Row low[2], high[2], buffer, result;
  for (int i = 0; i < 2; ++i) halves(w, in, i + 1, true, low[i], high[i]);
  const u32* c = lanes32(w, in, accumulates ? 0 : 3, buffer);
  for (int l = 0; l < kLanes; ++l) {
    const double sum = static_cast<double>(kFrom(low[0].lane[l])) * kFrom(low[1].lane[l]) +
                       static_cast<double>(kFrom(high[0].lane[l])) * kFrom(high[1].lane[l]) +
                       static_cast<double>(as_float(c[l]));
    result.lane[l] = as_bits(static_cast<float>(sum));
  }
  store32(w, in, result);
}

}  // namespace

void register_vector_packed(Opcodes& t) {
  register_halves(t);
  register_words(t);
  for (const char* name :
       {"v_dot2_f32_f16", "v_dot2c_f32_f16", "v_dot2acc_f32_f16", "v_dot2_f32_f16"})
    t.add(name, dot2<half_to_float>);
  for (const char* name : {"v_dot2_f32_bf16", "v_dot2c_f32_bf16", "v_dot2acc_f32_bf16"})
    t.add(name, dot2<bfloat_to_float>);
}

}  // namespace tessera::amdgpu
