#pragma once
// A Lanes policy of four rows in GCC vectors, whose every operation is ScalarLanes' in each lane:
// what core/kernel computes with it must equal what ScalarLanes computes, to the bit.

#include <cmath>
#include <cstdint>

#include "core/kernel/lanes.hpp"

namespace tessera::testing {

struct FourLanes {
  static constexpr int kWidth = 4;
  using Value = float __attribute__((vector_size(16)));
  using Index = std::int32_t __attribute__((vector_size(16)));
  using Bits = std::uint32_t __attribute__((vector_size(16)));
  using Predicate = Index;

  static Value broadcast(float x) { return Value{x, x, x, x}; }
  static Index whole(int x) { return Index{x, x, x, x}; }
  static Bits bits(std::uint32_t x) { return Bits{x, x, x, x}; }
  static Bits bits(Index i) { return reinterpret_cast<Bits>(i); }
  static Value convert(Index i) { return __builtin_convertvector(i, Value); }
  static Value max(Value a, Value b) { return a > b ? a : b; }
  static Value exp2(Value x) {
    for (int i = 0; i < kWidth; ++i) x[i] = kernel::ScalarLanes::exp2(x[i]);
    return x;
  }
  static Value fma(Value a, Value b, Value c) {
    for (int i = 0; i < kWidth; ++i) a[i] = std::fma(a[i], b[i], c[i]);
    return a;
  }
  static Predicate less(Value a, Value b) { return a < b; }
  static Predicate less(Index a, Index b) { return a < b; }
  static Predicate less(Bits a, Bits b) { return a < b; }
  static Predicate equal(Value a, Value b) { return a == b; }
  static Predicate both(Predicate p, Predicate q) { return p & q; }
  static Predicate either(Predicate p, Predicate q) { return p | q; }
  static Value select(Predicate p, Value a, Value b) { return p ? a : b; }
  static Index select(Predicate p, Index a, Index b) { return p ? a : b; }
  static bool any(Predicate p) { return (p[0] | p[1] | p[2] | p[3]) != 0; }
  static Bits mul_hi(Bits a, std::uint32_t b) {
    for (int i = 0; i < kWidth; ++i) a[i] = kernel::ScalarLanes::mul_hi(a[i], b);
    return a;
  }
};
static_assert(kernel::Lanes<FourLanes>);

// One interface to the lanes of both policies.
template <class L>
struct LaneAccess {
  static constexpr int kWidth = L::kWidth;
  template <class V>
  static auto get(const V& v, int lane) {
    return v[lane];
  }
  template <class V, class T>
  static void set(V& v, int lane, T x) {
    v[lane] = x;
  }
};
template <>
struct LaneAccess<kernel::ScalarLanes> {
  static constexpr int kWidth = 1;
  template <class V>
  static V get(const V& v, int) {
    return v;
  }
  template <class V>
  static void set(V& v, int, V x) {
    v = x;
  }
};

}  // namespace tessera::testing
