#pragma once
// A few query rows against many keys: bound by reading K and V, so every row of the key head's
// group is computed from one reading, lanes along the head dimension, the operands as they lie in
// memory.
//
//     for each block of keys
//       for each group of keys      scores = q·k, all rows       lanes: dim
//       weigh                       scores to weights            lanes: keys
//       for each group of columns   out += weights·v, all rows   lanes: dim_v
//
// Rows are those of all query heads of the group, query head by query head. Values of a block are
// fetched while its scores are computed, the next block's keys all along (fetch.hpp).

#include "backends/kokkos/vector/decode_lanes.hpp"
#include "backends/kokkos/vector/fetch.hpp"
#include "backends/kokkos/vector/forward.hpp"
#include "backends/kokkos/vector/modify.hpp"
#include "core/kernel/split.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

// Register tiles: rows x keys of scores, rows x vectors of outputs.
inline constexpr int kDecodeRows = kRegisters == 32 ? 4 : 2;
inline constexpr int kDecodeKeys = 4;
inline constexpr int kDecodeVectors = 4;
inline constexpr Index kFetchKeys = 4;  // keys whose values are added between two fetches

// Keys whose scores for kRows rows are summed across lanes together: they fill vectors.
template <int kRows>
inline constexpr int kScoreKeys = kernel::larger(kDecodeKeys, kWidth / kRows);
inline constexpr int kStepKeys = kScoreKeys<1>;

// What a task works with.
struct DecodeBlock {
  Index rows;
  Index dim;     // floats a row of `query`: whole vectors
  Index dim_v;   // likewise of `out`
  float* query;  // [rows][dim]
  float* out;    // [rows][dim_v], unnormalised
  float* max;    // [rows]
  float* sum;
  float* score;    // [rows][kDecodeBlock]
  float* factor;   // [rows]: of what a row has accumulated before the block
  float* rest;     // [rows]: what rounding took from `sum`
  float* stretch;  // as `out`, of this stretch of keys; `out` itself where stretches are not told
                   // apart
  float* out_max;  // [rows]: maxima that `out` belongs to, where they are
};

// Products of kRows rows from `row` on with kKeys keys from `key` on, not yet summed across lanes.
template <class T, int kRows, int kKeys>
TESSERA_FN void multiply_keys(const DecodeBlock& b, const Rows<T>& keys, Index key, Index row,
                              Index dim, Float (&sum)[kRows][kKeys]) {
  const T* k[kKeys];
  TESSERA_UNROLL
  for (int j = 0; j < kKeys; ++j) k[j] = keys[key + j];
  const float* const query = b.query + row * b.dim;
  Index column = 0;
  for (; column + kSpan <= dim; column += kSpan) {
    Float operand[kKeys][2];
    TESSERA_UNROLL
    for (int j = 0; j < kKeys; ++j) load_span(k[j] + column, operand[j]);
    TESSERA_UNROLL
    for (int v = 0; v < 2; ++v) {
      TESSERA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const Float q = load(query + r * b.dim + column + v * kWidth);
        TESSERA_UNROLL
        for (int j = 0; j < kKeys; ++j) sum[r][j] += q * operand[j][v];
      }
    }
  }
  for (; column < dim; column += kWidth) {
    TESSERA_UNROLL
    for (int j = 0; j < kKeys; ++j) {
      const Float operand = load_part(k[j] + column, dim - column);
      TESSERA_UNROLL
      for (int r = 0; r < kRows; ++r) sum[r][j] += load(query + r * b.dim + column) * operand;
    }
  }
}

// score[row][key] of kStepKeys keys from `key` on, for kRows rows. Fetches as many rows of values
// and half as many keys (the others follow while values are added).
template <class T, int kRows>
TESSERA_FN void score_step(const DecodeBlock& b, const Rows<T>& keys, Index key, Index row,
                           Index dim, float* score, Fetch& value_fetch, Fetch& key_fetch) {
  Fetch value_ahead = value_fetch, key_ahead = key_fetch;  // in registers
  constexpr int kTileKeys = kScoreKeys<kRows>;
  for (int first = 0; first < kStepKeys; first += kTileKeys) {
    Float sums[kRows * kTileKeys / kWidth][kWidth];
    TESSERA_UNROLL
    for (int group = 0; group < kTileKeys; group += kDecodeKeys) {
      const Index at_key = key + first + group;
      value_ahead.fetch_rows(kDecodeKeys);
      key_ahead.fetch_rows(kDecodeKeys / 2);
      Float sum[kRows][kDecodeKeys] = {};
      multiply_keys(b, keys, at_key, row, dim, sum);
      TESSERA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        TESSERA_UNROLL
        for (int j = 0; j < kDecodeKeys; ++j) {
          const int at = r * kTileKeys + group + j;
          sums[at / kWidth][at % kWidth] = sum[r][j];
        }
      }
    }
    float all[kRows][kTileKeys];
    TESSERA_UNROLL
    for (int i = 0; i < kRows * kTileKeys / kWidth; ++i)
      store(&all[0][0] + i * kWidth, sum_all_lanes(sums[i]));
    TESSERA_UNROLL
    for (int r = 0; r < kRows; ++r)
      __builtin_memcpy(score + (row + r) * kDecodeBlock + first, all[r], sizeof all[r]);
  }
  value_fetch = value_ahead;
  key_fetch = key_ahead;
}

