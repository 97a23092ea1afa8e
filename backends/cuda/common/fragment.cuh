#pragma once
// Scores, weights and outputs as one thread of a matrix instruction holds them: the accumulator of
// mma.sync m16n8 and of wgmma alike. Of 16 rows a warp, a thread has rows lane/4 and lane/4 + 8,
// and of every eight columns the two from 2·(lane % 4) on:
//
//     element i     row half(i) = (i / 2) % 2, 8 rows apart     column 8·(i / 4) + i % 2 + own
//
// What happens to them is core/kernel's: mask, modifiers, online softmax, dropout.

#include <cstdint>

#include "core/kernel/arguments.hpp"
#include "core/kernel/lanes.hpp"
#include "core/kernel/mask.hpp"
#include "core/kernel/modifiers.hpp"
#include "core/kernel/philox.hpp"
#include "core/kernel/sequence.hpp"
#include "core/kernel/softmax.hpp"

namespace tessera::cuda {

using kernel::Index;

inline constexpr std::uint32_t kWarp = 0xFFFFFFFFu;

// The special function unit's 2^x: relative error 2^-22, results below 2^-126 are 0.
struct FragmentLanes : kernel::ScalarLanes {
  TESSERA_FN static float exp2(float x) {
#if defined(__CUDA_ARCH__)
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return kernel::ScalarLanes::exp2(x);
#endif
  }
};

__device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
// The first of the thread's columns among eight.
__device__ __forceinline__ int own_column() { return 2 * (lane() % 4); }
// The first of the thread's rows among sixteen.
__device__ __forceinline__ int own_row() { return lane() / 4; }

__device__ constexpr int half_of(int i) { return (i >> 1) & 1; }
__device__ constexpr int column_of(int i) { return 8 * (i / 4) + (i & 1); }

// The four threads of a row.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(kWarp, x, 1));
  return fmaxf(x, __shfl_xor_sync(kWarp, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(kWarp, x, 1);
  return x + __shfl_xor_sync(kWarp, x, 2);
}

// --- Mask ------------------------------------------------------------------------------------

// How many of the thread's columns of a row lie before the tile's column `end`.
__device__ __forceinline__ int columns_before(int end) {
  const int from_own = max(end - own_column(), 0);
  return from_own / 8 * 2 + min(from_own % 8, 2);
}
// The lowest bits, at most 32.
__device__ __forceinline__ std::uint32_t lowest(int count) {
  return count < 32 ? (1u << count) - 1 : ~0u;
}

// Hides what the thread's rows, which are the tile's rows `row`, do not see: kernel::hide, by a bit
// for each of a row's columns, from which one instruction makes a predicate.
template <int kCount>
__device__ __forceinline__ void hide(float (&score)[kCount], const kernel::TileBand& band,
                                     const int (&row)[2]) {
  static_assert(kCount <= 64);
  std::uint32_t seen[2];
  TESSERA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const kernel::Interval<int> see = band.row<FragmentLanes>(row[r]);
    seen[r] = lowest(columns_before(see.end)) & ~lowest(columns_before(see.begin));
  }
  TESSERA_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const std::uint32_t bit = 1u << (i / 4 * 2 + (i & 1));
    score[i] = (seen[half_of(i)] & bit) != 0 ? score[i] : kernel::kMinusInfinity;
  }
}

template <int kCount>
__device__ __forceinline__ void hide(float (&score)[kCount], const kernel::TileBand& band,
                                     int row) {
  hide(score, band, {row, row + 8});
}

// --- Modifiers -------------------------------------------------------------------------------

// Bias and boolean mask of one (batch, head), at the tile's first row and key.
struct ScoreData {
  const void* bias = nullptr;
  Index bias_at = 0, bias_row = 0, bias_column = 0;
  bool bias_fp32 = true;
  const std::uint8_t* mask = nullptr;
  Index mask_at = 0, mask_row = 0, mask_column = 0;
  int rows = 0, keys = 0;  // of the tile that exist
};

__device__ __forceinline__ ScoreData score_data(const kernel::ForwardArguments& a, Index batch,
                                                Index head, Index row, Index key, Index rows,
                                                Index keys) {
  ScoreData d;
  d.bias = a.bias.data;
  d.bias_row = a.bias.row;
  d.bias_column = a.bias.column;
  d.bias_at = batch * a.bias.batch + head * a.bias.head + row * a.bias.row + key * a.bias.column;
  d.bias_fp32 = a.bias_fp32;
  d.mask = static_cast<const std::uint8_t*>(a.boolean_mask.data);
  d.mask_row = a.boolean_mask.row;
  d.mask_column = a.boolean_mask.column;
  d.mask_at = batch * a.boolean_mask.batch + head * a.boolean_mask.head + row * d.mask_row +
              key * d.mask_column;
  d.rows = static_cast<int>(kernel::smaller(rows, 1 << 20));
  d.keys = static_cast<int>(kernel::smaller(keys, 1 << 20));
  return d;
}

