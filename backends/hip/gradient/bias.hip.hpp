#pragma once
// dbias: a work-group a block of it, kOwned rows × kTile keys or, along an axis of extent 1 in
// which the bias is broadcast, all rows, keys, query heads or batch entries. Each tile of these
// adds to the lanes' same numbers, which are summed up at the end.

#include "backends/hip/gradient/query.hip.hpp"

namespace tessera::hip::gradient {

template <class Element, class S>
class BiasGradient {
  using Block = RowBlock<Element, S, true, Of::Score>;
  static constexpr int kPitch = kTile + 1;  // floats: lanes of neighbouring rows meet no bank twice
  static constexpr int kSumNumbers = 2 * (kOwned * kPitch + kOwned);

 public:
  // At the end sums take the place of tiles.
  static constexpr int kNumbers = Block::kNumbers > kSumNumbers ? Block::kNumbers : kSumNumbers;

  TESSERA_DEVICE static void run(const Parameters& p, Index task, std::uint16_t* shared) {
    BiasGradient(p, task, shared).run(shared);
  }

 private:
  TESSERA_DEVICE BiasGradient(const Parameters& p, Index task, std::uint16_t* shared)
      : p_(p),
        a_(p.arguments.forward),
        d_(p.arguments.dbias),
        sums_(reinterpret_cast<float*>(shared)) {
    const Index key_blocks = d_.each_column ? kernel::count_blocks(a_.seq_k, kTile) : 1;
    const Index row_blocks = d_.each_row ? kernel::count_blocks(a_.seq_q, kOwned) : 1;
    const Index heads = d_.each_head ? a_.head_q : 1;
    keys_ = part(d_.each_column, task % key_blocks, kTile, a_.seq_k);
    task /= key_blocks;
    rows_ = part(d_.each_row, task % row_blocks, kOwned, a_.seq_q);
    task /= row_blocks;
    heads_ = part(d_.each_head, task % heads, 1, a_.head_q);
    batches_ = part(d_.each_batch, task / heads, 1, a_.batch);
  }

  TESSERA_DEVICE static kernel::Interval<Index> part(bool each, Index at, Index size, Index all) {
    if (!each) return {0, all};
    return {at * size, kernel::smaller(all, (at + 1) * size)};
  }

  TESSERA_DEVICE void run(std::uint16_t* shared) {
    float sum[kScores] = {};
    for (Index batch = batches_.begin; batch < batches_.end; ++batch) {
      const kernel::Sequence s = uniform(kernel::sequence(a_, batch));
      for (Index head = heads_.begin; head < heads_.end; ++head)
        add(s, head_of<true>(a_, batch, head), shared, sum);
    }
    store(sum);
  }

  // The gradients of one query head, of row i and key j of every tile of the block.
  TESSERA_DEVICE void add(const kernel::Sequence& s, const Head& head, std::uint16_t* shared,
                          float (&sum)[kScores]) const {
    const Index row_last = kernel::smaller(rows_.end, s.query_end);
    for (Index row_first = rows_.begin; row_first < row_last; row_first += kOwned) {
      const Index live = kernel::smaller(row_first + kOwned, row_last);
      const kernel::LoopSplit loop = kernel::split_loop(s.band, row_first, live, kTile);
      const Index first = kernel::larger(loop.first, keys_.begin / kTile);
      const Index last = kernel::smaller(loop.last, kernel::count_blocks(keys_.end, kTile));
      Block block(p_, s, head, row_first, live, shared);
      block.walk(first, last, [&](const float(&gradient)[kScores]) {
        const bool exists = row_first + owned() < live;
        TESSERA_UNROLL
        for (int i = 0; i < kScores; ++i) sum[i] += exists ? gradient[i] : 0.0f;
      });
    }
  }

  // Sums over what is left of a broadcast axis: the rows and keys of the tile.
  TESSERA_DEVICE void store(const float (&sum)[kScores]) const {
    barrier();  // nobody reads tiles any more
    TESSERA_UNROLL
    for (int i = 0; i < kScores; ++i)
      sums_[owned() * kPitch + column_of(i) + Matrix::own_row()] = sum[i];
    barrier();
    if (d_.each_column) {
      store_columns();
    } else {
      store_rows();
    }
  }

  // A number a key: of each row, or of all rows together.
  TESSERA_DEVICE void store_columns() const {
    const int rows = d_.each_row ? static_cast<int>(rows_.end - rows_.begin) : 1;
    const int each = d_.each_row ? 1 : kOwned;  // of the tile's rows in a sum
    const int key = thread() % kTile;
    if (keys_.begin + key >= keys_.end) return;
    for (int row = thread() / kTile; row < rows; row += kThreads / kTile) {
      float total = 0;
      for (int i = 0; i < each; ++i) total += sums_[(row + i) * kPitch + key];
      put(row, key, total);
    }
  }

  // All keys together.
  TESSERA_DEVICE void store_rows() const {
    float* const of_rows = sums_ + kOwned * kPitch;
    const int row = thread();
    if (row < kOwned) {
      float total = 0;
      for (int key = 0; key < kTile; ++key) total += sums_[row * kPitch + key];
      of_rows[row] = total;
    }
    barrier();
    if (d_.each_row) {
      if (row < rows_.end - rows_.begin) put(row, 0, of_rows[row]);
    } else if (row == 0) {
      float total = 0;
      for (int i = 0; i < kOwned; ++i) total += of_rows[i];
      put(0, 0, total);
    }
  }

  TESSERA_DEVICE void put(int row, int key, float x) const {
    const Index at = batches_.begin * d_.batch + heads_.begin * d_.head +
                     (d_.each_row ? (rows_.begin + row) * d_.row : 0) +
                     (d_.each_column ? (keys_.begin + key) * d_.column : 0);
    if (a_.bias_fp32) {
      static_cast<float*>(d_.data)[at] = x;
    } else {
      static_cast<std::uint16_t*>(d_.data)[at] =
          static_cast<std::uint16_t>(Element::pack(x, 0.0f) & 0xFFFFu);
    }
  }

  const Parameters& p_;
  const kernel::ForwardArguments& a_;
  const kernel::ScoreGradient& d_;
  float* const sums_;  // in LDS
  kernel::Interval<Index> batches_{}, heads_{}, rows_{}, keys_{};
};

}  // namespace tessera::hip::gradient