// Scores of keys [key, key + kStepKeys) for all rows: q·k.
template <class T>
TESSERA_FN void decode_scores(const DecodeBlock& b, const Rows<T>& keys, Index key, Index dim,
                              float* score, Fetch& value_fetch, Fetch& key_fetch) {
  // The first rows fetch the values, the last ones the keys.
  Fetch nothing;
  Index row = 0;
  for (; row + kDecodeRows <= b.rows; row += kDecodeRows) {
    score_step<T, kDecodeRows>(b, keys, key, row, dim, score, row == 0 ? value_fetch : nothing,
                               row + kDecodeRows == b.rows ? key_fetch : nothing);
  }
  for (; row < b.rows; ++row) {
    score_step<T, 1>(b, keys, key, row, dim, score, row == 0 ? value_fetch : nothing,
                     row + 1 == b.rows ? key_fetch : nothing);
  }
}

// Scores of one key.
template <class T>
TESSERA_FN void decode_score(const DecodeBlock& b, const Rows<T>& keys, Index key, Index dim,
                             float* score) {
  for (Index row = 0; row < b.rows; ++row) {
    Float sum[1][1] = {};
    multiply_keys(b, keys, key, row, dim, sum);
    score[row * kDecodeBlock] = sum_lanes(sum[0][0]);
  }
}

// kVectors vectors of columns: whole spans or, one vector, what is behind them.
template <class T, int kV>
TESSERA_FN void load_columns(const T* p, Index left, Float (&operand)[kV]) {
  if constexpr (kV == 1) {
    operand[0] = load_part(p, left);
  } else {
    TESSERA_UNROLL
    for (int v = 0; v < kV; v += 2) {
      Float two[2];
      load_span(p + v * kWidth, two);
      operand[v] = two[0], operand[v + 1] = two[1];
    }
  }
}

// stretch = stretch · factor + weights · values of keys [from, to), for kRows rows and kVectors
// vectors of columns. With kRound (Accumulate::fp16) the product is rounded before it is added.
// Fetches `fetch_lines` every kFetchKeys keys.
template <class T, int kRows, int kVectors, bool kRound>
TESSERA_FN void decode_values(const DecodeBlock& b, const Rows<T>& values, Index first, Index from,
                              Index to, Index row, Index column, Index dim_v, const float* factor,
                              Fetch& fetch, Index fetch_lines) {
  float* const out = b.stretch + row * b.dim_v + column;
  const float* const weight = b.score + row * kDecodeBlock - first;
  Float sum[kRows][kVectors] = {};
  Fetch ahead = fetch;
  for (Index begin = from; begin < to; begin += kFetchKeys) {
    ahead.fetch_lines(fetch_lines);
    const Index end = smaller(begin + kFetchKeys, to);
    for (Index key = begin; key < end; ++key) {
      const T* const value = values[key] + column;
      Float operand[kVectors];
      load_columns(value, dim_v - column, operand);
      TESSERA_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const Float w = broadcast(weight[r * kDecodeBlock + key]);
        TESSERA_UNROLL
        for (int v = 0; v < kVectors; ++v) sum[r][v] += w * operand[v];
      }
    }
  }
  fetch = ahead;
  TESSERA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    TESSERA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* const to_out = out + r * b.dim_v + v * kWidth;
      if constexpr (kRound) sum[r][v] = round_to_fp16(sum[r][v]);
      store(to_out, load(to_out) * broadcast(factor[row + r]) + sum[r][v]);
    }
  }
}