// Products to scores in base 2.
template <class Element, int kCount>
__device__ __forceinline__ void modify(float (&score)[kCount], const kernel::ScoreModifiers& m,
                                       const kernel::TileDistance& distance, const ScoreData& data,
                                       int row) {
  const int own = own_column();
  TESSERA_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const int tile_row = row + 8 * half_of(i), column = own + column_of(i);
    const bool exists = tile_row < data.rows && column < data.keys;
    float bias = 0;
    bool visible = true;
    if (m.bias && exists) {
      const Index at = data.bias_at + tile_row * data.bias_row + column * data.bias_column;
      bias =
          data.bias_fp32 ? static_cast<const float*>(data.bias)[at] : Element::load(data.bias, at);
    }
    if (m.mask && exists)
      visible = data.mask[data.mask_at + tile_row * data.mask_row + column * data.mask_column] != 0;
    score[i] =
        kernel::modify<FragmentLanes>(m, score[i], distance, tile_row, column, bias, visible);
  }
}

// --- Online softmax --------------------------------------------------------------------------

// The states of the thread's two rows, the same in the four threads of a row but for the sum. A
// weight is 2^(score · scale − origin): a score times `scale`, which is positive, is in base 2, and
// the origin was the row's maximum when it was set. It stays until a score is beyond the limit, a
// little above that maximum: until then O needs no factor.
struct Rows {
  float limit[2] = {kernel::kMinusInfinity, kernel::kMinusInfinity};  // of scores not scaled yet
  float origin[2] = {0, 0};
  float sum[2] = {0, 0};  // of the thread's own columns until `finish`
  // What rounding leaves of the score of a large maximum can be more than 1. Where `apart`, origin
  // is such a maximum as it is, and is subtracted before the scale multiplies.
  bool apart[2] = {false, false};
  bool any_apart = false;  // of the warp's
};

template <int kCount>
__device__ __forceinline__ void largest(const float (&score)[kCount], float (&max)[2]) {
  TESSERA_UNROLL
  for (int r = 0; r < 2; ++r) {
    float a = score[2 * r], b = score[2 * r + 1];
    TESSERA_UNROLL
    for (int i = 4; i < kCount; i += 4) {
      a = fmaxf(a, score[i + 2 * r]);
      b = fmaxf(b, score[i + 2 * r + 1]);
    }
    max[r] = fmaxf(a, b);
  }
}

// Where a row's weights have their origin, in base 2.
__device__ __forceinline__ float base2_origin(const Rows& rows, int r, float scale) {
  if (rows.limit[r] == kernel::kMinusInfinity) return kernel::kMinusInfinity;  // nothing seen
  return rows.apart[r] ? rows.origin[r] * scale : rows.origin[r];
}

// Moves a row's origin to the maximum `to`; returns the factor of what was computed beside the old
// one. Of each product and sum only the result is rounded: factors fit the weights exactly.
__device__ __forceinline__ float move_origin(Rows& rows, int r, float to, float scale, float rise) {
  const float from = rows.origin[r], product = __fmul_rn(to, scale);
  const bool was_apart = rows.apart[r], apart = fabsf(product) > kernel::kFusedLimit;
  const float origin = apart ? to : product;
  float fall;
  if (was_apart) {
    fall = apart ? (from - to) * scale : fmaf(from, scale, -product);
  } else {
    fall = apart ? fmaf(-to, scale, from) : from - product;
  }
  const bool first = rows.limit[r] == kernel::kMinusInfinity;
  rows.origin[r] = origin;
  rows.apart[r] = apart;
  rows.limit[r] = __fadd_rd(to, __fdividef(rise, scale));
  return first ? 0.0f : FragmentLanes::exp2(fall);
}

