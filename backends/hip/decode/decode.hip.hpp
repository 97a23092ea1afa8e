#pragma once
// Decode: a few query rows against many keys, which memory limits. All rows of a group's query
// heads are columns of one product (fragment.hip.hpp: everything is computed transposed, a lane
// owns a row), so that keys and values are read once a group. A row's keys are cut into parts, one
// a work-group; of a part a wave has every kWaves-th tile, and what it has computed is united with
// the other waves' at the end. While a tile's keys are multiplied its values, and then the next
// one's keys, are on their way to registers.
//
//     LDS   queries   [kRows, kDim]   16 bits, rows padded by 8 numbers: what all tiles are
//                                     multiplied with
//           sums      [kRows, kDim]   fp32, rows padded by 4, in the same place: what the waves add
//                                     up at the end
//           state     [kWaves][kRows]

#include <cstdint>

#include "backends/hip/common/lds.hip.hpp"
#include "backends/hip/common/opaque.hip.hpp"
#include "backends/hip/decode/result.hip.hpp"
#include "backends/hip/decode/tile.hip.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::hip::decode {

template <class S>
struct Memory {
  static constexpr int kQueryPitch = S::kDim + 8;
  static constexpr int kSumPitch = S::kDim + 4;
  union {
    std::uint16_t query[kRows * kQueryPitch];
    float sum[kRows * kSumPitch];
  };
  State state[kWaves][kRows];
  alignas(Task) unsigned char task_bytes[sizeof(Task)];  // LDS takes nothing that has a constructor

  TESSERA_DEVICE Task& task() { return *reinterpret_cast<Task*>(task_bytes); }
};

template <class Element, class S, bool kGeneral>
class Decode {
 public:
  TESSERA_DEVICE Decode(const Parameters& p, Memory<S>& shared)
      : p_(p), a_(p.arguments), shared_(shared), row_(row(Matrix::column())) {}

  TESSERA_DEVICE void run() {
    load_queries();
    barrier();
    Row state;
    Matrix::Sums out[kColumns];
    TESSERA_UNROLL
    for (int m = 0; m < kColumns; ++m) out[m] = 0;
    if (p_.fast_k & p_.fast_v) {
      walk<Buffer>(state, out);
    } else {
      walk<Scattered>(state, out);
    }
    unite(state, out);
    store();
  }

 private:
  static constexpr int kStripDim = kStrip<S>;
  static constexpr int kStrips = S::kDim / kStripDim;
  static constexpr int kColumns = S::kDim / Matrix::kSide;     // products of the output
  static constexpr bool kRounds = kGeneral && Element::kHalf;  // Accumulate::fp16
  using Keys = KeyStrip<kStripDim>;
  using Values = ValueStrip<kStripDim>;
  using Scores = float[Matrix::kSums];

  TESSERA_DEVICE const Task& task() const { return shared_.task(); }
  TESSERA_DEVICE QueryRow row(int number) const {
    return {p_, uniform(task().key_head), uniform(task().row_first) + number};
  }
  // As anew, of what is the same in all lanes: what a tile's place gives stays in no register from
  // tile to tile.
  TESSERA_DEVICE static Index again(Index x) { return uniform_anew(x); }
  // Of scores, to base 2.
  TESSERA_DEVICE float scale() const { return kGeneral ? 1.0f : a_.scale * kernel::kLog2E; }

  // --- Loads -----------------------------------------------------------------------------------

  TESSERA_DEVICE void load_queries() const {
    constexpr int kChunks = S::kDim / 8;
    const kernel::Sequence& s = task().sequence;
    for (int i = thread(); i < kRows * kChunks; i += kThreads) {
      const int number = i / kChunks, column = i % kChunks * 8;
      const QueryRow from_row = row(number);
      const bool there = from_row.position < s.query_end && column < a_.dim;
      const auto* const from = static_cast<const std::uint16_t*>(a_.query.data) +
                               s.batch * a_.query.batch + from_row.head * a_.query.head +
                               (s.query + from_row.position) * a_.query.seq + column;
      Words4 words = 0;
      if (there && p_.fast_q) {
        words = *reinterpret_cast<const Words4*>(from);
      } else if (there) {
        TESSERA_UNROLL
        for (int k = 0; k < 8; ++k)
          words[k / 2] |= static_cast<std::uint32_t>(from[k]) << (16 * (k % 2));
      }
      *reinterpret_cast<Words4*>(shared_.query + number * Memory<S>::kQueryPitch + column) = words;
    }
  }

