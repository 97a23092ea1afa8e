#include "reference/multiply.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

// One kernel, instantiated for vectors of 16 bytes (any target of GCC or Clang), and on x86-64 also
// of 32 and 64 bytes, of which one is chosen when running. (target_clones would do the same, but
// its resolvers run before sanitizers do.)

namespace tessera::reference {
namespace {

template <class Real, int kBytes>
struct Simd {
  typedef Real Vector __attribute__((vector_size(kBytes)));
  using Bits = std::conditional_t<sizeof(Real) == 8, std::uint64_t, std::uint32_t>;
  typedef Bits BitVector __attribute__((vector_size(kBytes)));
};

#define TESSERA_REFERENCE_INLINE __attribute__((always_inline)) inline

// kRows rows by kVectors vectors of columns, from strip `strip` on.
template <class Real, int kBytes, int kRows, int kVectors, bool kAbsolute>
TESSERA_REFERENCE_INLINE void block(const Product<Real>& p, std::int64_t row, std::int64_t strip) {
  using Vector = typename Simd<Real, kBytes>::Vector;
  using Bits = typename Simd<Real, kBytes>::Bits;
  using BitVector = typename Simd<Real, kBytes>::BitVector;
  constexpr std::int64_t kWidth = kBytes / static_cast<int>(sizeof(Real));
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  Vector sum[kRows][kVectors] = {};
  Vector absolute[kRows][kVectors] = {};
  const Real* a = p.a + row * p.a_row;
  const Real* absolute_a = kAbsolute ? p.absolute_a + row * p.a_row : nullptr;
  const Real* b = p.b + strip * p.b_strip;
  for (std::int64_t k = 0; k < p.inner; ++k) {
    Vector right[kVectors];
    Vector right_absolute[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t column = v * kWidth;
      std::memcpy(&right[v],
                  b + column / kLanes<Real> * p.b_strip + column % kLanes<Real> + k * kLanes<Real>,
                  kBytes);
      if constexpr (kAbsolute) {
        BitVector bits;
        std::memcpy(&bits, &right[v], kBytes);
        bits &= kMagnitude;
        std::memcpy(&right_absolute[v], &bits, kBytes);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      const Real left = a[r * p.a_row + k * p.a_inner];
      for (int v = 0; v < kVectors; ++v) sum[r][v] += left * right[v];
      if constexpr (kAbsolute) {
        const Real left_absolute = absolute_a[r * p.a_row + k * p.a_inner];
        for (int v = 0; v < kVectors; ++v) absolute[r][v] += left_absolute * right_absolute[v];
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      const std::int64_t at = (row + r) * p.c_row + strip * kLanes<Real> + v * kWidth;
      Vector old;
      if (p.add) {
        std::memcpy(&old, p.c + at, kBytes);
        sum[r][v] += old;
      }
      std::memcpy(p.c + at, &sum[r][v], kBytes);
      if constexpr (kAbsolute) {
        if (p.add) {
          std::memcpy(&old, p.absolute_c + at, kBytes);
          absolute[r][v] += old;
        }
        std::memcpy(p.absolute_c + at, &absolute[r][v], kBytes);
      }
    }
  }
}

template <class Real, int kBytes, int kRows, int kVectors, bool kAbsolute>
TESSERA_REFERENCE_INLINE void column_block(const Product<Real>& p, std::int64_t strip) {
  std::int64_t row = 0;
  for (; row + kRows <= p.rows; row += kRows)
    block<Real, kBytes, kRows, kVectors, kAbsolute>(p, row, strip);
  for (; row < p.rows; ++row) block<Real, kBytes, 1, kVectors, kAbsolute>(p, row, strip);
}

// kStrips strips at a time, which a strip's rows of `a` meet in cache.
template <class Real, int kBytes, int kRows, int kStrips, bool kAbsolute>
TESSERA_REFERENCE_INLINE void product(const Product<Real>& p) {
  std::int64_t strip = 0;
  for (; strip + kStrips <= p.strips; strip += kStrips) {
    column_block<Real, kBytes, kRows, kStrips * 64 / kBytes, kAbsolute>(p, strip);
  }
  for (; strip < p.strips; ++strip)
    column_block<Real, kBytes, kRows, 64 / kBytes, kAbsolute>(p, strip);
}

template <class Real, int kBytes, int kRows, int kStrips>
TESSERA_REFERENCE_INLINE void either(const Product<Real>& p) {
  if (p.absolute_c != nullptr) {
    product<Real, kBytes, kRows, kStrips, true>(p);
  } else {
    product<Real, kBytes, kRows, kStrips, false>(p);
  }
}

template <class Real>
void multiply_any(const Product<Real>& p) {
  either<Real, 16, 2, 1>(p);
}

#if defined(__x86_64__)
template <class Real>
__attribute__((target("avx2,fma"))) void multiply_avx2(const Product<Real>& p) {
  either<Real, 32, 3, 1>(p);
}

template <class Real>
__attribute__((target("avx512f,avx512dq,avx2,fma"))) void multiply_avx512(const Product<Real>& p) {
  either<Real, 64, 4, 2>(p);
}
#endif

template <class Real>
void dispatch(int level, const Product<Real>& p) {
#if defined(__x86_64__)
  if (level == 2) return multiply_avx512(p);
  if (level == 1) return multiply_avx2(p);
#endif
  static_cast<void>(level);
  multiply_any(p);
}

template <class Real>
bool all_finite(const Real* values, std::int64_t count) {
  Real sum = 0;  // 0·x is NaN for what is not finite, and NaN stays
  for (std::int64_t i = 0; i < count; ++i) sum += Real{0} * values[i];
  return sum == 0;
}

}  // namespace

template <class Real>
void Panel<Real>::set_row(std::int64_t k, const Real* values) {
  for (std::int64_t c = 0; c < columns; ++c) at(k, c) = values[c];
  finite = finite && all_finite(values, columns);
}

template <class Real>
void Panel<Real>::set_column(std::int64_t c, const Real* values) {
  for (std::int64_t k = 0; k < inner; ++k) at(k, c) = values[k];
  finite = finite && all_finite(values, inner);
}

template struct Panel<double>;
template struct Panel<float>;

int best_level() {
#if defined(__x86_64__)
  static const int level = [] {
    if (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0) return 0;
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 ? 2
                                                                                             : 1;
  }();
  return level;
#else
  return 0;
#endif
}

void multiply(const Product<double>& product) { dispatch(best_level(), product); }
void multiply(const Product<float>& product) { dispatch(best_level(), product); }
void multiply_at(int level, const Product<double>& product) { dispatch(level, product); }
void multiply_at(int level, const Product<float>& product) { dispatch(level, product); }

}  // namespace tessera::reference