// kernel::advance_lazily of scores not scaled yet, by a vote of the warp's. If one of its rows has
// a score beyond its limit, returns true: then O must be scaled by `factor`, which is 1 for the
// other rows. NaN is never beyond: it shows in the weights.
template <class Element, int kCount>
__device__ __forceinline__ bool advance(const float (&score)[kCount], Rows& rows, float scale,
                                        float (&factor)[2]) {
  float max[2];
  largest(score, max);
  if (!__any_sync(kWarp, max[0] > rows.limit[0] || max[1] > rows.limit[1])) return false;
  TESSERA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const float next = quad_max(max[r]);
    factor[r] = next > rows.limit[r] ? move_origin(rows, r, next, scale, Element::kRise) : 1.0f;
    rows.sum[r] *= factor[r];
  }
  rows.any_apart = __any_sync(kWarp, rows.apart[0] || rows.apart[1]);
  return true;
}

// Scores to weights, which are added to the sums.
template <int kCount>
__device__ __forceinline__ void weigh(float (&score)[kCount], Rows& rows, float scale) {
  float origin[2] = {rows.origin[0], rows.origin[1]};
  if (rows.any_apart) {
    TESSERA_UNROLL
    for (int i = 0; i < kCount; ++i)
      if (rows.apart[half_of(i)]) score[i] -= rows.origin[half_of(i)];
    TESSERA_UNROLL
    for (int r = 0; r < 2; ++r)
      if (rows.apart[r]) origin[r] = 0;
  }
  float sum[4] = {0, 0, 0, 0};
  TESSERA_UNROLL
  for (int i = 0; i < kCount; ++i) {
    score[i] = FragmentLanes::exp2(FragmentLanes::fma(score[i], scale, -origin[half_of(i)]));
    sum[i & 3] += score[i];
  }
  rows.sum[0] += sum[0] + sum[1];
  rows.sum[1] += sum[2] + sum[3];
}

// Weights that are dropped become 0, after the sums have counted them. The tile's first key is a
// multiple of 8.
template <int kCount>
__device__ __forceinline__ void drop(float (&weight)[kCount], const kernel::DropoutStream& stream,
                                     Index row_first, int row, Index key_first) {
  const auto own = static_cast<std::uint32_t>(own_column());
  TESSERA_UNROLL
  for (int r = 0; r < 2; ++r) {
    const std::uint32_t at = kernel::dropout_rows<FragmentLanes>(row_first, row + 8 * r);
    TESSERA_UNROLL
    for (int g = 0; g < kCount / 4; ++g) {
      std::uint32_t words[4];
      kernel::draw<FragmentLanes>(stream, at, static_cast<std::uint32_t>(key_first / 8 + g), words);
      const std::uint32_t mine =
          own < 4 ? (own < 2 ? words[0] : words[1]) : (own < 6 ? words[2] : words[3]);
      const std::uint32_t pair[4] = {mine, mine, mine, mine};
      TESSERA_UNROLL
      for (std::uint32_t c = 0; c < 2; ++c)
        if (!kernel::kept<FragmentLanes>(stream, pair, c)) weight[4 * g + 2 * r + c] = 0;
    }
  }
}

template <int kCount>
__device__ __forceinline__ void scale_rows(float (&out)[kCount], const float (&factor)[2]) {
  TESSERA_UNROLL
  for (int i = 0; i < kCount; ++i) out[i] *= factor[half_of(i)];
}

// Weights as the first operand of the product with values: word w holds elements 2w and 2w + 1.
template <class Element, int kCount>
__device__ __forceinline__ void pack(const float (&weight)[kCount],
                                     std::uint32_t (&words)[kCount / 2]) {
  TESSERA_UNROLL
  for (int i = 0; i < kCount / 2; ++i) words[i] = Element::pack(weight[2 * i], weight[2 * i + 1]);
}

// --- The end ---------------------------------------------------------------------------------

// What the thread's two rows are divided by, and their lse.
struct Finished {
  float factor[2];  // of O; 0 also for a row that saw nothing
  bool seen[2];     // else its output is 0, whatever its O
  float lse[2];
};

// live[r]: is the row below query_end? `sink` in natural units, −∞ for none.
__device__ __forceinline__ Finished finish(const Rows& rows, float scale, const bool (&live)[2],
                                           float sink, const kernel::Dropout& dropout) {
  Finished f;
  TESSERA_UNROLL
  for (int r = 0; r < 2; ++r) {
    kernel::SoftmaxState<float> state{base2_origin(rows, r, scale), quad_sum(rows.sum[r])};
    if (!live[r]) state = kernel::empty_state<FragmentLanes>();
    f.seen[r] = state.sum != 0.0f && dropout.threshold < 65536u;
    f.factor[r] = dropout.keep_scale();
    if (sink != kernel::kMinusInfinity && live[r])
      f.factor[r] *= kernel::add_sink<FragmentLanes>(state, kernel::to_base2<FragmentLanes>(sink));
    f.factor[r] *= state.sum == 0.0f ? 0.0f : __fdividef(1.0f, state.sum);
    f.lse[r] = kernel::log_sum_exp(state.max, state.sum);
  }
  return f;
}