// The same for all rows.
template <class T, int kVectors, bool kRound>
TESSERA_FN void decode_column(const DecodeBlock& b, const Rows<T>& values, Index first, Index from,
                              Index to, Index column, Index dim_v, const float* factor,
                              Fetch& fetch, Index fetch_lines) {
  Index row = 0;
  for (; row + kDecodeRows <= b.rows; row += kDecodeRows) {
    decode_values<T, kDecodeRows, kVectors, kRound>(b, values, first, from, to, row, column, dim_v,
                                                    factor, fetch, fetch_lines);
  }
  for (; row < b.rows; ++row) {
    decode_values<T, 1, kVectors, kRound>(b, values, first, from, to, row, column, dim_v, factor,
                                          fetch, fetch_lines);
  }
}

// Scores of one row, [0, count) keys from `first` on, become weights; returns the factor for what
// the row has accumulated.
template <class T>
static float decode_weigh(const DecodeTask& task, const DecodeBlock& b, Index row, Index first,
                          Index count, Fetch& fetch) {
  const kernel::ForwardArguments& a = *task.arguments;
  const kernel::Sequence& s = *task.sequence;
  const Index group_row = task.row_first + row;
  const Index head = task.key_head * (a.head_q / a.head_k) + group_row / s.rows;
  const Index query = group_row % s.rows;
  float* const score = b.score + row * kDecodeBlock;
  const bool general = a.general();
  kernel::ScoreModifiers m;
  if (general) m = kernel::score_modifiers(a, task.batch, head);
  const kernel::TileDistance distance = kernel::distance_to(s.diagonal, query, first);
  const auto seen = kernel::relative_to(s.band, query, first).row<kernel::ScalarLanes>(0);
  const kernel::Interval<Int> see{Lanes::whole(seen.begin),
                                  Lanes::whole(static_cast<int>(smaller(seen.end, count)))};
  const auto at = [&](const kernel::ScoreOperand& operand, Index key) {
    return score_offset(operand, task.batch, head, query, first + key);
  };
  Float top = broadcast(kernel::kMinusInfinity);
  for (Index key = 0; key < count; key += kWidth) {
    fetch.fetch_lines(1);
    const Int column = iota() + Lanes::whole(static_cast<int>(key));
    Float value = load(score + key);
    if (a.accumulate_fp16) value = round_to_fp16(value);
    if (general) {
      Float bias{};
      Int visible = Float{} == Float{};
      for (int i = 0; i < kWidth && key + i < count; ++i) {
        if (m.bias) {
          bias[i] = a.bias_fp32
                        ? load1(static_cast<const float*>(a.bias.data) + at(a.bias, key + i))
                        : load1(static_cast<const T*>(a.bias.data) + at(a.bias, key + i));
        }
        if (m.mask) {
          visible[i] =
              -static_cast<int>(static_cast<const std::uint8_t*>(
                                    a.boolean_mask.data)[at(a.boolean_mask, key + i)] != 0);
        }
      }
      value = kernel::modify<Lanes>(m, value, distance, Int{}, column, bias, visible);
    }
    value = kernel::hide<Lanes>(value, see, column);
    top = kernel::observe<Lanes>(top, value);
    store(score + key, value);
  }
  kernel::SoftmaxState<float> state{b.max[row], b.sum[row]};
  // A NaN may be lost here: its weight is NaN all the same.
  const float factor =
      kernel::advance_lazily<kernel::ScalarLanes>(state, largest_lane(top), a.accumulate_fp16);
  const Float origin = broadcast(kernel::origin<kernel::ScalarLanes>(state.max));
  Float sum{};
  for (Index key = 0; key < count; key += kWidth) {
    fetch.fetch_lines(1);
    const Float w = kernel::weight<Lanes>(load(score + key), origin);
    sum += w;
    store(score + key, w);
  }
  b.max[row] = state.max;
  b.rest[row] *= factor;
  b.sum[row] = state.sum;
  kernel::add_keeping_rest(b.sum[row], b.rest[row], sum_lanes(sum));
  if (a.dropout.threshold != 0) {
    const kernel::DropoutStream stream =
        kernel::dropout_stream(a.dropout, a.head_q, task.batch, head);
    for (Index group = 0; group < count; group += 8) {
      std::uint32_t words[4];
      kernel::draw<kernel::ScalarLanes>(stream, static_cast<std::uint32_t>(query),
                                        static_cast<std::uint32_t>((first + group) / 8), words);
      for (std::uint32_t c = 0; c < 8; ++c) {
        if (!kernel::kept<kernel::ScalarLanes>(stream, words, c)) score[group + c] = 0;
      }
    }
  }
  return factor;
}

