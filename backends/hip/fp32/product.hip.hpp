#pragma once
// Products of fp32 numbers, transposed: a lane has one query, Matrix::column(), as in
// common/matrix.hip.hpp, and scores are where Matrix's sums are.
//
//     scores   Sᵀ [32 keys, queries] = K·Qᵀ      of every 8 dimensions a lane gives four, those of
//                                                its half
//     output   Oᵀ [columns, queries] += Vᵀ·Pᵀ    in Runs of 32 · kRun columns, of which a lane has
//                                                16 times kRun neighbours
//
// CDNA has an instruction for it, whose two numbers of the contraction are one of each half's.
//
// RDNA has none. There a lane multiplies its query's number with those of 16 keys, or of 16
// columns, that the lanes of its half hold: each of 16 instructions takes one from another lane.
// Both halves have the same queries. Scores are of 32 keys, over half of the dimensions each: a
// lane gives its other half the sums of the keys that are the other's, and gets its own. Of the
// output a half has columns, over all keys, whose weights it gets from the other.

#include <cstdint>
#include <utility>

#include "backends/hip/common/dpp.hip.hpp"
#include "backends/hip/common/fragment.hip.hpp"
#include "backends/hip/fp32/config.hpp"

namespace tessera::hip::fp32 {

// What common/fragment.hip.hpp needs to know of the type.
struct Fp32 {
  static constexpr float kRise = kernel::kLazyRise;
  TESSERA_DEVICE static float load(const void* data, std::int64_t i) {
    return static_cast<const float*>(data)[i];
  }
};

inline constexpr int kSums = 16;   // scores of a lane, and rows of a run of the output
inline constexpr int kBlock = 32;  // rows of a product, of which a lane has kSums
inline constexpr int kFours = 8;   // numbers of the contraction, of which a lane gives four
inline constexpr int kPanel = 64;  // numbers that are summed apart: long sums of fp32 lose less
inline constexpr bool kAhead = TESSERA_HIP_CDNA;  // are there registers to load into early?

using Float4 = float __attribute__((ext_vector_type(4)));

// kRun columns, side by side.
template <int kRun>
struct alignas(4 * kRun) Run {
  float column[kRun];
};

// Queries of a wave.
inline constexpr int kQueries = Matrix::kSide;

#if TESSERA_HIP_CDNA

using Sums = float __attribute__((ext_vector_type(kSums)));

// Rows of a run that a lane has: row_of(r) + own_row().
constexpr int row_of(int r) { return Matrix::row_of(r); }
TESSERA_DEVICE int own_row() { return Matrix::own_row(); }

// `keys` in rows of kPitch; query: dimensions 8·i + 4·half() … + 3.
template <int kDim, int kPitch>
TESSERA_DEVICE void products(const float* keys, const Float4 (&query)[kDim / kFours],
                             float (&score)[kSums]) {
  const float* const key = keys + Matrix::column() * kPitch + 4 * half();
  Sums all = 0;
  TESSERA_UNROLL
  for (int panel = 0; panel < kDim / kPanel; ++panel) {
    Sums sums = 0;
    TESSERA_UNROLL
    for (int j = panel * kPanel / kFours; j < (panel + 1) * kPanel / kFours; ++j) {
      const Float4 four = *reinterpret_cast<const Float4*>(key + kFours * j);
      TESSERA_UNROLL
      for (int c = 0; c < 4; ++c)
        sums = __builtin_amdgcn_mfma_f32_32x32x2f32(four[c], query[j][c], sums, 0, 0, 0);
    }
    all = panel == 0 ? sums : all + sums;
    keep_order();
  }
  TESSERA_UNROLL
  for (int r = 0; r < kSums; ++r) score[r] = all[r];
}

// `values` in rows of kColumns. A tile's products are summed apart.
template <int kColumns, int kRun>
TESSERA_DEVICE void accumulate(const float* values, const float (&weight)[kSums],
                               Sums (&out)[kColumns / kBlock]) {
  const float* const value = values + Matrix::own_row() * kColumns + lane() % kBlock * kRun;
  TESSERA_UNROLL
  for (int m = 0; m < kColumns / kBlock; m += kRun) {
    Sums sums[kRun];
    TESSERA_UNROLL
    for (int c = 0; c < kRun; ++c) sums[c] = 0;
    TESSERA_UNROLL
    for (int r = 0; r < kSums; ++r) {
      const auto run =
          *reinterpret_cast<const Run<kRun>*>(value + Matrix::row_of(r) * kColumns + m * kBlock);
      TESSERA_UNROLL
      for (int c = 0; c < kRun; ++c)
        sums[c] = __builtin_amdgcn_mfma_f32_32x32x2f32(run.column[c], weight[r], sums[c], 0, 0, 0);
    }
    TESSERA_UNROLL
    for (int c = 0; c < kRun; ++c) out[m + c] += sums[c];
    keep_order();
  }
}

#else

// No vector, which would have to lie in neighbouring registers.
struct Sums {
  float row[kSums];

