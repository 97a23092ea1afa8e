#pragma once
// FlashAttention forward (Dao 2023, arXiv:2307.08691) on matrix instructions. Everything is
// computed transposed,
//
//     Sᵀ = K·Qᵀ        Oᵀ = Vᵀ·Pᵀ
//
// so that a lane owns one query: its maximum, sum and factor are its own, and weights become the
// operand of the second product where they are. A work-group walks over its keys from last to
// first; while a block of keys is multiplied the next one is on its way to registers.

#include "backends/hip/common/fragment.hip.hpp"
#include "backends/hip/common/opaque.hip.hpp"
#include "backends/hip/common/parameters.hpp"
#include "backends/hip/matrix/config.hpp"
#include "backends/hip/matrix/tile.hip.hpp"

namespace tessera::hip::matrix {

using Parameters = ForwardParameters;

// What a work-group has to do. Scalar registers are too few to hold all of it through the loop over
// keys: the end derives it again.
template <class S>
struct Task {
  kernel::WorkItem item;
  kernel::Sequence sequence;
  Index row_first;  // of the sequence
  Index live;       // end of the rows that see anything

  TESSERA_DEVICE Task(const Parameters& p, Index task)
      : item(uniform(p.item(task))),
        sequence(uniform(kernel::sequence(p.arguments, item.batch))),
        row_first(item.block * S::kRows),
        live(kernel::smaller(row_first + S::kRows, sequence.query_end)) {}
};

template <class Element, class S, bool kGeneral>
class Forward {
 public:
  TESSERA_DEVICE Forward(const Parameters& p, std::uint16_t* shared)
      : p_(p), a_(p.arguments), keys_(shared), values_(shared + S::kKeyNumbers) {}

  TESSERA_DEVICE void run(Index task) {
    Row state;
    Matrix::Sums out[kColumns];
    TESSERA_UNROLL
    for (int m = 0; m < kColumns; ++m) out[m] = 0;
    const Task<S> t(p_, task);
    if (t.row_first >= t.sequence.rows) return;  // packed: a segment shorter than the longest
    prepare(t);
    const kernel::LoopSplit loop =
        kernel::split_loop(t.sequence.band, t.row_first, t.live, S::kKeys);
    Index tile = loop.last - 1;
    if (tile >= loop.first) {
      load_queries(t);
      load(tile);
      for (; tile >= loop.first; --tile)
        step(tile, loop.first, tile < loop.whole_first || tile >= loop.whole_last, state, out);
    }
    store(Task<S>(argument_anew<Parameters>(), uniform_anew(task)), state, out);
  }

 private:
  static constexpr bool kRounds = kGeneral && Element::kHalf;  // Accumulate::fp16
  static constexpr int kRowsOfAWave = S::kRows / (kThreads / kWave);
  static_assert(kRowsOfAWave == Matrix::kSide);
  static constexpr int kScores = S::kKeys * Matrix::kSums / Matrix::kSide;
  static constexpr int kColumns = S::kDimV / Matrix::kSide;  // of Oᵀ, in blocks of kSide
  using Keys = KeyTile<S>;
  using Values = ValueTile<S>;

  // The lane's row of the tile.
  TESSERA_DEVICE static int row() { return wave() * kRowsOfAWave + Matrix::column(); }
  // Of scores, to base 2.
  TESSERA_DEVICE float scale() const { return kGeneral ? 1.0f : a_.scale * kernel::kLog2E; }

  TESSERA_DEVICE void prepare(const Task<S>& t) {
    const kernel::Sequence& s = t.sequence;
    const Index key_head = kernel::key_head(a_, t.item.head);
    key_ = static_cast<const std::uint16_t*>(a_.key.data) + s.batch * a_.key.batch +
           key_head * a_.key.head + s.key * a_.key.seq;
    value_ = static_cast<const std::uint16_t*>(a_.value.data) + s.batch * a_.value.batch +
             key_head * a_.value.head + s.key * a_.value.seq;
    band_ = s.band;
    row_first_ = t.row_first;
    if constexpr (kGeneral) {
      diagonal_ = s.diagonal;
      modifiers_ = uniform(kernel::score_modifiers(a_, t.item.batch, t.item.head));
      data_ = score_data<Element>(a_, t.item.batch, t.item.head, t.row_first + row(), 0, s.keys,
                                  t.row_first + row() < s.query_end);
      if (a_.dropout.threshold != 0)
        dropout_ =
            uniform(kernel::dropout_stream(a_.dropout, a_.head_q, t.item.batch, t.item.head));
    }
  }

  TESSERA_DEVICE void load_queries(const Task<S>& t) {
    const auto* const query = static_cast<const std::uint16_t*>(a_.query.data) +
                              t.sequence.batch * a_.query.batch + t.item.head * a_.query.head +
                              (t.sequence.query + t.row_first) * a_.query.seq;
    const Source from{query,
                      a_.query.seq,
                      0,
                      static_cast<int>(t.live - t.row_first),
                      static_cast<int>(a_.dim),
                      p_.fast_q != 0};
    if (from.fast) {
      load_queries(Buffer(from));
    } else {
      load_queries(Scattered(from));
    }
  }
  template <class From>
  TESSERA_DEVICE void load_queries(const From& from) {
    TESSERA_UNROLL
    for (int u = 0; u < S::kDim / 16; ++u) {
      TESSERA_UNROLL
      for (int i = 0; i < Matrix::kPieces; ++i)
        put(query_[u], i, from.load8(row(), 16 * u + Matrix::piece(i)));
    }
  }

