#pragma once
// A block of query rows: all of a work-group's task but its walk over the keys.

#include "backends/hip/common/fragment.hip.hpp"
#include "backends/hip/common/opaque.hip.hpp"
#include "backends/hip/common/parameters.hpp"
#include "backends/hip/matrix/config.hpp"
#include "backends/hip/matrix/source.hip.hpp"

namespace tessera::hip::matrix {

using Parameters = ForwardParameters;

// What a work-group of a kernel takes on.
template <class S, bool kGeneral_>
struct Tile : S {
  static constexpr bool kGeneral = kGeneral_;
  static constexpr Blocking kBlocking =
      blocking(TESSERA_HIP_CDNA != 0, S::kDim, S::kDimV, kGeneral);
  static constexpr int kThreads = kBlocking.threads;
  static constexpr int kWaves = kThreads / kWave;
  static constexpr int kRows = kBlocking.rows;
  static constexpr int kKeys = kBlocking.keys;
  static constexpr int kScores = kKeys * Matrix::kSums / Matrix::kSide;  // of a lane
  static constexpr int kColumns = S::kDimV / Matrix::kSide;  // of Oᵀ, in blocks of kSide
  static constexpr int kRowsOfAWave = kRows / kWaves;
  static_assert(kRowsOfAWave == Matrix::kSide);
};

// What a work-group has to do. Scalar registers are too few to hold all of it through the loop over
// keys: the end derives it again.
template <class T>
struct Task {
  kernel::WorkItem item;
  kernel::Sequence sequence;
  Index row_first;  // of the sequence
  Index live;       // end of the rows that see anything

  TESSERA_DEVICE Task(const Parameters& p, Index task)
      : item(uniform(p.item(task))),
        sequence(uniform(kernel::sequence(p.arguments, item.batch))),
        row_first(item.block * T::kRows),
        live(kernel::smaller(row_first + T::kRows, sequence.query_end)) {}
};

// Eight numbers, the i-th piece of an operand.
TESSERA_DEVICE void put_words(Matrix::Operand& operand, int piece, Words4 words) {
  TESSERA_UNROLL
  for (int w = 0; w < 4; ++w) operand.word[4 * piece + w] = words[w];
}

template <class Element, class T>
class Block {
 public:
  static constexpr bool kGeneral = T::kGeneral;
  static constexpr bool kRounds = kGeneral && Element::kHalf;  // Accumulate::fp16
  using Scores = float[T::kScores];
  using Sums = Matrix::Sums[T::kColumns];