  TESSERA_DEVICE float& operator[](int r) { return row[r]; }
  TESSERA_DEVICE float operator[](int r) const { return row[r]; }
  TESSERA_DEVICE Sums& operator=(float x) {
    TESSERA_UNROLL
    for (float& sum : row) sum = x;
    return *this;
  }
  TESSERA_DEVICE Sums& operator*=(float x) {
    TESSERA_UNROLL
    for (float& sum : row) sum *= x;
    return *this;
  }
};

constexpr int row_of(int r) { return r; }
TESSERA_DEVICE int own_row() { return kSums * half(); }

namespace detail {

template <int... kLanes>
TESSERA_DEVICE void multiply_lanes(Sums& sums, float a, float b,
                                   std::integer_sequence<int, kLanes...>) {
  (add_product_of_lane<kLanes>(sums[kLanes], a, b), ...);
}

}  // namespace detail

// Sums [16, the lane] += a · b, a of the half's lane of that row.
TESSERA_DEVICE void multiply(Sums& sums, float a, float b) {
  detail::multiply_lanes(sums, a, b, std::make_integer_sequence<int, kSums>{});
}

namespace detail {

template <int kPanelFirst, int kDim, int kPitch>
TESSERA_DEVICE void add_panel(const float* key, const Float4 (&query)[kDim / kFours],
                              Sums (&sums)[2]) {
  TESSERA_UNROLL
  for (int j = kPanelFirst / kFours; j < (kPanelFirst + kPanel) / kFours; ++j) {
    TESSERA_UNROLL
    for (int n = 0; n < 2; ++n) {
      const Float4 four = *reinterpret_cast<const Float4*>(key + n * kSums * kPitch + kFours * j);
      TESSERA_UNROLL
      for (int c = 0; c < 4; ++c) multiply(sums[n], four[c], query[j][c]);
    }
    keep_order();
  }
}
// A loop over panels would have too many instructions for clang to unroll.
template <int kDim, int kPitch, int... kPanels>
TESSERA_DEVICE void add_panels(const float* key, const Float4 (&query)[kDim / kFours],
                               Sums (&sums)[2], std::integer_sequence<int, kPanels...>) {
  (add_panel<kPanels * kPanel, kDim, kPitch>(key, query, sums), ...);
}

}  // namespace detail

template <int kDim, int kPitch>
TESSERA_DEVICE void products(const float* keys, const Float4 (&query)[kDim / kFours],
                             float (&score)[kSums]) {
  Sums sums[2];
  sums[0] = 0;
  sums[1] = 0;
  detail::add_panels<kDim, kPitch>(keys + lane() % kSums * kPitch + 4 * half(), query, sums,
                                   std::make_integer_sequence<int, kDim / kPanel>{});
  TESSERA_UNROLL
  for (int i = 0; i < kSums; ++i) {
    const int first = column_of(i), second = first + Matrix::kOwnRow;  // of either half
    const float a = sums[first / kSums][first % kSums], b = sums[second / kSums][second % kSums];
    score[i] = (half() == 0 ? a : b) + other_half(half() == 0 ? b : a);
  }
}

template <int kColumns, int kRun>
TESSERA_DEVICE void accumulate(const float* values, const float (&weight)[kSums],
                               Sums (&out)[kColumns / kBlock]) {
  const float* const value = values + lane() * kRun;
  const auto add = [&](int key, float w) {
    TESSERA_UNROLL
    for (int m = 0; m < kColumns / kBlock; m += kRun) {
      const auto run = *reinterpret_cast<const Run<kRun>*>(value + key * kColumns + m * kBlock);
      TESSERA_UNROLL
      for (int c = 0; c < kRun; ++c) multiply(out[m + c], run.column[c], w);
    }
    keep_order();
  };
  TESSERA_UNROLL
  for (int i = 0; i < kSums; ++i) {
    const float other = other_half(weight[i]);
    add(column_of(i), half() == 0 ? weight[i] : other);
    add(column_of(i) + Matrix::kOwnRow, half() == 0 ? other : weight[i]);
  }
}

#endif

}  // namespace tessera::hip::fp32