  TESSERA_DEVICE static void put(Matrix::Operand& operand, int piece, Words4 words) {
    TESSERA_UNROLL
    for (int w = 0; w < 4; ++w) operand.word[4 * piece + w] = words[w];
  }

  TESSERA_DEVICE Source slots(const std::uint16_t* from, Index stride, Index tile, Index columns,
                              bool fast) const {
    const Index first = tile * S::kKeys;
    const kernel::Interval<Index> there = kernel::within({band_.begin, band_.end}, first, S::kKeys);
    return {from + first * stride,         stride,
            static_cast<int>(there.begin), static_cast<int>(there.end),
            static_cast<int>(columns),     fast};
  }
  TESSERA_DEVICE void load(Index tile) {
    const auto& p = argument_anew<Parameters>();
    const kernel::ForwardArguments& a = p.arguments;
    const Source keys = slots(key_, a.key.seq, tile, a.dim, p.fast_k != 0);
    const Source values = slots(value_, a.value.seq, tile, a.dim_v, p.fast_v != 0);
    if (keys.fast & values.fast) {
      Keys::load(next_keys_, Buffer(keys));
      Values::load(next_values_, Buffer(values));
    } else {
      Keys::load(next_keys_, Scattered(keys));
      Values::load(next_values_, Scattered(values));
    }
  }

  // Sᵀ = K·Qᵀ
  TESSERA_DEVICE void products(float (&score)[kScores]) const {
    TESSERA_UNROLL
    for (int n = 0; n < S::kKeys / Matrix::kSide; ++n) {
      Matrix::Sums sums = 0;
      TESSERA_UNROLL
      for (int u = 0; u < S::kDim / 16; ++u) {
        Matrix::Operand key;
        TESSERA_UNROLL
        for (int i = 0; i < Matrix::kPieces; ++i)
          put(key, i,
              Keys::read(keys_, n * Matrix::kSide + Matrix::column(),
                         2 * u + Matrix::piece(i) / 8));
        Matrix::template multiply<Element>(sums, key, query_[u]);
      }
      TESSERA_UNROLL
      for (int r = 0; r < Matrix::kSums; ++r) score[n * Matrix::kSums + r] = sums[r];
      keep_order();
    }
  }

  // Vᵀ of 16 keys, in the order of their weights.
  TESSERA_DEVICE Matrix::Operand values(int m, int t) const {
    Matrix::Operand made;
    TESSERA_UNROLL
    for (int c = 0; c < Matrix::kWords / 2; ++c) {
      const Words2 words = Values::read(values_, m * Matrix::kSide + Matrix::column(),
                                        4 * t + Matrix::value_chunk(c));
      made.word[2 * c] = words[0];
      made.word[2 * c + 1] = words[1];
    }
    return made;
  }

  // Oᵀ += Vᵀ·Pᵀ
  TESSERA_DEVICE void accumulate(const float (&weight)[kScores],
                                 Matrix::Sums (&out)[kColumns]) const {
    TESSERA_UNROLL
    for (int t = 0; t < S::kKeys / 16; ++t) {
      const Matrix::Operand weights = Matrix::template operand_of<Element>(weight + 8 * t);
      TESSERA_UNROLL
      for (int m = 0; m < kColumns; ++m)
        Matrix::template multiply<Element>(out[m], values(m, t), weights);
      keep_order();
    }
  }

  // The same with the block's products rounded to fp16, if `rounds`.
  TESSERA_DEVICE void accumulate_apart(const float (&weight)[kScores], bool rounds,
                                       Matrix::Sums (&out)[kColumns]) const {
    Matrix::Operand weights[S::kKeys / 16];
    TESSERA_UNROLL
    for (int t = 0; t < S::kKeys / 16; ++t)
      weights[t] = Matrix::template operand_of<Element>(weight + 8 * t);
    TESSERA_UNROLL
    for (int m = 0; m < kColumns; ++m) {
      Matrix::Sums sums = 0;
      TESSERA_UNROLL
      for (int t = 0; t < S::kKeys / 16; ++t)
        Matrix::template multiply<Element>(sums, values(m, t), weights[t]);
      TESSERA_UNROLL
      for (int r = 0; r < Matrix::kSums; ++r)
        out[m][r] += rounds ? Element::rounded(sums[r]) : sums[r];
      keep_order();
    }
  }

