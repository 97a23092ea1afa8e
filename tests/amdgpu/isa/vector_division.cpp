// The steps of a division: scaling of the operands, the last fused step and the special cases.

#include <limits>

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

// What the scaling of a format goes by.
struct SingleLimits {
  using Form = F32;
  static constexpr int kMantissa = 23, kBias = 127, kSteps = 64, kFar = 96;
};
struct DoubleLimits {
  using Form = F64;
  static constexpr int kMantissa = 52, kBias = 1023, kSteps = 128, kFar = 768;
};

template <class L>
int biased_exponent(typename L::Form::Type a) {
  const u64 bits = L::Form::put(a);
  return static_cast<int>(bits >> L::kMantissa & (2 * L::kBias + 1));
}

// x / y from the scaled quotient, with the cases that the arithmetic before it gets wrong: a NaN
// there comes of an overflow.
template <class T>
T fixed(T quotient, T denominator, T numerator) {
  const bool negative = std::signbit(denominator) != std::signbit(numerator);
  const T sign = negative ? T{-1} : T{1};
  if (std::isnan(numerator) || std::isnan(denominator) || (numerator == 0 && denominator == 0) ||
      (std::isinf(numerator) && std::isinf(denominator)))
    return std::numeric_limits<T>::quiet_NaN();
  if (denominator == 0 || std::isinf(numerator)) return sign * std::numeric_limits<T>::infinity();
  if (std::isinf(denominator) || numerator == 0) return sign * T{0};
  const int below = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits - 1;
  if (std::ilogb(numerator) - std::ilogb(denominator) < below) return sign * T{0};
  if (std::isnan(quotient)) return sign * std::numeric_limits<T>::infinity();
  return std::copysign(quotient, sign);
}

struct Scaling {
  int steps = 0;      // powers of two by which the value is scaled
  bool back = false;  // the result is to be scaled back
};

template <class L, class T>
Scaling scaling(T value, T denominator, T numerator) {
  const int ed = biased_exponent<L>(denominator), en = biased_exponent<L>(numerator);
  const bool of_denominator = L::Form::put(value) == L::Form::put(denominator);
  const bool of_numerator = L::Form::put(value) == L::Form::put(numerator);
  const auto is_denormal = [](T a) { return a != 0 && biased_exponent<L>(a) == 0; };
  const bool small_inverse = is_denormal(1 / denominator),
             small = is_denormal(numerator / denominator);
  if (en - ed >= L::kFar) return {of_denominator ? L::kSteps : 0, true};
  if (is_denormal(denominator)) return {L::kSteps, false};
  if (small_inverse && small) return {of_denominator ? -L::kSteps : 0, true};
  if (small_inverse) return {-L::kSteps, false};
  if (small) return {of_numerator ? L::kSteps : 0, true};
  if (en <= L::kMantissa) return {L::kSteps, false};
  return {};
}

template <class R>
void store(Wave& w, const Instruction& in, R& result) {
  if constexpr (std::is_same_v<R, Row>)
    store32(w, in, result);
  else
    store64(w, in, result);
}

template <class L>
using RowOf = std::conditional_t<L::Form::kBits == 64, WideRow, Row>;

// Result, whether to scale back, value, denominator, numerator.
template <class L>
void scale(Wave& w, const Instruction& in) {
  using T = typename L::Form::Type;
  const Argument<typename L::Form> value(w, in, 2), denominator(w, in, 3), numerator(w, in, 4);
  RowOf<L> result;
  u64 back = 0;
  for (int l = 0; l < kLanes; ++l) {
    T r = std::numeric_limits<T>::quiet_NaN();
    if (numerator[l] != 0 && denominator[l] != 0) {
      const Scaling by = scaling<L>(value[l], denominator[l], numerator[l]);
      r = std::ldexp(value[l], by.steps);
      back |= static_cast<u64>(by.back) << l;
    }
    result.lane[l] = L::Form::put(r);
  }
  set_mask(w, in, 1, back & w.active);
  store(w, in, result);
}

// 2^steps (a b + c), rounded once.
float scaled_fma(float a, float b, float c, int steps) {
  const double product = static_cast<double>(a) * b, sum = product + c;
  const double of_c = sum - product;
  const double error = (product - (sum - of_c)) + (c - of_c);
  u64 bits = as_bits(sum);
  if (std::isfinite(sum) && error != 0 && !(bits & 1))
    bits += (error > 0) == (sum > 0) ? u64{1} : ~u64{0};  // to odd
  return static_cast<float>(std::ldexp(as_double(bits), steps));
}
// Twice if the result is a denormal.
double scaled_fma(double a, double b, double c, int steps) {
  return std::ldexp(std::fma(a, b, c), steps);
}

template <class L>
void fused_step(Wave& w, const Instruction& in) {
  const Argument<typename L::Form> a(w, in, 1), b(w, in, 2), c(w, in, 3);
  const u64 vcc = w.mask(kVcc);
  RowOf<L> result;
  for (int l = 0; l < kLanes; ++l) {
    const int steps = biased_exponent<L>(c[l]) > L::kBias ? L::kSteps : -L::kSteps;
    result.lane[l] = L::Form::put(vcc >> l & 1 ? scaled_fma(a[l], b[l], c[l], steps)
                                               : std::fma(a[l], b[l], c[l]));
  }
  store(w, in, result);
}

}  // namespace

void register_division(Opcodes& t) {
  t.add("v_div_scale_f32", scale<SingleLimits>);
  t.add("v_div_scale_f64", scale<DoubleLimits>);
  t.add("v_div_fmas_f32", fused_step<SingleLimits>);
  t.add("v_div_fmas_f64", fused_step<DoubleLimits>);
  t.add("v_div_fixup_f32",
        lanewise<F32, F32, F32, F32>([](float q, float d, float n) { return fixed(q, d, n); }));
  t.add("v_div_fixup_f16",
        lanewise<F16, F16, F16, F16>([](float q, float d, float n) { return fixed(q, d, n); }));
  t.add("v_div_fixup_f64",
        lanewise<F64, F64, F64, F64>([](double q, double d, double n) { return fixed(q, d, n); }));
}

}  // namespace tessera::amdgpu