  // Slots that no row of the part sees are 0 and not read.
  template <class From>
  TESSERA_DEVICE From slots(const void* data, Index at, Index stride, Index tile,
                            Index columns) const {
    if (From::kNeedsRow) tile = kernel::smaller(tile, (see_.end - 1) / kKeys);
    const Index first = tile * kKeys;
    const kernel::Interval<Index> there = kernel::within(see_, first, kKeys);
    return From(Source{static_cast<const std::uint16_t*>(data) + at + first * stride, stride,
                       static_cast<int>(there.begin), static_cast<int>(there.end),
                       static_cast<int>(columns)});
  }
  template <class From>
  TESSERA_DEVICE void load_keys(Index tile, int strip) {
    keys_.load(slots<From>(a_.key.data, uniform(task().key), a_.key.seq, tile, a_.dim), strip);
  }
  template <class From>
  TESSERA_DEVICE void load_values(Index tile, int strip) {
    values_.load(slots<From>(a_.value.data, uniform(task().value), a_.value.seq, tile, a_.dim_v),
                 strip);
  }

  // --- A tile ----------------------------------------------------------------------------------

  template <class From>
  TESSERA_DEVICE void walk(Row& state, Matrix::Sums (&out)[kColumns]) {
    see_ = uniform(task().keys);
    band_ = uniform(task().sequence.band);
    band_.begin = see_.begin;
    band_.end = see_.end;
    if constexpr (kGeneral) {
      modifiers_ = kernel::score_modifiers(a_, task().batch, row_.head);
      if (a_.dropout.threshold != 0)
        dropout_ = kernel::dropout_stream(a_.dropout, a_.head_q, task().batch, row_.head);
    }
    const Index last = kernel::count_blocks(see_.end, kKeys);
    Index tile = see_.begin / kKeys + wave();
    if (see_.begin >= see_.end || tile >= last) return;
    load_keys<From>(tile, 0);
    load_values<From>(tile, 0);
    for (; tile < last; tile += kWaves) step<From>(again(tile), state, out);
  }

  // Sᵀ = K·Qᵀ
  template <class From>
  TESSERA_DEVICE void products(Index tile, Scores& score) {
    // Queries are read again for each tile: registers are for what is on its way.
    const int at = anew(Matrix::column() * Memory<S>::kQueryPitch);
    Matrix::Sums sums = 0;
    TESSERA_UNROLL
    for (int strip = 0; strip < kStrips; ++strip) {
      TESSERA_UNROLL
      for (int u = 0; u < Keys::kSteps; ++u) {
        Words<Matrix::kWords> query;
        TESSERA_UNROLL
        for (int i = 0; i < Matrix::kPieces; ++i) {
          put(query, i,
              *reinterpret_cast<const Words4*>(shared_.query + at + strip * kStripDim + 16 * u +
                                               Matrix::piece(i)));
        }
        Matrix::template multiply<Element>(sums, keys_.operand(u), operand_of(query));
        if (Matrix::kPieces == 2 || u % 4 == 3) keep_order();
      }
      keep_order();
      const bool more = strip + 1 < kStrips;
      load_keys<From>(more ? tile : tile + kWaves, more ? strip + 1 : 0);
    }
    TESSERA_UNROLL
    for (int r = 0; r < Matrix::kSums; ++r) score[r] = rounded(sums[r]);
  }
  // A product, as Accumulate::fp16 has it.
  TESSERA_DEVICE float rounded(float x) const {
    if constexpr (kRounds) {
      const float of_fp16 = Element::rounded(x);
      x = a_.accumulate_fp16 ? of_fp16 : x;
    }
    return x;
  }

  template <class From>
  TESSERA_DEVICE void step(Index tile, Row& state, Matrix::Sums (&out)[kColumns]) {
    Scores score;
    products<From>(tile, score);
    const Index first = tile * kKeys;
    if constexpr (kGeneral) {
      const kernel::Sequence& s = task().sequence;
      modify<Element>(
          score, modifiers_, kernel::distance_to(uniform(s.diagonal), 0, first),
          score_data<Element>(a_, uniform(task().batch), row_.head, row_.position, first,
                              uniform(s.keys) - first, row_.position < uniform(s.query_end)),
          row_.position);
    }
    hide(score, kernel::relative_to(band_, 0, first), row_.position);
    float factor;
    if (advance<Element>(score, state, scale(), factor)) {
      TESSERA_UNROLL
      for (int m = 0; m < kColumns; ++m) out[m] *= factor;
    }
    weigh(score, state, scale());
    keep_order();
    if constexpr (kGeneral) {
      if (a_.dropout.threshold != 0) drop(score, dropout_, 0, row_.position, first);
    }
    accumulate<From>(tile, score, out);
  }

  // Oᵀ += Vᵀ·Pᵀ
  template <class From>
  TESSERA_DEVICE void accumulate(Index tile, const Scores& weight, Matrix::Sums (&out)[kColumns]) {
    Matrix::Operand weights[Values::kSteps];
    TESSERA_UNROLL
    for (int t = 0; t < Values::kSteps; ++t)
      weights[t] = Matrix::template operand_of<Element>(weight + 8 * t);
    TESSERA_UNROLL
    for (int strip = 0; strip < kStrips; ++strip) {
      TESSERA_UNROLL
      for (int m = 0; m < Values::kOwn; ++m) {
        add_product(out[strip * Values::kOwn + m], m, weights);
        keep_order();
      }
      keep_order();
      const bool more = strip + 1 < kStrips;
      load_values<From>(more ? tile : tile + kWaves, more ? strip + 1 : 0);
    }
  }
  // Accumulate::fp16 without a branch, whose two ways would not agree on registers.
  TESSERA_DEVICE void add_product(Matrix::Sums& out, int m,
                                  const Matrix::Operand (&weights)[Values::kSteps]) const {
    Matrix::Sums sums = 0;
    Matrix::Sums& to = kRounds ? sums : out;
    TESSERA_UNROLL
    for (int t = 0; t < Values::kSteps; ++t)
      Matrix::template multiply<Element>(to, values_.operand(m, t), weights[t]);
    if constexpr (kRounds) {
      TESSERA_UNROLL
      for (int r = 0; r < Matrix::kSums; ++r) out[r] += rounded(sums[r]);
    }
  }

