#pragma once
// How core/kernel computes: on a Value that holds one number a query row (a float in a GPU thread, a SIMD vector of rows
// on a CPU) through a Lanes policy that names the operations. Nothing here is specific to a machine.

#include <limits>

#include "core/kernel/macros.hpp"

namespace tessera::kernel {

inline constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
inline constexpr float kMostNegative = std::numeric_limits<float>::lowest();
inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;

// What a Lanes policy provides. Index is an int, or a vector of as many ints as Value has floats; Bits likewise
// unsigned; Predicate is the result of comparing two of either.
//
//   broadcast(float) -> Value      whole(int) -> Index
//   max(a, b)                      b where either is NaN: max(running, score) lets a NaN score through
//   exp2(x)                        0 for x <= -127 and for -infinity; NaN stays NaN; relative error at most 2.5e-7
//   fma(a, b, c)                   a * b + c
//   select(p, a, b)                a where p holds, else b; for Value and Index
//   less(a, b), equal(a, b)        Predicates, of Values or Indices; false where a number is NaN
//   both(p, q), either(p, q)       Predicates
//   any(p) -> bool
template <class L>
concept Lanes = requires(typename L::Value v, typename L::Index i, typename L::Predicate p) {
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
};

// One row a lane: a GPU thread, the generic kernels, tests.
struct ScalarLanes {
  using Value = float;
  using Index = int;
  using Bits = unsigned;
  using Predicate = bool;

  TESSERA_FN static constexpr Value broadcast(float x) { return x; }
  TESSERA_FN static constexpr Index whole(int x) { return x; }
  TESSERA_FN static constexpr Value max(Value a, Value b) { return a > b ? a : b; }
  TESSERA_FN static Value exp2(Value x) {
    return x <= -127.0f ? 0.0f : TESSERA_MATH(exp2f)(x);
  }
  TESSERA_FN static Value fma(Value a, Value b, Value c) {
    return TESSERA_MATH(fmaf)(a, b, c);
  }
  TESSERA_FN static constexpr Predicate less(Value a, Value b) { return a < b; }
  TESSERA_FN static constexpr Predicate less(Index a, Index b) { return a < b; }
  TESSERA_FN static constexpr Predicate equal(Value a, Value b) { return a == b; }
  TESSERA_FN static constexpr Predicate both(Predicate p, Predicate q) { return p && q; }
  TESSERA_FN static constexpr Predicate either(Predicate p, Predicate q) { return p || q; }
  TESSERA_FN static constexpr Value select(Predicate p, Value a, Value b) { return p ? a : b; }
  TESSERA_FN static constexpr Index select(Predicate p, Index a, Index b) { return p ? a : b; }
  TESSERA_FN static constexpr bool any(Predicate p) { return p; }
};
static_assert(Lanes<ScalarLanes>);

}  // namespace tessera::kernel