// The stretch's O joins that of earlier ones, as in forward.hpp.
TESSERA_FN void end_stretch(const DecodeBlock& b) {
  for (Index row = 0; row < b.rows; ++row) {
    const float factor =
        kernel::part_factor<kernel::ScalarLanes>({b.max[row], 0}, {b.out_max[row], 0});
    b.out_max[row] = b.max[row];
    for (Index at = row * b.dim_v; at < (row + 1) * b.dim_v; at += kWidth) {
      Float sum = load(b.out + at) * broadcast(factor), rest{};
      kernel::add_keeping_finite_rest(sum, rest, load(b.stretch + at));
      store(b.out + at, sum);
      store(b.stretch + at, rest);
    }
  }
}

template <class T, bool kRound>
static void decode_rows(const DecodeTask& task) {
  const kernel::ForwardArguments& a = *task.arguments;
  const kernel::Sequence& s = *task.sequence;
  const DecodeScratch at = decode_layout(task.row_last - task.row_first, a.dim, a.dim_v);
  DecodeBlock b{task.row_last - task.row_first, decode_columns(a.dim),   decode_columns(a.dim_v),
                task.scratch + at.query,        task.partial + at.out,   task.partial + at.max,
                task.partial + at.sum,          task.scratch + at.score, task.scratch + at.factor,
                task.scratch + at.rest,         task.partial + at.out,   task.scratch + at.out_max};
  constexpr bool kByStretches = __is_same(T, float);
  if (kByStretches) b.stretch = task.scratch + at.stretch;
  const float scale = a.general() ? 1.0f : a.scale * kernel::kLog2E;
  const Index first_head = task.key_head * (a.head_q / a.head_k);
  kernel::Interval<Index> any{s.keys, 0};
  for (Index row = 0; row < b.rows; ++row) {
    const Index query = (task.row_first + row) % s.rows;
    const Index head = first_head + (task.row_first + row) / s.rows;
    const bool live = query < s.query_end;
    const T* const from = rows_of<T>(a.query, s.batch, head, s.query + query).data;
    for (Index column = 0; column < b.dim; column += 8) {
      store_as(b.query + row * b.dim + column,
               live && column < a.dim ? load8(from + column) * scale : Float8{});
    }
    to_load_order<T>(b.query + row * b.dim, a.dim);
    for (Index column = 0; column < b.dim_v; column += 8) {
      store_as(b.out + row * b.dim_v + column, Float8{});
      store_as(b.stretch + row * b.dim_v + column, Float8{});
    }
    b.max[row] = b.out_max[row] = kernel::kMinusInfinity;
    b.sum[row] = b.rest[row] = 0;
    if (!live) continue;
    const auto seen = s.band.row(query);
    if (seen.begin >= seen.end) continue;
    any = {smaller(any.begin, seen.begin), larger(any.end, seen.end)};
  }
  any = {larger(any.begin, task.keys.begin), smaller(any.end, task.keys.end)};
  if (any.begin >= any.end) return;
  const auto keys = rows_of<T>(a.key, s.batch, task.key_head, s.key);
  const auto values = rows_of<T>(a.value, s.batch, task.key_head, s.key);
  const Index whole = a.dim_v / kSpan * kSpan;
  // Loops over a block's values.
  const Index turns =
      (whole / (kDecodeVectors * kWidth) + whole % (kDecodeVectors * kWidth) / kSpan +
       (a.dim_v > whole ? kernel::count_blocks(a.dim_v - whole, Index{kWidth}) : 0)) *
      (b.rows / kDecodeRows + b.rows % kDecodeRows);
  Fetch key_fetch{keys, any.begin, a.dim}, value_fetch{values, any.begin, a.dim_v};
  // Blocks begin at multiples of 8, for dropout; what lies before the first key is hidden, unread.
  const Index begin = any.begin / 8 * 8;
  key_fetch.add(smaller(begin + kDecodeBlock, any.end) - any.begin);
  key_fetch.fetch_rows(kDecodeBlock);
  for (Index first = begin; first < any.end; first += kDecodeBlock) {
    const Index from = larger(first, any.begin), to = smaller(first + kDecodeBlock, any.end);
    value_fetch.add(to - from);
    key_fetch.add(smaller(kDecodeBlock, any.end - to));
    for (Index row = 0; row < b.rows; ++row) {
      for (Index i = 0; i < from - first; ++i) b.score[row * kDecodeBlock + i] = 0;
      for (Index i = to - first; i < kDecodeBlock; ++i) b.score[row * kDecodeBlock + i] = 0;
    }
    Index key = from;
    for (; key + kStepKeys <= to; key += kStepKeys)
      decode_scores(b, keys, key, a.dim, b.score + key - first, value_fetch, key_fetch);
    value_fetch.fetch_rows(to - key);
    for (; key < to; ++key) decode_score(b, keys, key, a.dim, b.score + key - first);
    for (Index row = 0; row < b.rows; ++row) {
      // A row beyond query_end sees nothing.
      const bool live = (task.row_first + row) % s.rows < s.query_end;
      b.factor[row] = live ? decode_weigh<T>(task, b, row, first, to - first, key_fetch) : 1.0f;
      if (live) continue;
      for (Index i = 0; i < kDecodeBlock; ++i) b.score[row * kDecodeBlock + i] = 0;
    }
    const Index steps = turns * kernel::count_blocks(to - from, kFetchKeys);
    const Index lines = kernel::count_blocks(key_fetch.lines(), steps);
    Index column = 0;
    const auto columns = [&](auto vectors, Index end) {
      for (; column + vectors.value * kWidth <= end; column += vectors.value * kWidth) {
        decode_column<T, vectors.value, kRound>(b, values, first, from, to, column, a.dim_v,
                                                b.factor, key_fetch, lines);
      }
    };
    columns(Vectors<kDecodeVectors>{}, whole);
    columns(Vectors<2>{}, whole);
    columns(Vectors<1>{}, round_up(a.dim_v, Index{kWidth}));
    if (kByStretches && ((first + kDecodeBlock - begin) % kStretchKeys == 0 || to == any.end))
      end_stretch(b);
  }
  for (Index row = 0; row < b.rows; ++row) to_memory_order<T>(b.out + row * b.dim_v, a.dim_v);
}

