#pragma once
// Elements, shared memory and the two products of the simt kernel.
//
// A block is 8 × 16 threads. Thread (y, x) computes the scores of lines y + 8·i and keys x + 16·j
// of a step, and of the output lines y + 8·i, columns 64·p + 4·x to + 3. The 16 threads of a line
// lie in one warp. Strides in shared memory are 4 numbers more than a multiple of 32, so that eight
// neighbouring lines or keys lie in different banks.

#include <type_traits>

#include "backends/cuda/common/element.cuh"
#include "backends/cuda/common/fragment.cuh"
#include "backends/cuda/simt/ptx.cuh"
#include "backends/cuda/simt/simt.hpp"

namespace tessera::cuda::simt {

inline constexpr int kThreads = 128;
inline constexpr int kAcross = 16;                // threads of a line
inline constexpr int kDown = kThreads / kAcross;  // lines apart of a thread's lines
inline constexpr int kOwnKeys = kKeys / kAcross;  // of a step, kAcross apart
inline constexpr int kPanel = 64;                 // head dimensions that are moved at a time
inline constexpr int kVector = kPanel / kAcross;  // neighbours that a thread moves at a time
inline constexpr int kPad = 4;
static_assert(kVector == 4);

__device__ __forceinline__ int across() { return static_cast<int>(threadIdx.x) % kAcross; }
__device__ __forceinline__ int down() { return static_cast<int>(threadIdx.x) / kAcross; }

// --- Elements --------------------------------------------------------------------------------

struct Fp32 {
  using Type = float;
  static constexpr bool kHalf = false;
  __device__ static __forceinline__ float load(const void* data, std::int64_t i) {
    return static_cast<const float*>(data)[i];
  }
};

// Four elements to fp32; asynchronously if they are fp32. Not there: zeros, nothing is read.
template <class Element>
__device__ __forceinline__ void copy4(float* to, const typename Element::Type* from, bool there,
                                      bool aligned) {
  if constexpr (std::is_same_v<Element, Fp32>) {
    if (aligned) {
      ptx::cp_async_16(to, from, there ? 16 : 0);
    } else {
      TESSERA_UNROLL
      for (int c = 0; c < 4; ++c) ptx::cp_async_4(to + c, from + c, there ? 4 : 0);
    }
  } else {
    float4 x{0, 0, 0, 0};
    if (there && aligned) {
      const uint2 words = *reinterpret_cast<const uint2*>(from);
      const auto* const four = reinterpret_cast<const typename Element::Type*>(&words);
      x = {Element::load(four, 0), Element::load(four, 1), Element::load(four, 2),
           Element::load(four, 3)};
    } else if (there) {
      x = {Element::load(from, 0), Element::load(from, 1), Element::load(from, 2),
           Element::load(from, 3)};
    }
    *reinterpret_cast<float4*>(to) = x;
  }
}

// Four numbers, rounded to elements.
template <class Element>
__device__ __forceinline__ void store4(typename Element::Type* to, float4 x, bool aligned) {
  if constexpr (std::is_same_v<Element, Fp32>) {
    if (aligned) {
      *reinterpret_cast<float4*>(to) = x;
    } else {
      to[0] = x.x;
      to[1] = x.y;
      to[2] = x.z;
      to[3] = x.w;
    }
  } else {
    const uint2 words{Element::pack(x.x, x.y), Element::pack(x.z, x.w)};
    if (aligned) {
      *reinterpret_cast<uint2*>(to) = words;
    } else {
      auto* const bits = reinterpret_cast<std::uint16_t*>(to);
      bits[0] = static_cast<std::uint16_t>(words.x);
      bits[1] = static_cast<std::uint16_t>(words.x >> 16);
      bits[2] = static_cast<std::uint16_t>(words.y);
      bits[3] = static_cast<std::uint16_t>(words.y >> 16);
    }
  }
}

// Accumulate::fp16
__device__ __forceinline__ float round_to_fp16(float x) { return __half2float(__float2half_rn(x)); }

// --- Traits ----------------------------------------------------------------------------------

// What a thread block works on; uniform, and in shared memory for want of registers.
struct Block {
  kernel::Sequence sequence;     // its band has the keys of the block's part alone
  Index batch = 0;               // or segment
  Index head = 0;                // of line 0; Lines::OfGroup: the group's first
  Index key_head = 0;            // that the lines read
  Index line_first = 0;          // inside the head, or the group
  Index row_first = 0;           // lines count their rows from it
  Index part = 0;                // of the keys
  int lines = 0;                 // that have an output
  kernel::Interval<Index> rows;  // before query_end, among which the lines' are
  kernel::Interval<Index> any;   // keys that some of these rows see
  kernel::Interval<Index> all;   // keys that all of them see
};

template <class Element_, int kDim_, Lines kLines_>
struct Traits {
  using Element = Element_;
  using Type = typename Element::Type;
  // fp32 inputs are judged by fp32's roundoff.
  using Lanes =
      std::conditional_t<std::is_same_v<Element, Fp32>, kernel::ScalarLanes, FragmentLanes>;
  static constexpr Lines kLines = kLines_;
  static constexpr int kRows = rows_of(kDim_, kLines);
  static constexpr int kOwn = kRows / kDown;  // lines of a thread
  static constexpr int kPanels = kDim_ / kPanel;
  static constexpr int kStages = kDim_ > 256 && kLines == Lines::OfHead ? 1 : 2;
  // fp32 adds thousands of keys in stretches: see kStretch.
  static constexpr bool kByStretches = !Element::kHalf;
  // Blocks of a multiprocessor that registers must allow.
  static constexpr int kBlocks = kDim_ <= 64 ? 3 : 2;
  static_assert(kDim_ % kPanel == 0 && kRows % kDown == 0);