  TESSERA_DEVICE Block(const Parameters& p, const Task<T>& t)
      : p_(p), a_(p.arguments), band_(t.sequence.band), row_first_(t.row_first) {
    const kernel::Sequence& s = t.sequence;
    const Index key_head = kernel::key_head(a_, t.item.head);
    key_ = static_cast<const std::uint16_t*>(a_.key.data) + s.batch * a_.key.batch +
           key_head * a_.key.head + s.key * a_.key.seq;
    value_ = static_cast<const std::uint16_t*>(a_.value.data) + s.batch * a_.value.batch +
             key_head * a_.value.head + s.key * a_.value.seq;
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

  // The lane's row of the tile.
  TESSERA_DEVICE static int row() { return wave() * T::kRowsOfAWave + Matrix::column(); }
  // Of scores, to base 2.
  TESSERA_DEVICE float scale() const { return kGeneral ? 1.0f : a_.scale * kernel::kLog2E; }

  TESSERA_DEVICE void load_queries(const Task<T>& t) {
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

  // Of keys and values: tiles of them, as far as this sequence has keys that its rows may see.
  TESSERA_DEVICE Source keys(Index tile) const {
    const Parameters& p = arguments();
    return slots(key_, p.arguments.key.seq, tile, p.arguments.dim, p.fast_k != 0);
  }
  TESSERA_DEVICE Source values(Index tile) const {
    const Parameters& p = arguments();
    return slots(value_, p.arguments.value.seq, tile, p.arguments.dim_v, p.fast_v != 0);
  }

  // Are both?
  TESSERA_DEVICE bool fast() const { return p_.fast_k & p_.fast_v; }

  TESSERA_DEVICE const Matrix::Operand& query(int u) const { return query_[u]; }

  // Does the block want its products rounded?
  TESSERA_DEVICE bool rounds() const { return kRounds && a_.accumulate_fp16; }

  // Products to what the softmax sees.
  TESSERA_DEVICE void modify(Scores& score, Index tile) const {
    if constexpr (kRounds) {
      const bool rounded = rounds();
      TESSERA_UNROLL
      for (float& x : score) x = rounded ? Element::rounded(x) : x;
    }
    if constexpr (kGeneral) {
      const Index key_first = tile * T::kKeys;
      hip::modify<Element>(score, modifiers_, kernel::distance_to(diagonal_, row_first_, key_first),
                           from_key<Element>(data_, key_first), row());
    }
  }
  TESSERA_DEVICE void hide(Scores& score, Index tile) const {
    hip::hide(score, kernel::relative_to(band_, row_first_, tile * T::kKeys), row());
  }
  TESSERA_DEVICE void drop(Scores& weight, Index tile) const {
    if constexpr (kGeneral) {
      if (a_.dropout.threshold != 0)
        hip::drop(weight, dropout_, row_first_, row(), tile * T::kKeys);
    }
  }

  // The lane's columns of the output, four or more at a time, and its lse.
  TESSERA_DEVICE void store(const Task<T>& t, const Row& state, const Sums& out) const {
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
    const int own = anew(Matrix::own_row());
    TESSERA_UNROLL
    for (int m = 0; m < T::kColumns; ++m) {
      std::uint32_t words[Matrix::kSums / 2];
      TESSERA_UNROLL
      for (int w = 0; w < Matrix::kSums / 2; ++w)
        words[w] =
            f.seen ? Element::pack(out[m][2 * w] * f.factor, out[m][2 * w + 1] * f.factor) : 0u;
      put_columns(line, m * Matrix::kSide + own, words, exists);
    }
  }

 private:
  // Read again for each tile where scalar registers are short.
  TESSERA_DEVICE const Parameters& arguments() const {
    return kGeneral || !TESSERA_HIP_CDNA ? argument_anew<Parameters>() : p_;
  }

  template <class From>
  TESSERA_DEVICE void load_queries(const From& from) {
    TESSERA_UNROLL
    for (int u = 0; u < T::kDim / 16; ++u) {
      TESSERA_UNROLL
      for (int i = 0; i < Matrix::kPieces; ++i)
        put_words(query_[u], i, from.template load<8>(row(), 16 * u + Matrix::piece(i)));
    }
  }

  TESSERA_DEVICE Source slots(const std::uint16_t* from, Index stride, Index tile, Index columns,
                              bool fast) const {
    const Index first = tile * T::kKeys;
    const kernel::Interval<Index> there =
        uniform(kernel::within({band_.begin, band_.end}, first, T::kKeys));
    return {from + first * stride,         stride,
            static_cast<int>(there.begin), static_cast<int>(there.end),
            static_cast<int>(columns),     fast};
  }

  TESSERA_DEVICE void put_columns(std::uint16_t* line, int first,
                                  const std::uint32_t (&words)[Matrix::kSums / 2],
                                  bool exists) const {
    constexpr int kRun = Matrix::kOwnRow;  // columns of a lane that follow one another
    TESSERA_UNROLL
    for (int run = 0; run < Matrix::kSums / kRun; ++run) {
      const int column = first + Matrix::row_of(run * kRun);
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
  const std::uint16_t* key_ = nullptr;  // slot 0 of the sequence
  const std::uint16_t* value_ = nullptr;
  kernel::Band band_;
  Index row_first_;
  Index diagonal_ = 0;
  ScoreData data_;
  kernel::ScoreModifiers modifiers_;
  kernel::DropoutStream dropout_;
  Matrix::Operand query_[T::kDim / 16];
};

}  // namespace tessera::hip::matrix
