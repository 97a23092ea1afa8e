#pragma once
// dbias: one team a block of it, [kRows][kKeys] or, along an axis of extent 1 in which the bias is
// broadcast, all rows, keys, query heads or batch entries. Each tile of these adds to the same
// [kRows][kKeys] sums, which are summed up at the end.

#include <type_traits>

#include "backends/kokkos/generic/gradients.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::kokkos::generic {

template <class Element, int kWidth>
class BiasGradient : GradientKernel<Element, kWidth> {
 public:
  TESSERA_FN static Index sums(Index, Index) { return kRows * kKeys; }

  explicit BiasGradient(const Gradients& gradients)
      : Base(gradients, sums(0, 0)), blocks_(blocks_of(gradients.arguments)) {}

  static Index tasks(const kernel::BackwardArguments& b) {
    const Blocks blocks = blocks_of(b);
    return blocks.batches * blocks.heads * blocks.rows * blocks.keys;
  }

  KOKKOS_FUNCTION void operator()(const Member& team, Index task, float* scratch) const;

 private:
  using Base = GradientKernel<Element, kWidth>;

  // Of the gradient, along its axes; 1 along one that it is broadcast over.
  struct Blocks {
    Index batches, heads, rows, keys;
  };
  // What one of them holds: entries, query heads, rows and keys of the problem.
  struct Block {
    kernel::Interval<Index> batches, heads, rows, keys;
  };

  TESSERA_FN static Blocks blocks_of(const kernel::BackwardArguments& b) {
    const kernel::ForwardArguments& a = b.forward;
    return {b.dbias.each_batch ? a.batch : 1, b.dbias.each_head ? a.head_q : 1,
            b.dbias.each_row ? kernel::count_blocks(a.seq_q, kRows) : 1,
            b.dbias.each_column ? kernel::count_blocks(a.seq_k, kKeys) : 1};
  }
  KOKKOS_FUNCTION Block block(Index task) const;
  KOKKOS_FUNCTION void add(const Member& team, const typename Base::Memory& m,
                           const kernel::Sequence& s, const Head& head, const Block& block) const;
  template <class Bias>
  KOKKOS_FUNCTION void store(const Member& team, const float* sum, const Block& block) const;

  Blocks blocks_;
};

template <class Element, int kWidth>
KOKKOS_FUNCTION auto BiasGradient<Element, kWidth>::block(Index task) const -> Block {
  const kernel::ForwardArguments& a = this->a();
  const kernel::ScoreGradient& d = this->b().dbias;
  const auto part = [](bool each, Index at, Index size, Index all) -> kernel::Interval<Index> {
    if (!each) return {0, all};
    return {at * size, kernel::smaller(all, (at + 1) * size)};
  };
  Block block;
  block.keys = part(d.each_column, task % blocks_.keys, kKeys, a.seq_k);
  task /= blocks_.keys;
  block.rows = part(d.each_row, task % blocks_.rows, kRows, a.seq_q);
  task /= blocks_.rows;
  block.heads = part(d.each_head, task % blocks_.heads, 1, a.head_q);
  block.batches = part(d.each_batch, task / blocks_.heads, 1, a.batch);
  return block;
}

template <class Element, int kWidth>
KOKKOS_FUNCTION void BiasGradient<Element, kWidth>::operator()(const Member& team, Index task,
                                                               float* scratch) const {
  const Block block = this->block(task);
  const auto m = this->open(team, scratch);
  for (Index batch = block.batches.begin; batch < block.batches.end; ++batch) {
    const kernel::Sequence s = kernel::sequence(this->a(), batch);
    for (Index head = block.heads.begin; head < block.heads.end; ++head)
      add(team, m, s, head_of(this->a(), batch, head), block);
  }
  team.team_barrier();
  if (this->a().bias_fp32) {
    store<float>(team, m.sum, block);
  } else {
    store<Element>(team, m.sum, block);
  }
}

// sum[i][j] += gradients of one query head: of row i and key j of every tile of the block.
template <class Element, int kWidth>
KOKKOS_FUNCTION void BiasGradient<Element, kWidth>::add(const Member& team,
                                                        const typename Base::Memory& m,
                                                        const kernel::Sequence& s, const Head& head,
                                                        const Block& block) const {
  const Index row_last = kernel::smaller(block.rows.end, s.query_end);
  for (Index row_first = block.rows.begin; row_first < row_last; row_first += kRows) {
    const int rows = static_cast<int>(kernel::smaller(row_last - row_first, kRows));
    const kernel::LoopSplit loop = kernel::split_loop(s.band, row_first, row_first + rows, kKeys);
    const Index first = kernel::larger(loop.first, block.keys.begin / kKeys);
    const Index last = kernel::smaller(loop.last, kernel::count_blocks(block.keys.end, kKeys));
    if (first < last) this->load_rows(team, m, s, head.head, row_first, rows);
    for (Index step = first; step < last; ++step) {
      const Tile tile = tile_of(s, row_first, rows, step * kKeys);
      this->load_keys(team, m, s, kernel::key_head(this->a(), head.head), tile.key_first, tile.from,
                      tile.to);
      this->compute(team, m, head, tile, Of::Score);
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int i) {
        Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, tile.from, tile.to), [&](int j) {
          const int at = i * kKeys + j;
          kernel::add_keeping_finite_rest(m.sum[at], m.rest[at], m.gradient[at]);
        });
      });
      team.team_barrier();
    }
  }
}

// Sums over what is left of a broadcast axis: the rows and keys of the tile.
template <class Element, int kWidth>
template <class Bias>
KOKKOS_FUNCTION void BiasGradient<Element, kWidth>::store(const Member& team, const float* sum,
                                                          const Block& block) const {
  const kernel::ScoreGradient& d = this->b().dbias;
  auto* const to =
      static_cast<Bias*>(d.data) + block.batches.begin * d.batch + block.heads.begin * d.head;
  const int rows = d.each_row ? static_cast<int>(block.rows.end - block.rows.begin) : 1;
  const int keys = d.each_column ? static_cast<int>(block.keys.end - block.keys.begin) : 1;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows), [&](int i) {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, keys), [&](int j) {
      float total = 0;
      for (int row = d.each_row ? i : 0; row <= (d.each_row ? i : kRows - 1); ++row) {
        float part = 0;
        for (int key = d.each_column ? j : 0; key <= (d.each_column ? j : kKeys - 1); ++key)
          part += sum[row * kKeys + key];
        total += part;
      }
      Bias& element = to[(d.each_row ? (block.rows.begin + i) * d.row : 0) +
                         (d.each_column ? (block.keys.begin + j) * d.column : 0)];
      if constexpr (std::is_same_v<Bias, float>) {
        element = total;
      } else {
        element.store(total);
      }
    });
  });
}

}  // namespace tessera::kokkos::generic
