#pragma once
// Lanes own rows and walk over keys:
//
//     Sᵀ = K·Qᵀ     dPᵀ = V·dOᵀ     dQᵀ += Kᵀ·dSᵀ     or     dbias += dS

#include "backends/hip/gradient/operands.hip.hpp"
#include "backends/hip/gradient/weigh.hip.hpp"

namespace tessera::hip::gradient {

// kOwned rows of a query head, those from `live` on as if they were none, against tiles of keys.
template <class Element, class S, bool kGeneral, Of kOf>
class RowBlock {
  using KeySpace = TileSpace<S::kDim>;
  using ValueSpace = TileSpace<S::kDimV>;
  static constexpr bool kMultiplies = kOf == Of::Product;
  static constexpr int kSums = kMultiplies ? S::kDim : 2 * kTile;

 public:
  // In LDS: keys, values, keys transposed.
  static constexpr int kValuesAt = KeySpace::kRowNumbers;
  static constexpr int kColumnsAt = kValuesAt + ValueSpace::kRowNumbers;
  static constexpr int kNumbers = kColumnsAt + (kMultiplies ? KeySpace::kColumnNumbers : 0);

  TESSERA_DEVICE RowBlock(const Parameters& p, const kernel::Sequence& s, const Head& head,
                          Index row_first, Index live, std::uint16_t* shared)
      : a_(p.arguments.forward),
        s_(s),
        head_(head),
        operands_(p, s),
        key_head_(kernel::key_head(a_, head.head)),
        row_first_(row_first),
        live_(live),
        keys_(shared),
        values_(shared + kValuesAt),
        columns_(shared + kColumnsAt) {}

  // Calls visit(dS) for the tiles [first, last) of keys in turn.
  template <class Visit>
  TESSERA_DEVICE void walk(Index first, Index last, const Visit& visit) {
    if (first >= last) return;
    query_.open(operands_.query(head_.head, row_first_, kOwned, {0, live_}));
    dout_.open(operands_.dout(head_.head, row_first_, kOwned, {0, live_}));
    row_ = operands_.statistics(head_.head, row_first_ + owned(), live_);
    load(first);
    for (Index tile = first; tile < last; ++tile) {
      barrier();  // nobody reads the tile of before any more
      next_keys_.store_rows(keys_);
      if constexpr (kMultiplies) next_keys_.store_columns(columns_);
      next_values_.store_rows(values_);
      barrier();
      if (tile + 1 < last) load(tile + 1);
      float score[kScores], gradient[kScores];
      multiply<Element>(score, query_, keys_);
      multiply<Element>(gradient, dout_, values_);
      weigh(score, gradient, tile * kTile);
      visit(gradient);
    }
  }

  // The tile's keys, transposed.
  TESSERA_DEVICE const std::uint16_t* columns() const { return columns_; }
  // Does the lane's row see a key?
  TESSERA_DEVICE bool sees() const { return row_.lse != -kernel::kMinusInfinity; }

 private:
  TESSERA_DEVICE void load(Index tile) {
    next_keys_.load(operands_.key(key_head_, tile * kTile, kTile));
    next_values_.load(operands_.value(key_head_, tile * kTile, kTile));
  }

  TESSERA_DEVICE void weigh(float (&score)[kScores], float (&gradient)[kScores],
                            Index key_first) const {
    Place place{row_first_, key_first};
    const bool whole = kernel::classify(s_.band, row_first_, live_, key_first, key_first + kTile) ==
                       kernel::TileClass::Whole;
    if (!whole) {
      const kernel::Interval<int> see =
          kernel::relative_to(s_.band, row_first_, key_first).row<GcnLanes>(owned());
      place.see = {see.begin - Matrix::own_row(), see.end - Matrix::own_row()};
    }
    if constexpr (kGeneral) {
      if (row_first_ + owned() >= live_) place.see = {0, 0};
      weigh_general<Element, Owns::Row, kOf>(score, gradient, a_, s_, head_, row_, place);
    } else if (whole) {
      weigh_plain<false>(score, gradient, a_.scale * kernel::kLog2E, row_, place);
    } else {
      weigh_plain<true>(score, gradient, a_.scale * kernel::kLog2E, row_, place);
    }
  }

  const kernel::ForwardArguments& a_;
  const kernel::Sequence& s_;
  const Head& head_;
  const Operands operands_;
  const Index key_head_, row_first_, live_;
  std::uint16_t *const keys_, *const values_, *const columns_;  // in LDS
  Owned<S::kDim, S::kDim + S::kDimV, kSums, kGeneral> query_;
  Owned<S::kDimV, S::kDim + S::kDimV, kSums, kGeneral> dout_;
  RowOfLane row_;
  Tile<S::kDim> next_keys_{0};
  Tile<S::kDimV> next_values_{S::kDim};
};

template <class Element, class S, bool kGeneral>
class QueryGradient {
  using Block = RowBlock<Element, S, kGeneral, Of::Product>;

 public:
  static constexpr int kNumbers = Block::kNumbers;

  TESSERA_DEVICE static void run(const Parameters& p, Index task, std::uint16_t* shared) {
    const kernel::ForwardArguments& a = p.arguments.forward;
    const kernel::WorkItem item = item_of(p.order, task);
    const kernel::Sequence s = uniform(kernel::sequence(a, item.batch));
    const Index row_first = item.block * kOwned;
    if (row_first >= s.rows) return;  // packed: a segment shorter than the longest
    const Index live = kernel::smaller(row_first + kOwned, s.query_end);
    const Head head = head_of<kGeneral>(a, item.batch, item.head);
    const kernel::LoopSplit loop = kernel::split_loop(s.band, row_first, live, kTile);

    Block block(p, s, head, row_first, live, shared);
    Matrix::Sums sum[S::kDim / Matrix::kSide];
    clear(sum);
    block.walk(loop.first, loop.last, [&](const float(&gradient)[kScores]) {
      accumulate<Element, S::kDim>(sum, gradient, block.columns());
    });
    const Index row = row_first + owned();
    if (row >= s.rows) return;
    // A row that sees nothing gives 0 whatever the keys of its tiles were.
    store_row<Element, S::kDim>(sum, a.scale, block.sees(),
                                row_of(p.arguments.dq, s.batch, item.head, s.query + row), a.dim,
                                p.aligned_dq != 0);
  }
};

}  // namespace tessera::hip::gradient
