// Comparisons of vectors: a bit a lane, into a mask or EXEC.

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

enum class To { Mask, Exec };

template <To kTo>
void write_mask(Wave& w, const Instruction& in, bool names_result, u64 result) {
  result &= w.active;
  if (kTo == To::Exec) w.set_mask(kExec, result);
  // gfx9's forms that write EXEC also write the mask that they name.
  if (names_result && (kTo == To::Mask || in[0].kind == OperandKind::Scalar))
    set_mask(w, in, 0, result);
}

template <To kTo, class A, class B, class F>
struct Comparison {
  static void execute(Wave& w, const Instruction& in) {
    // "v_cmpx_eq_u32 v0, v1" names no result and compares the first two operands.
    const bool names_result = in.count == 3;
    if (!names_result) return shifted(w, in);
    const Argument<A> a(w, in, 1);
    const Argument<B> b(w, in, 2);
    u64 result = 0;
    for (int l = 0; l < kLanes; ++l) result |= static_cast<u64>(kLaneFunction<F>(a[l], b[l])) << l;
    write_mask<kTo>(w, in, true, result);
  }
  static void shifted(Wave& w, const Instruction& in) {
    Instruction named = in;
    named.operands[2] = in[1];
    named.operands[1] = in[0];
    named.operands[0] = Operand{.kind = OperandKind::Null};
    named.count = 3;
    if (kTo == To::Mask) refuse(in, "a comparison without a result");
    execute(w, named);
  }
};

template <class A, class B, class F>
void add_both(Opcodes& t, const std::string& name, F) {
  t.add("v_cmp_" + name, &Comparison<To::Mask, A, B, F>::execute);
  t.add("v_cmpx_" + name, &Comparison<To::Exec, A, B, F>::execute);
}

template <class A>
void add_common(Opcodes& t, const std::string& type) {
  using T = typename A::Type;
  add_both<A, A>(t, "lt_" + type, [](T a, T b) { return a < b; });
  add_both<A, A>(t, "eq_" + type, [](T a, T b) { return a == b; });
  add_both<A, A>(t, "le_" + type, [](T a, T b) { return a <= b; });
  add_both<A, A>(t, "gt_" + type, [](T a, T b) { return a > b; });
  add_both<A, A>(t, "ge_" + type, [](T a, T b) { return a >= b; });
  add_both<A, A>(t, "f_" + type, [](T, T) { return false; });
  add_both<A, A>(t, "t_" + type, [](T, T) { return true; });
}

template <class A>
void add_integer(Opcodes& t, const std::string& type) {
  using T = typename A::Type;
  add_common<A>(t, type);
  add_both<A, A>(t, "ne_" + type, [](T a, T b) { return a != b; });
}

template <class A>
void add_float(Opcodes& t, const std::string& type) {
  using T = typename A::Type;
  add_common<A>(t, type);
  add_both<A, A>(t, "lg_" + type, [](T a, T b) { return a < b || a > b; });
  add_both<A, A>(t, "o_" + type, [](T a, T b) { return a == a && b == b; });
  add_both<A, A>(t, "u_" + type, [](T a, T b) { return a != a || b != b; });
  add_both<A, A>(t, "nge_" + type, [](T a, T b) { return !(a >= b); });
  add_both<A, A>(t, "nlg_" + type, [](T a, T b) { return !(a < b || a > b); });
  add_both<A, A>(t, "ngt_" + type, [](T a, T b) { return !(a > b); });
  add_both<A, A>(t, "nle_" + type, [](T a, T b) { return !(a <= b); });
  add_both<A, A>(t, "neq_" + type, [](T a, T b) { return !(a == b); });
  add_both<A, A>(t, "nlt_" + type, [](T a, T b) { return !(a < b); });
  add_both<A, A>(t, "tru_" + type, [](T, T) { return true; });
}

// Bits: signaling and quiet NaN, -infinity, -normal, -denormal, -0, then the positive ones upwards.
template <class Bits, int kExponent, int kMantissa>
bool is_of_class(Bits bits, u32 classes) {
  const bool negative = bits >> (kExponent + kMantissa) & 1;
  const Bits mantissa = bits & ((Bits{1} << kMantissa) - 1);
  const Bits exponent = bits >> kMantissa & ((Bits{1} << kExponent) - 1);
  int which = 0;
  if (exponent == (Bits{1} << kExponent) - 1 && mantissa)
    which = mantissa >> (kMantissa - 1) & 1 ? 1 : 0;
  else if (exponent == (Bits{1} << kExponent) - 1)
    which = negative ? 2 : 9;
  else if (exponent)
    which = negative ? 3 : 8;
  else if (mantissa)
    which = negative ? 4 : 7;
  else
    which = negative ? 5 : 6;
  return classes >> which & 1;
}

}  // namespace

void register_vector_compare(Opcodes& t) {
  add_integer<I32>(t, "i32");
  add_integer<U32>(t, "u32");
  add_integer<I16>(t, "i16");
  add_integer<U16>(t, "u16");
  add_integer<I64>(t, "i64");
  add_integer<U64>(t, "u64");
  add_float<F32>(t, "f32");
  add_float<F16>(t, "f16");
  add_float<F64>(t, "f64");
  add_both<U32, U32>(t, "class_f32", [](u32 a, u32 b) { return is_of_class<u32, 8, 23>(a, b); });
  add_both<U16, U32>(t, "class_f16", [](u32 a, u32 b) { return is_of_class<u32, 5, 10>(a, b); });
  add_both<U64, U32>(t, "class_f64", [](u64 a, u32 b) { return is_of_class<u64, 11, 52>(a, b); });
}

}  // namespace tessera::amdgpu