// The four threads of a row swap words, so that each holds 16 contiguous bytes: of 32 columns those
// from 8·(lane % 4) on. Word g of a thread is its pair of columns of the g-th eight.
__device__ __forceinline__ uint4 transpose_quad(const std::uint32_t (&word)[4]) {
  const bool odd = lane() & 1, high = lane() & 2;
  const std::uint32_t keep0 = odd ? word[1] : word[0], keep1 = odd ? word[3] : word[2];
  const std::uint32_t got0 = __shfl_xor_sync(kWarp, odd ? word[0] : word[1], 1);
  const std::uint32_t got1 = __shfl_xor_sync(kWarp, odd ? word[2] : word[3], 1);
  const uint2 pair0 = odd ? make_uint2(got0, keep0) : make_uint2(keep0, got0);
  const uint2 pair1 = odd ? make_uint2(got1, keep1) : make_uint2(keep1, got1);
  const uint2 keep = high ? pair1 : pair0, send = high ? pair0 : pair1;
  const uint2 got =
      make_uint2(__shfl_xor_sync(kWarp, send.x, 2), __shfl_xor_sync(kWarp, send.y, 2));
  return high ? make_uint4(got.x, got.y, keep.x, keep.y) : make_uint4(keep.x, keep.y, got.x, got.y);
}

// Where a warp's 16 rows of out and lse go.
struct OutRows {
  void* out;     // of the tile's row 0
  Index stride;  // of out, between rows
  float* lse;    // of the tile's row 0; null: not wanted
  Index lse_stride;
  int rows;     // of the tile that exist
  int columns;  // of out
};

template <class Element, int kCount>
__device__ __forceinline__ std::uint32_t finished_pair(const float (&out)[kCount],
                                                       const Finished& f, int i) {
  const int r = half_of(i);
  return f.seen[r] ? Element::pack(out[i] * f.factor[r], out[i + 1] * f.factor[r]) : 0u;
}

// O times the factors, rounded, from registers to memory; `row` is the thread's first row of the
// tile, `column` the first of out's columns that these are. Rows are aligned to 16 bytes.
template <class Element, int kCount>
__device__ __forceinline__ void store_out(const float (&out)[kCount], const Finished& f,
                                          const OutRows& to, int row, int column = 0) {
  static_assert(kCount % 16 == 0);
  using Type = typename Element::Type;
  Type* const line = static_cast<Type*>(to.out) + row * to.stride + column;
  TESSERA_UNROLL
  for (int r = 0; r < 2; ++r) {
    TESSERA_UNROLL
    for (int block = 0; block < kCount / 16; ++block) {
      std::uint32_t word[4];
      TESSERA_UNROLL
      for (int g = 0; g < 4; ++g)
        word[g] = finished_pair<Element>(out, f, 16 * block + 4 * g + 2 * r);
      const uint4 words = transpose_quad(word);
      const int at = 32 * block + 8 * (lane() % 4);
      if (row + 8 * r < to.rows && column + at < to.columns)
        *reinterpret_cast<uint4*>(line + 8 * r * to.stride + at) = words;
    }
  }
}

// Likewise of rows that are not aligned, an element at a time.
template <class Element, int kCount>
__device__ __forceinline__ void store_unaligned(const float (&out)[kCount], const Finished& f,
                                                const OutRows& to, int row, int column = 0) {
  TESSERA_UNROLL
  for (int i = 0; i < kCount; i += 2) {
    const std::uint32_t pair = finished_pair<Element>(out, f, i);
    const int at_row = row + 8 * half_of(i), at = column + column_of(i) + own_column();
    if (at_row >= to.rows || at >= to.columns) continue;
    auto* const halves = static_cast<std::uint16_t*>(to.out) + at_row * to.stride + at;
    halves[0] = static_cast<std::uint16_t>(pair);
    halves[1] = static_cast<std::uint16_t>(pair >> 16);
  }
}

__device__ __forceinline__ void store_lse(const Finished& f, const OutRows& to, int row) {
  if (to.lse == nullptr || lane() % 4 != 0) return;
  TESSERA_UNROLL
  for (int r = 0; r < 2; ++r)
    if (row + 8 * r < to.rows) to.lse[(row + 8 * r) * to.lse_stride] = f.lse[r];
}

}  // namespace tessera::cuda
