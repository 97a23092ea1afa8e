#pragma once
// Vectors along the head dimension, as decode has them: loads in an order that is cheap, and sums
// and maxima across lanes.

#include <utility>

#include "backends/kokkos/vector/isa.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

// --- Columns in the order of their loads

// Two vectors of neighbours. Those of bf16 are cheaper to load as all even ones and all odd ones,
// a shift and a mask of the same words; queries and outputs stand in the same order meanwhile.
// Columns behind the last whole span stand as they are.
inline constexpr Index kSpan = 2 * kWidth;

template <class T>
TESSERA_FN void load_span(const T* p, Float (&v)[2]) {
  v[0] = load_wide(p);
  v[1] = load_wide(p + kWidth);
}
TESSERA_FN void load_span(const Bf16* p, Float (&v)[2]) {
  Bits words = load_as<Bits>(p);
#if defined(__x86_64__)
  asm("" : "+v"(words));  // GCC would load it twice, which costs where it straddles cache lines
#endif
  v[0] = reinterpret_cast<Float>(words << 16);
  v[1] = reinterpret_cast<Float>(words & 0xffff0000u);
}

template <int... kLane>
TESSERA_FN void split_lanes(float* p, std::integer_sequence<int, kLane...>) {
  const Float a = load(p), b = load(p + kWidth);
  store(p, Float(__builtin_shufflevector(a, b, (2 * kLane)...)));
  store(p + kWidth, Float(__builtin_shufflevector(a, b, (2 * kLane + 1)...)));
}
template <int... kLane>
TESSERA_FN void zip_lanes(float* p, std::integer_sequence<int, kLane...>) {
  constexpr int kHalf = kWidth / 2;
  const Float a = load(p), b = load(p + kWidth);
  store(p, Float(__builtin_shufflevector(a, b, (kLane / 2 + kLane % 2 * kWidth)...)));
  store(p + kWidth,
        Float(__builtin_shufflevector(a, b, (kHalf + kLane / 2 + kLane % 2 * kWidth)...)));
}

// A row of `columns` floats from memory's order to that of T's loads, and back.
template <class T>
TESSERA_FN void to_load_order(float* row, Index columns) {
  if constexpr (__is_same(T, Bf16)) {
    for (Index column = 0; column + kSpan <= columns; column += kSpan)
      split_lanes(row + column, std::make_integer_sequence<int, kWidth>{});
  }
}
template <class T>
TESSERA_FN void to_memory_order(float* row, Index columns) {
  if constexpr (__is_same(T, Bf16)) {
    for (Index column = 0; column + kSpan <= columns; column += kSpan)
      zip_lanes(row + column, std::make_integer_sequence<int, kWidth>{});
  }
}

// kWidth neighbours as fp32; `left` of them exist, a multiple of 8 where a vector is wider.
template <class T>
TESSERA_FN Float load_part(const T* p, Index left) {
  if constexpr (kWidth == 16) {
    if (left < 16) {
      return Float(__builtin_shufflevector(load8(p), Float8{}, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                           12, 13, 14, 15));
    }
  }
  return load_wide(p);
}

// --- Across lanes

// Sums of every fourth lane.
TESSERA_FN Float4 fold(Float v) {
#if TESSERA_VECTOR_WIDTH == 16
  const Float8 a = Float8(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)) +
                   Float8(__builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
#elif TESSERA_VECTOR_WIDTH == 8
  const Float8 a = v;
#endif
#if TESSERA_VECTOR_WIDTH >= 8
  return Float4(__builtin_shufflevector(a, a, 0, 1, 2, 3)) +
         Float4(__builtin_shufflevector(a, a, 4, 5, 6, 7));
#else
  return v;
#endif
}

TESSERA_FN float sum_lanes(Float v) {
  const Float4 a = fold(v);
  return (a[0] + a[2]) + (a[1] + a[3]);
}

// Lanes whose number holds the bit kDistance: the sum of the two that differ in it in b, others: in
// a.
template <int kDistance, int... kLane>
TESSERA_FN Float add_halves(Float a, Float b, std::integer_sequence<int, kLane...>) {
  const auto in_b = [](int lane) { return (lane & kDistance) != 0 ? kWidth : 0; };
  return Float(__builtin_shufflevector(a, b, (kLane + in_b(kLane))...)) +
         Float(__builtin_shufflevector(a, b, ((kLane ^ kDistance) + in_b(kLane))...));
}

// Lane i: the sum of v[i]'s lanes. In log2(kWidth) steps, each of which halves the vectors.
template <int kDistance = kWidth / 2>
TESSERA_FN Float sum_all_lanes(Float (&v)[kWidth]) {
  TESSERA_UNROLL
  for (int i = 0; i < kDistance; ++i) {
    v[i] = add_halves<kDistance>(v[i], v[i + kDistance], std::make_integer_sequence<int, kWidth>{});
  }
  if constexpr (kDistance > 1) {
    return sum_all_lanes<kDistance / 2>(v);
  } else {
    return v[0];
  }
}

template <int kDistance, int... kLane>
TESSERA_FN Float swap_lanes(Float v, std::integer_sequence<int, kLane...>) {
  return Float(__builtin_shufflevector(v, v, (kLane ^ kDistance)...));
}

template <int kDistance = kWidth / 2>
TESSERA_FN float largest_lane(Float v) {
  v = VectorLanes::max(v, swap_lanes<kDistance>(v, std::make_integer_sequence<int, kWidth>{}));
  if constexpr (kDistance > 1) {
    return largest_lane<kDistance / 2>(v);
  } else {
    return v[0];
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