  TESSERA_DEVICE void step(Index tile, Index first, bool masked, Row& state,
                           Matrix::Sums (&out)[kColumns]) {
    barrier();  // nobody reads the block of before any more
    Keys::store(next_keys_, keys_);
    Values::store(next_values_, values_);
    barrier();
    if (tile > first) load(tile - 1);
    float score[kScores];
    products(score);
    const bool rounds = kRounds && a_.accumulate_fp16;
    if constexpr (kRounds) {
      TESSERA_UNROLL
      for (float& x : score) x = rounds ? Element::rounded(x) : x;
    }
    const Index key_first = tile * S::kKeys;
    if constexpr (kGeneral) {
      modify<Element>(score, modifiers_, kernel::distance_to(diagonal_, row_first_, key_first),
                      from_key<Element>(data_, key_first), row());
    }
    if (masked) hide(score, kernel::relative_to(band_, row_first_, key_first), row());
    float factor;
    if (advance<Element>(score, state, scale(), factor)) {
      TESSERA_UNROLL
      for (int m = 0; m < kColumns; ++m) out[m] *= factor;
    }
    weigh(score, state, scale());
    keep_order();
    if constexpr (kGeneral) {
      if (a_.dropout.threshold != 0) drop(score, dropout_, row_first_, row(), key_first);
    }
    if constexpr (kRounds) {
      // Where registers are short there is one way for both.
      if (rounds || S::kDimV > 192) return accumulate_apart(score, rounds, out);
    }
    accumulate(score, out);
  }

  // The lane's columns of the output, four or more at a time, and its lse.
  TESSERA_DEVICE void store(const Task<S>& t, const Row& state,
                            const Matrix::Sums (&out)[kColumns]) const {
    const kernel::Sequence& s = t.sequence;
    const Index head = t.item.head, at = t.row_first + row(), seq = s.query + at;
    const float sink =
        kGeneral && a_.sinks ? a_.sinks[head * a_.sinks_head] : kernel::kMinusInfinity;
    const Finished f = finish(state, scale(), at < t.live, sink, a_.dropout);
    const bool exists = at < s.rows;
    if (a_.lse.data != nullptr && exists && half() == 0)
      a_.lse.data[s.batch * a_.lse.batch + head * a_.lse.head + seq * a_.lse.seq] = f.lse;
    auto* const line = static_cast<std::uint16_t*>(a_.out.data) + s.batch * a_.out.batch +
                       head * a_.out.head + seq * a_.out.seq;
    TESSERA_UNROLL
    for (int m = 0; m < kColumns; ++m) {
      std::uint32_t words[Matrix::kSums / 2];
      TESSERA_UNROLL
      for (int w = 0; w < Matrix::kSums / 2; ++w)
        words[w] =
            f.seen ? Element::pack(out[m][2 * w] * f.factor, out[m][2 * w + 1] * f.factor) : 0u;
      put_columns(line, m * Matrix::kSide, words, exists);
    }
  }

  TESSERA_DEVICE void put_columns(std::uint16_t* line, int first,
                                  const std::uint32_t (&words)[Matrix::kSums / 2],
                                  bool exists) const {
    constexpr int kRun = Matrix::kOwnRow;  // columns of a lane that follow one another
    TESSERA_UNROLL
    for (int run = 0; run < Matrix::kSums / kRun; ++run) {
      const int column = first + Matrix::row_of(run * kRun) + Matrix::own_row();
      if (!exists || column >= a_.dim_v) continue;
      if constexpr (kRun == 1) {
        line[column] = static_cast<std::uint16_t>(words[run / 2] >> (16 * (run % 2)));
      } else if (p_.aligned_out) {
        TESSERA_UNROLL
        for (int i = 0; i < kRun; i += 4)
          *reinterpret_cast<Words2*>(line + column + i) =
              Words2{words[(run * kRun + i) / 2], words[(run * kRun + i) / 2 + 1]};
      } else {
        TESSERA_UNROLL
        for (int i = 0; i < kRun; ++i)
          line[column + i] =
              static_cast<std::uint16_t>(words[(run * kRun + i) / 2] >> (16 * (i % 2)));
      }
    }
  }

  const Parameters& p_;
  const kernel::ForwardArguments& a_;
  std::uint16_t *const keys_, *const values_;  // in LDS
  const std::uint16_t* key_ = nullptr;         // slot 0 of the sequence
  const std::uint16_t* value_ = nullptr;
  kernel::Band band_;
  Index row_first_ = 0;
  Index diagonal_ = 0;
  ScoreData data_;
  kernel::ScoreModifiers modifiers_;
  kernel::DropoutStream dropout_;
  Matrix::Operand query_[S::kDim / 16];
  typename Keys::Registers next_keys_;
  typename Values::Registers next_values_;
};

// Waves that a SIMD unit holds at once, which share its 512 registers (CDNA; RDNA's waves have 256
// each).
template <class Element, class S, bool kGeneral>
constexpr int waves() {
  return S::kDim <= (kGeneral ? 64 : 128) ? 2 : 1;
}

template <class Element, class S, bool kGeneral>
TESSERA_DEVICE void forward() {
  __attribute__((shared, aligned(16))) static std::uint16_t shared[S::kNumbers];
  const Parameters& p = kernel_argument<Parameters>();
  for (Index i = group(); i < p.tasks; i += p.groups) {
    Forward<Element, S, kGeneral>(p, shared).run(p.task(i));
    barrier();  // nobody reads LDS of the task of before any more
  }
}

}  // namespace tessera::hip::matrix
