#pragma once
// How core/kernel computes: on a Value that holds one number a query row (a float in a GPU thread,
// a SIMD vector of rows on a CPU) through a Lanes policy that names the operations. Nothing here is
// specific to a machine.

#include <cstdint>
#include <limits>

#include "core/kernel/macros.hpp"

namespace tessera::kernel {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
inline constexpr float kMostNegative = std::numeric_limits<float>::lowest();
inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;
inline constexpr float kLn2Rest = -1.9046542e-9f;  // ln 2 − kLn2

// What a Lanes policy provides. Index is an int, or a vector of as many ints as Value has floats;
// Bits likewise unsigned; Predicate is the result of comparing two of either.
//
//   broadcast(float) -> Value   the same number in every lane
//   whole(int) -> Index         likewise
//   bits(uint32_t) -> Bits      likewise
//   bits(Index) -> Bits         modulo 2^32
//   convert(Index) -> Value     exact up to 2^24
//   max(a, b)                   b where either is NaN: max(running, score) lets a NaN score through
//   exp2(x)                     0 for x <= -127 and for -infinity; relative error at most 2.5e-7
//                               for x up to 4, any number for larger x; NaN stays NaN
//   fma(a, b, c)                a * b + c
//   select(p, a, b)             a where p holds, else b; for Value and Index
//   less(a, b)                  Predicate, of Values, Indices or Bits; false where a number is NaN
//   equal(a, b)                 Predicate, of Values
//   both(p, q), either(p, q)    of Predicates
//   any(p) -> bool              does it hold in some lane
//   mul_hi(Bits, uint32_t)      upper half of the 64-bit product
//
// Value has + - * / and unary -, Index + and -, Bits + * (by a uint32_t too) ^ & >> <<.
template <class L>
concept Lanes = requires(typename L::Value v, typename L::Index i, typename L::Bits b,
                         typename L::Predicate p) {
  v = L::broadcast(1.0f);
  i = L::whole(1);
  v = L::max(v, v);
  v = L::exp2(v);
  v = L::fma(v, v, v);
  p = L::less(v, v);
  p = L::less(i, i);
  p = L::equal(v, v);
  p = L::both(p, p);
  p = L::either(p, p);
  v = L::select(p, v, v);
  i = L::select(p, i, i);
  bool(L::any(p));
  v = L::convert(i);
  b = L::bits(std::uint32_t{1});
  b = L::bits(i);
  b = L::mul_hi(b, std::uint32_t{1});
  b = ((b * std::uint32_t{3} ^ b) + b) >> 16 & 0xFFFFu;
  p = L::less(b, b);
};

// One row a lane: a GPU thread, the generic kernels, tests.
struct ScalarLanes {
  using Value = float;
  using Index = int;
  using Bits = std::uint32_t;
  using Predicate = bool;

  TESSERA_FN static constexpr Value broadcast(float x) { return x; }
  TESSERA_FN static constexpr Index whole(int x) { return x; }
  TESSERA_FN static constexpr Bits bits(Bits x) { return x; }
  TESSERA_FN static constexpr Bits bits(Index i) { return static_cast<Bits>(i); }
  TESSERA_FN static constexpr Value convert(Index i) { return static_cast<Value>(i); }
  TESSERA_FN static constexpr Value max(Value a, Value b) { return a > b ? a : b; }
  TESSERA_FN static Value exp2(Value x) { return x <= -127.0f ? 0.0f : TESSERA_MATH(exp2f)(x); }
  TESSERA_FN static Value fma(Value a, Value b, Value c) { return TESSERA_MATH(fmaf)(a, b, c); }
  TESSERA_FN static constexpr Predicate less(Value a, Value b) { return a < b; }
  TESSERA_FN static constexpr Predicate less(Index a, Index b) { return a < b; }
  TESSERA_FN static constexpr Predicate less(Bits a, Bits b) { return a < b; }
  TESSERA_FN static constexpr Predicate equal(Value a, Value b) { return a == b; }
  TESSERA_FN static constexpr Predicate both(Predicate p, Predicate q) { return p && q; }
  TESSERA_FN static constexpr Predicate either(Predicate p, Predicate q) { return p || q; }
  TESSERA_FN static constexpr Value select(Predicate p, Value a, Value b) { return p ? a : b; }
  TESSERA_FN static constexpr Index select(Predicate p, Index a, Index b) { return p ? a : b; }
  TESSERA_FN static constexpr bool any(Predicate p) { return p; }
  TESSERA_FN static constexpr Bits mul_hi(Bits a, std::uint32_t b) {
    return static_cast<Bits>((std::uint64_t{a} * b) >> 32);
  }
};
static_assert(Lanes<ScalarLanes>);

}  // namespace tessera::kernel