  using Panel = float[kKeys][kPanel + kPad];
  struct Shared {
    alignas(16) float query[kRows][kDim_ + kPad];
    alignas(16) Panel panel[kStages];  // of keys, or of values
    alignas(16) float weight[kRows][kKeys + kPad];
    float factor[kRows];  // of O in this step
    Block block;
  };
  static_assert(sizeof(Shared) <= 99 * 1024, "what every device from 8.0 on has");
};

// --- Products --------------------------------------------------------------------------------

template <bool kFirst, class A>
__device__ __forceinline__ A& select(A& first, A& second) {
  if constexpr (kFirst)
    return first;
  else
    return second;
}

// score += query · panelᵀ over `width` dims, a multiple of 4. A panel's products are summed apart:
// long sums of fp32 lose less in short runs.
template <class T>
__device__ __forceinline__ void multiply(const typename T::Shared& shared,
                                         const typename T::Panel& panel, int dim_first, int width,
                                         float (&score)[T::kOwn][kOwnKeys]) {
  float sum[T::kOwn][kOwnKeys] = {};
  auto& run = select<(T::kPanels > 1)>(sum, score);
#pragma unroll 2
  for (int d = 0; d < width; d += 4) {
    float4 key[kOwnKeys];
    TESSERA_UNROLL
    for (int j = 0; j < kOwnKeys; ++j)
      key[j] = *reinterpret_cast<const float4*>(&panel[across() + kAcross * j][d]);
    TESSERA_UNROLL
    for (int i = 0; i < T::kOwn; ++i) {
      const float4 query =
          *reinterpret_cast<const float4*>(&shared.query[down() + kDown * i][dim_first + d]);
      TESSERA_UNROLL
      for (int j = 0; j < kOwnKeys; ++j) {
        run[i][j] = fmaf(query.x, key[j].x, run[i][j]);
        run[i][j] = fmaf(query.y, key[j].y, run[i][j]);
        run[i][j] = fmaf(query.z, key[j].z, run[i][j]);
        run[i][j] = fmaf(query.w, key[j].w, run[i][j]);
      }
    }
  }
  if constexpr (T::kPanels > 1) {
    TESSERA_UNROLL
    for (int i = 0; i < T::kOwn; ++i) {
      TESSERA_UNROLL
      for (int j = 0; j < kOwnKeys; ++j) score[i][j] += run[i][j];
    }
  }
}

// out = out · factor + weight · panel over keys [from, to).
template <class T>
__device__ __forceinline__ void accumulate(const typename T::Shared& shared,
                                           const typename T::Panel& panel, int from, int to,
                                           bool round, float (&out)[T::kOwn][kVector]) {
  float run[T::kOwn][kVector] = {};
#pragma unroll 2
  for (int key = from / 4 * 4; key < to; key += 4) {
    float4 value[4];
    TESSERA_UNROLL
    for (int k = 0; k < 4; ++k)
      value[k] = *reinterpret_cast<const float4*>(&panel[key + k][kVector * across()]);
    TESSERA_UNROLL
    for (int i = 0; i < T::kOwn; ++i) {
      const float4 four = *reinterpret_cast<const float4*>(&shared.weight[down() + kDown * i][key]);
      const float weight[4] = {four.x, four.y, four.z, four.w};
      TESSERA_UNROLL
      for (int k = 0; k < 4; ++k) {
        run[i][0] = fmaf(weight[k], value[k].x, run[i][0]);
        run[i][1] = fmaf(weight[k], value[k].y, run[i][1]);
        run[i][2] = fmaf(weight[k], value[k].z, run[i][2]);
        run[i][3] = fmaf(weight[k], value[k].w, run[i][3]);
      }
    }
  }
  TESSERA_UNROLL
  for (int i = 0; i < T::kOwn; ++i) {
    const float factor = shared.factor[down() + kDown * i];
    TESSERA_UNROLL
    for (int c = 0; c < kVector; ++c) {
      if constexpr (T::Element::kHalf) {
        if (round) run[i][c] = round_to_fp16(run[i][c]);
      }
      out[i][c] = fmaf(out[i][c], factor, run[i][c]);
    }
  }
}

}  // namespace tessera::cuda::simt
