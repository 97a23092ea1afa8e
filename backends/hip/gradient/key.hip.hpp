#pragma once
// Lanes own keys and walk over the rows of all query heads that read them:
//
//     S = Q·Kᵀ     dP = dO·Vᵀ     dVᵀ += dOᵀ·(P∘M)     dKᵀ += Qᵀ·dS

#include "backends/hip/gradient/operands.hip.hpp"
#include "backends/hip/gradient/weigh.hip.hpp"

namespace tessera::hip::gradient {

// dK, dV or both.
template <class Element, class S, bool kGeneral, bool kOfKeys, bool kOfValues>
class KeyGradient {
  static_assert(kOfKeys || kOfValues);
  using QuerySpace = TileSpace<S::kDim>;
  using DoutSpace = TileSpace<S::kDimV>;

  // In LDS: queries; dout; both transposed; what of these is needed. Then lse and δ of the rows.
  static constexpr int kDoutAt = QuerySpace::kRowNumbers;
  static constexpr int kQueryColumnsAt = kDoutAt + (kOfKeys ? DoutSpace::kRowNumbers : 0);
  static constexpr int kDoutColumnsAt =
      kQueryColumnsAt + (kOfKeys ? QuerySpace::kColumnNumbers : 0);
  static constexpr int kStatisticsAt = kDoutColumnsAt + (kOfValues ? DoutSpace::kColumnNumbers : 0);

 public:
  static constexpr int kNumbers = kStatisticsAt + 2 * 2 * kTile;

  TESSERA_DEVICE static void run(const Parameters& p, Index task, std::uint16_t* shared) {
    KeyGradient(p, item_of(p.order, task), shared).run();
  }

 private:
  TESSERA_DEVICE KeyGradient(const Parameters& p, const kernel::WorkItem& item,
                             std::uint16_t* shared)
      : p_(p),
        a_(p.arguments.forward),
        item_(item),
        s_(uniform(kernel::sequence(a_, item.batch))),
        key_first_(item.block * kOwned),
        // Padding behind the sequence has gradients, too; packed, the next segment lies there.
        key_last_(kernel::smaller(key_first_ + kOwned, a_.packed() ? s_.keys : a_.seq_k)),
        shared_(shared) {}

  TESSERA_DEVICE void run() {
    if (key_first_ >= key_last_) return;
    rows_ = s_.band.seeing(key_first_, key_last_, s_.query_end);
    seen_by_ = s_.band.column(key_first_ + owned(), s_.query_end);
    clear(dk_);
    clear(dv_);
    if (rows_.begin < rows_.end) walk();
    if (key_first_ + owned() < key_last_) store();
  }

  TESSERA_DEVICE void walk() {
    const Index group = a_.head_q / a_.head_k, head_first = item_.head * group;
    const Index first = rows_.begin / kTile, last = kernel::count_blocks(rows_.end, kTile);
    key_.open(operands().key(item_.head, key_first_, kOwned));
    if constexpr (kOfKeys) value_.open(operands().value(item_.head, key_first_, kOwned));
    load(head_first, first);
    for (Index h = head_first; h < head_first + group; ++h) {
      const Head head = head_of<kGeneral>(a_, item_.batch, h);
      for (Index tile = first; tile < last; ++tile) {
        barrier();  // nobody reads the tile of before any more
        store_tile();
        barrier();
        if (tile + 1 < last) {
          load(h, tile + 1);
        } else if (h + 1 < head_first + group) {
          load(h + 1, first);
        }
        step(head, tile * kTile);
      }
    }
  }

  // Made where it is needed: a member that points to another keeps the whole object in memory.
  TESSERA_DEVICE Operands operands() const { return {p_, s_}; }

  TESSERA_DEVICE void load(Index head, Index tile) {
    const Index row_first = tile * kTile;
    next_query_.load(operands().query(head, row_first, kTile, rows_));
    next_dout_.load(operands().dout(head, row_first, kTile, rows_));
    if (thread() < kTile) next_row_ = operands().statistics(head, row_first + thread(), rows_.end);
  }
  TESSERA_DEVICE void store_tile() const {
    next_query_.store_rows(shared_);
    if constexpr (kOfKeys) {
      next_query_.store_columns(shared_ + kQueryColumnsAt);
      next_dout_.store_rows(shared_ + kDoutAt);
    }
    if constexpr (kOfValues) next_dout_.store_columns(shared_ + kDoutColumnsAt);
    if (thread() < kTile) {
      statistics()[thread()] = next_row_.lse;
      statistics()[kTile + thread()] = next_row_.delta;
    }
  }
  TESSERA_DEVICE float* statistics() const {
    return reinterpret_cast<float*>(shared_ + kStatisticsAt);
  }

