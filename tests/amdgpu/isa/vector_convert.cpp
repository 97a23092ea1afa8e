// Conversions between number formats.

#include <limits>

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

i32 to_signed(double a) {
  if (a != a) return 0;
  if (a <= -2147483648.0) return std::numeric_limits<i32>::min();
  if (a >= 2147483647.0) return std::numeric_limits<i32>::max();
  return static_cast<i32>(a);
}
u32 to_unsigned(double a) {
  if (!(a > 0)) return 0;
  return a >= 4294967295.0 ? ~0u : static_cast<u32>(a);
}
i32 to_short(float a) {
  return a != a ? 0 : static_cast<i32>(std::fmin(std::fmax(a, -32768.f), 32767.f));
}
u32 to_unsigned_short(float a) { return a > 0 ? static_cast<u32>(std::fmin(a, 65535.f)) : 0; }

// To half as the mode's rounding says, so not a plain lane function.
void to_half(Wave& w, const Instruction& in) {
  const Argument<F32> a(w, in, 1);
  const bool scale = in.modifiers.clamp || in.modifiers.output_scale != 1;
  if (w.mode.round16() != 0 && w.mode.round16() != 3) refuse(in, "rounding up or down");
  const bool nearest = w.mode.round16() == 0;
  Row result;
  if (scale)
    for (int l = 0; l < kLanes; ++l) result.lane[l] = float_to_half(scaled(a[l], in.modifiers));
  else if (nearest)
    for (int l = 0; l < kLanes; ++l) result.lane[l] = float_to_half(a[l]);
  else
    for (int l = 0; l < kLanes; ++l) result.lane[l] = float_to_half_toward_zero(a[l]);
  store16(w, in, 1, false, result);
}

template <u32 (*kTo)(float)>
void to_pair(Wave& w, const Instruction& in) {
  const Argument<F32> a(w, in, 1), b(w, in, 2);
  Row result;
  for (int l = 0; l < kLanes; ++l) result.lane[l] = kTo(a[l]) | kTo(b[l]) << 16;
  store32(w, in, result);
}

Float8 e4m3(const Wave& w) { return {4, 3, w.group->target->one_zero_float8}; }
Float8 e5m2(const Wave& w) { return {5, 2, w.group->target->one_zero_float8}; }

// Two floats to the lower two bytes, or to the upper ones if op_sel says so; the others are kept.
template <Float8 (*kFormat)(const Wave&)>
void to_float8_pair(Wave& w, const Instruction& in) {
  const Argument<F32> a(w, in, 1), b(w, in, 2);
  const Float8 format = kFormat(w);
  const bool upper = in.modifiers.op_sel >> 2 & 1;
  const u32* old = w.vector[in[0].index].lane;
  Row result;
  for (int l = 0; l < kLanes; ++l) {
    const u32 pair = float_to_float8(a[l], format) | float_to_float8(b[l], format) << 8;
    result.lane[l] = upper ? (old[l] & 0xffffu) | pair << 16 : (old[l] & 0xffff0000u) | pair;
  }
  store32(w, in, result);
}

// A byte, chosen by op_sel (gfx9), byte_sel or SDWA.
template <Float8 (*kFormat)(const Wave&)>
void from_float8(Wave& w, const Instruction& in) {
  Row buffer, result;
  const u32* from = lanes32(w, in, 1, buffer);
  const u32 select = in.modifiers.op_sel ? in.modifiers.op_sel & 3 : in.modifiers.byte_sel;
  for (int l = 0; l < kLanes; ++l)
    result.lane[l] = as_bits(float8_to_float(from[l] >> (8 * select) & 0xff, kFormat(w)));
  Instruction plain = in;
  plain.sdwa.destination = Part::Dword;
  store32(w, plain, result);
}

template <Float8 (*kFormat)(const Wave&)>
void from_float8_pair(Wave& w, const Instruction& in) {
  Row buffer, low, high;
  const u32* from = lanes32(w, in, 1, buffer);
  const int shift = (in.modifiers.op_sel & 1) ? 16 : 0;
  for (int l = 0; l < kLanes; ++l) {
    low.lane[l] = as_bits(float8_to_float(from[l] >> shift & 0xff, kFormat(w)));
    high.lane[l] = as_bits(float8_to_float(from[l] >> (shift + 8) & 0xff, kFormat(w)));
  }
  store_row(w, in[0].index, low.lane);
  store_row(w, in[0].index + 1, high.lane);
}

u32 clamped_byte(float a) {
  return a > 0 ? static_cast<u32>(std::fmin(std::nearbyint(a), 255.f)) : 0;
}