  // --- The end ---------------------------------------------------------------------------------

  // The waves' outputs become one in LDS, in the order of the waves.
  TESSERA_DEVICE void unite(const Row& row, Matrix::Sums (&out)[kColumns]) {
    const State mine{row.max * scale(), row.sum + other_half(row.sum)};
    if (half() == 0) shared_.state[wave()][Matrix::column()] = mine;
    barrier();  // nobody reads queries any more
    const float factor = kernel::part_factor<GcnLanes>(united(Matrix::column()), mine);
    TESSERA_UNROLL
    for (int m = 0; m < kColumns; ++m) out[m] *= factor;
    for (int w = 0; w < kWaves; ++w) {
      if (wave() == w) add_sums(w == 0, out);
      barrier();
    }
  }
  TESSERA_DEVICE void add_sums(bool first, const Matrix::Sums (&out)[kColumns]) const {
    float* const line = shared_.sum + Matrix::column() * Memory<S>::kSumPitch;
    TESSERA_UNROLL
    for (int r = 0; r < Matrix::kSums; ++r) {
      TESSERA_UNROLL
      for (int m = 0; m < kColumns; ++m) {
        float& sum =
            line[m / Values::kOwn * kStripDim +
                 Values::kOwn * (Matrix::row_of(r) + Matrix::own_row()) + m % Values::kOwn];
        sum = first ? out[m][r] : sum + out[m][r];
      }
    }
  }
  TESSERA_DEVICE State united(int row) const {
    State state[kWaves];
    TESSERA_UNROLL
    for (int w = 0; w < kWaves; ++w) state[w] = shared_.state[w][row];
    return kernel::merge_parts<GcnLanes>(state, kWaves);
  }

  // A wave writes a row at a time.
  TESSERA_DEVICE void store() const {
    const kernel::Sequence s = uniform(task().sequence);
    for (int number = wave(); number < kRows; number += kWaves) {
      const QueryRow to = row(number);
      if (to.position >= s.rows) return;
      const float* const sums = shared_.sum + number * Memory<S>::kSumPitch;
      if (p_.parts > 1) {
        store_part(s, to, united(number), sums);
      } else {
        store_result(s, to, united(number), sums);
      }
    }
  }
  TESSERA_DEVICE void store_part(const kernel::Sequence& s, const QueryRow& to, const State& state,
                                 const float* sums) const {
    const auto columns = static_cast<int>(a_.dim_v);
    const Index index = memory_row(a_, s, to) * p_.parts + uniform(task().part);
    for (int d = lane(); d < columns; d += kWave) p_.out[index * columns + d] = sums[d];
    if (lane() == 0) p_.state[index] = state;
  }
  TESSERA_DEVICE void store_result(const kernel::Sequence& s, const QueryRow& to,
                                   const State& state, const float* sums) const {
    const auto columns = static_cast<int>(a_.dim_v);
    const Finished f = conclude(a_, state, to.head, to.position < s.query_end);
    const Line line(a_, s, to);
    for (int d = lane(); d < columns; d += kWave)
      line.put<Element>(d, f.seen ? sums[d] * f.factor : 0.0f);
    if (lane() == 0) line.put_lse(f.lse);
  }

  const Parameters& p_;
  const kernel::ForwardArguments& a_;
  Memory<S>& shared_;
  kernel::Interval<Index> see_;       // keys of the part that some row sees
  kernel::Band band_;                 // likewise
  const QueryRow row_;                // the lane's
  kernel::ScoreModifiers modifiers_;  // of the lane's row
  kernel::DropoutStream dropout_;
  Keys keys_;
  Values values_;
};

template <class Element, class S, bool kGeneral>
struct DecodeKernel {
  // Waves that a SIMD unit must hold at once, which share its 512 registers (CDNA; RDNA's waves
  // have 256 each).
  static constexpr int kAtOnce = S::kDim <= 128 ? 2 : 1;

  TESSERA_DEVICE static void run() {
    TESSERA_HIP_LDS(Memory<S>, shared, 16);
    const auto& p = kernel_argument<Parameters>();
    if (thread() == 0) describe(p, group(), shared.task());
    barrier();
    if (shared.task().rows) Decode<Element, S, kGeneral>(p, shared).run();
  }
};

}  // namespace tessera::hip::decode