  TESSERA_DEVICE void step(const Head& head, Index row_first) {
    float score[kScores], gradient[kScores] = {};
    multiply<Element>(score, key_, shared_);
    if constexpr (kOfKeys) multiply<Element>(gradient, value_, shared_ + kDoutAt);
    weigh(score, gradient, head, row_first);
    if constexpr (kOfValues) accumulate<Element, S::kDimV>(dv_, score, shared_ + kDoutColumnsAt);
    if constexpr (kOfKeys) accumulate<Element, S::kDim>(dk_, gradient, shared_ + kQueryColumnsAt);
  }

  TESSERA_DEVICE void weigh(float (&score)[kScores], float (&gradient)[kScores], const Head& head,
                            Index row_first) const {
    const RowsOfTile rows{statistics() + Matrix::own_row(),
                          statistics() + kTile + Matrix::own_row()};
    Place place{row_first, key_first_};
    const bool whole = row_first + kTile <= s_.query_end &&
                       kernel::classify(s_.band, row_first, row_first + kTile, key_first_,
                                        key_first_ + kOwned) == kernel::TileClass::Whole;
    if (!whole) {
      const kernel::Interval<Index> see = kernel::within(seen_by_, row_first, kTile);
      place.see = {static_cast<int>(see.begin) - Matrix::own_row(),
                   static_cast<int>(see.end) - Matrix::own_row()};
    }
    if constexpr (kGeneral) {
      weigh_general<Element, Owns::Key, Of::Product>(score, gradient, a_, s_, head, rows, place);
    } else if (whole) {
      weigh_plain<false>(score, gradient, a_.scale * kernel::kLog2E, rows, place);
    } else {
      weigh_plain<true>(score, gradient, a_.scale * kernel::kLog2E, rows, place);
    }
  }

  TESSERA_DEVICE void store() const {
    // Where nobody sees the key, its sums may be products of 0 and no number.
    const bool seen = seen_by_.begin < seen_by_.end;
    const Index seq = s_.key + key_first_ + owned();
    const kernel::BackwardArguments& b = p_.arguments;
    if constexpr (kOfKeys)
      store_row<Element, S::kDim>(dk_, a_.scale, seen, row_of(b.dk, s_.batch, item_.head, seq),
                                  a_.dim, p_.aligned_dk != 0);
    if constexpr (kOfValues)
      store_row<Element, S::kDimV>(dv_, a_.dropout.keep_scale(), seen,
                                   row_of(b.dv, s_.batch, item_.head, seq), a_.dim_v,
                                   p_.aligned_dv != 0);
  }

  static constexpr int kOwnedColumns = S::kDim + (kOfKeys ? S::kDimV : 0);
  static constexpr int kSumColumns = (kOfKeys ? S::kDim : 0) + (kOfValues ? S::kDimV : 0);

  const Parameters& p_;
  const kernel::ForwardArguments& a_;
  const kernel::WorkItem item_;
  const kernel::Sequence s_;
  const Index key_first_, key_last_;
  std::uint16_t* const shared_;
  kernel::Interval<Index> rows_{};     // that see one of the keys
  kernel::Interval<Index> seen_by_{};  // rows that see the lane's key
  Owned<S::kDim, kOwnedColumns, kSumColumns, kGeneral> key_;
  Owned<S::kDimV, kOwnedColumns, kSumColumns, kGeneral> value_;
  Matrix::Sums dk_[kOfKeys ? S::kDim / Matrix::kSide : 1];
  Matrix::Sums dv_[kOfValues ? S::kDimV / Matrix::kSide : 1];
  Tile<S::kDim> next_query_{0};
  Tile<S::kDimV> next_dout_{S::kDim};
  RowOfLane next_row_;
};

}  // namespace tessera::hip::gradient