template <class T>
static void decode_task(const DecodeTask& task) {
  if constexpr (__is_same(T, Fp16)) {
    if (task.arguments->accumulate_fp16) return decode_rows<T, true>(task);
  }
  decode_rows<T, false>(task);
}

// Parts that are summed apart.
inline constexpr Index kMergeRun = 8;

// Merges the parts of one row in their order, and writes it.
template <class T>
static void decode_merge(const DecodeMerge& task) {
  const kernel::ForwardArguments& a = *task.arguments;
  const kernel::Sequence& s = *task.sequence;
  const DecodeScratch at = decode_layout(task.rows, a.dim, a.dim_v);
  const Index query = task.group_row % s.rows;
  const Index head = task.key_head * (a.head_q / a.head_k) + task.group_row / s.rows;
  const Index columns = decode_columns(a.dim_v);
  kernel::SoftmaxState<float> parts[kernel::kMaxParts];
  for (Index i = 0; i < task.parts; ++i) {
    const float* const part = task.partial + i * task.stride;
    parts[i] = {part[at.max + task.row], part[at.sum + task.row]};
  }
  kernel::SoftmaxState<float> all = kernel::merge_parts<kernel::ScalarLanes>(parts, task.parts);
  float factors[kernel::kMaxParts];
  for (Index i = 0; i < task.parts; ++i)
    factors[i] = kernel::part_factor<kernel::ScalarLanes>(all, parts[i]);
  const bool nothing = all.sum == 0.0f || a.dropout.threshold == 65536;
  float scale = a.dropout.threshold != 0 ? a.dropout.keep_scale() : 1.0f;
  if (a.sinks && query < s.query_end) {
    scale *= kernel::add_sink<kernel::ScalarLanes>(
        all, kernel::to_base2<kernel::ScalarLanes>(a.sinks[head * a.sinks_head]));
  }
  scale *= kernel::inverse_sum<kernel::ScalarLanes>(all);
  T* const out = const_cast<T*>(rows_of<T>(a.out, s.batch, head, s.query + query).data);
  for (Index column = 0; column < a.dim_v; column += 8) {
    Float8 sum{};
    for (Index first = 0; first < task.parts && !nothing; first += kMergeRun) {
      Float8 run{};
      for (Index i = first; i < smaller(first + kMergeRun, task.parts); ++i) {
        // A part that saw nothing holds 0, or 0·NaN.
        if (parts[i].sum == 0.0f) continue;
        run += load8(task.partial + i * task.stride + at.out + task.row * columns + column) *
               factors[i];
      }
      sum += run;
    }
    store8(out + column, nothing ? Float8{} : sum * scale);
  }
  if (a.lse.data) {
    a.lse.data[s.batch * a.lse.batch + head * a.lse.head + (s.query + query) * a.lse.seq] =
        kernel::log_sum_exp(all.max, all.sum);
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