void register_integers(Opcodes& t) {
  t.add("v_cvt_f32_i32", lanewise<F32, I32>([](i32 a) { return static_cast<float>(a); }));
  t.add("v_cvt_f32_u32", lanewise<F32, U32>([](u32 a) { return static_cast<float>(a); }));
  t.add("v_cvt_i32_f32", lanewise<I32, F32>([](float a) { return to_signed(a); }));
  t.add("v_cvt_u32_f32", lanewise<U32, F32>([](float a) { return to_unsigned(a); }));
  t.add("v_cvt_rpi_i32_f32", lanewise<I32, F32>([](float a) {
          return to_signed(std::floor(static_cast<double>(a) + 0.5));
        }));
  t.add("v_cvt_flr_i32_f32", lanewise<I32, F32>([](float a) { return to_signed(std::floor(a)); }));
  t.add("v_cvt_f32_ubyte0", lanewise<F32, U32>([](u32 a) { return static_cast<float>(a & 0xff); }));
  t.add("v_cvt_f32_ubyte1",
        lanewise<F32, U32>([](u32 a) { return static_cast<float>(a >> 8 & 0xff); }));
  t.add("v_cvt_f32_ubyte2",
        lanewise<F32, U32>([](u32 a) { return static_cast<float>(a >> 16 & 0xff); }));
  t.add("v_cvt_f32_ubyte3", lanewise<F32, U32>([](u32 a) { return static_cast<float>(a >> 24); }));
  t.add("v_cvt_f16_u16", lanewise<F16, U16>([](u32 a) { return static_cast<float>(a); }));
  t.add("v_cvt_f16_i16", lanewise<F16, I16>([](i32 a) { return static_cast<float>(a); }));
  t.add("v_cvt_u16_f16", lanewise<U16, F16>([](float a) { return to_unsigned_short(a); }));
  t.add("v_cvt_i16_f16", lanewise<I16, F16>([](float a) { return to_short(a); }));
  t.add("v_cvt_i32_i16", lanewise<I32, I16>([](i32 a) { return a; }));
  t.add("v_cvt_u32_u16", lanewise<U32, U16>([](u32 a) { return a; }));
  t.add("v_cvt_pk_u16_u32", lanewise<U32, U32, U32>([](u32 a, u32 b) {
          return std::min(a, 65535u) | std::min(b, 65535u) << 16;
        }));
  t.add("v_cvt_pk_u8_f32", lanewise<U32, F32, U32, U32>([](float a, u32 at, u32 into) {
          const u32 shift = 8 * (at & 3);
          return (into & ~(0xffu << shift)) | clamped_byte(a) << shift;
        }));
}

void register_floats(Opcodes& t) {
  t.add("v_cvt_f32_f16", lanewise<F32, F16>([](float a) { return a; }));
  t.add("v_cvt_f16_f32", to_half);
  t.add("v_cvt_pk_f16_f32", to_pair<float_to_half>);
  t.add("v_cvt_pkrtz_f16_f32", to_pair<float_to_half_toward_zero>);
  t.add("v_cvt_pk_bf16_f32", to_pair<float_to_bfloat>);
  t.add("v_cvt_f32_bf16", lanewise<F32, U16>([](u32 a) { return bfloat_to_float(a); }));
  t.add("v_cvt_f64_f32", lanewise<F64, F32>([](float a) { return static_cast<double>(a); }));
  t.add("v_cvt_f32_f64", lanewise<F32, F64>([](double a) { return static_cast<float>(a); }));
  t.add("v_cvt_f64_i32", lanewise<F64, I32>([](i32 a) { return static_cast<double>(a); }));
  t.add("v_cvt_f64_u32", lanewise<F64, U32>([](u32 a) { return static_cast<double>(a); }));
  t.add("v_cvt_i32_f64", lanewise<I32, F64>([](double a) { return to_signed(a); }));
  t.add("v_cvt_u32_f64", lanewise<U32, F64>([](double a) { return to_unsigned(a); }));
  t.add("v_cvt_pk_fp8_f32", to_float8_pair<e4m3>);
  t.add("v_cvt_pk_bf8_f32", to_float8_pair<e5m2>);
  t.add("v_cvt_f32_fp8", from_float8<e4m3>);
  t.add("v_cvt_f32_bf8", from_float8<e5m2>);
  t.add("v_cvt_pk_f32_fp8", from_float8_pair<e4m3>);
  t.add("v_cvt_pk_f32_bf8", from_float8_pair<e5m2>);
}

}  // namespace

void register_vector_convert(Opcodes& t) {
  register_integers(t);
  register_floats(t);
}

}  // namespace tessera::amdgpu
