#pragma once
// What happens to a tile in backward, for the kernels that go from tile to tile:
//
//     S = Q·Kᵀ     dP = dO·Vᵀ     P = 2^(S − lse)     dS = P∘(dP∘M − δ)     δ = rowsum(dO∘O) − dlse
//
//     phase        threads         lanes         reads                     writes
//     load_rows    rows            dims          Q, dO, statistics         query, dout, lse, delta
//     load_keys    keys            dims          K, V                      key, value
//     multiply     groups of rows  kWidth keys   query, key, dout, value   weight, gradient
//     weigh        rows            keys          weight, gradient, ...     weight, gradient
//
// Barriers and bits are as in forward_kernel.hpp.

#include "backends/kokkos/generic/config.hpp"
#include "backends/kokkos/generic/tile.hpp"

namespace tessera::kokkos::generic {

// Of every row, [batch][head_q][total_q] as the rows lie in memory.
struct Statistics {
  float* lse = nullptr;    // base 2; +infinity: the row sees nothing
  float* delta = nullptr;  // rowsum(dO∘O) − dlse
};

// Index of a sequence's row 0 among them.
KOKKOS_INLINE_FUNCTION Index statistics_at(const kernel::ForwardArguments& a,
                                           const kernel::Sequence& s, Index head) {
  return (s.batch * a.head_q + head) * a.total_q + s.query;
}

// What all kernels of one call are given.
struct Gradients {
  kernel::BackwardArguments arguments;
  Statistics statistics;
};

// With respect to what dS is: the score that the softmax sees, or scale·Q·Kᵀ.
enum class Of { Score, Product };

// Base of the kernels that go from tile to tile, with GradientScratch::bytes of scratch memory.
template <class Element, int kWidth>
class GradientKernel {
  static_assert(kKeys % 8 == 0 && kRows % kGroup == 0 && kKeys % kGroup == 0);

 protected:
  // A team's scratch memory.
  struct Memory {
    float *query, *dout, *key, *value, *weight, *gradient, *lse, *delta, *sum, *rest;
    std::uint8_t* kept;
  };

  // `sums`: floats that the kernel adds up.
  GradientKernel(const Gradients& gradients, Index sums)
      : g_(gradients),
        scratch_(GradientScratch::of(gradients.arguments.forward.dim,
                                     gradients.arguments.forward.dim_v, sums)) {}

  KOKKOS_FUNCTION const kernel::BackwardArguments& b() const { return g_.arguments; }
  KOKKOS_FUNCTION const kernel::ForwardArguments& a() const { return g_.arguments.forward; }
  KOKKOS_FUNCTION int dim() const { return static_cast<int>(a().dim); }
  KOKKOS_FUNCTION int dim_v() const { return static_cast<int>(a().dim_v); }

  KOKKOS_FUNCTION Memory open(const Member& team, float* scratch) const;
  KOKKOS_FUNCTION void load_rows(const Member& team, const Memory& m, const kernel::Sequence& s,
                                 Index head, Index row_first, int rows) const;
  KOKKOS_FUNCTION void load_keys(const Member& team, const Memory& m, const kernel::Sequence& s,
                                 Index key_head, Index key_first, int from, int to) const;
  // Products, then weights and gradients. Waits for what was loaded, and until they are there.
  KOKKOS_FUNCTION void compute(const Member& team, const Memory& m, const Head& head,
                               const Tile& tile, Of of) const;
  // row[d] = factor · sum[d].
  KOKKOS_FUNCTION void store_row(const Member& team, const float* sum, float factor, int count,
                                 Element* row) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, count),
                         [&](int d) { row[d].store(factor * sum[d]); });
  }
  KOKKOS_FUNCTION void clear_row(const Member& team, int count, Element* row) const {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, count), [&](int d) { row[d].store(0); });
  }

  Gradients g_;
  GradientScratch scratch_;

 private:
  KOKKOS_FUNCTION void weigh(const Member& team, const Memory& m, const Head& head,
                             const Tile& tile, int i, Of of) const;
};

// The sums are 0, as are their rests.
template <class Element, int kWidth>
KOKKOS_FUNCTION auto GradientKernel<Element, kWidth>::open(const Member& team, float* scratch) const
    -> Memory {
  const Memory m{scratch + scratch_.query,
                 scratch + scratch_.dout,
                 scratch + scratch_.key,
                 scratch + scratch_.value,
                 scratch + scratch_.weight,
                 scratch + scratch_.gradient,
                 scratch + scratch_.lse,
                 scratch + scratch_.delta,
                 scratch + scratch_.sum,
                 scratch + scratch_.rest,
                 reinterpret_cast<std::uint8_t*>(scratch + scratch_.kept)};
  Kokkos::parallel_for(
      Kokkos::TeamVectorRange(team, static_cast<int>(scratch_.size - scratch_.sum)),
      [&](int n) { m.sum[n] = 0; });
  return m;
}

// Rows up to whole groups; those that see nothing are 0, whatever they hold.
template <class Element, int kWidth>
KOKKOS_FUNCTION void GradientKernel<Element, kWidth>::load_rows(const Member& team, const Memory& m,
                                                                const kernel::Sequence& s,
                                                                Index head, Index row_first,
                                                                int rows) const {
  const Index statistics = statistics_at(a(), s, head) + row_first;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, groups_of(rows) * kGroup), [&](int i) {
    const float lse = i < rows ? g_.statistics.lse[statistics + i] : -kernel::kMinusInfinity;
    const bool sees = lse != -kernel::kMinusInfinity;
    const Index seq = s.query + row_first + i;
    load_row(team, sees ? row_of<Element>(a().query, s.batch, head, seq) : nullptr, dim(),
             m.query + i * dim());
    load_row(team, sees ? row_of<Element>(b().dout, s.batch, head, seq) : nullptr, dim_v(),
             m.dout + i * dim_v(), 1, b().dout_column);
    Kokkos::single(Kokkos::PerThread(team), [&] {
      m.lse[i] = lse;
      m.delta[i] = sees ? g_.statistics.delta[statistics + i] : 0;
    });
  });
}

template <class Element, int kWidth>
KOKKOS_FUNCTION void GradientKernel<Element, kWidth>::load_keys(const Member& team, const Memory& m,
                                                                const kernel::Sequence& s,
                                                                Index key_head, Index key_first,
                                                                int from, int to) const {
  const Index seq = s.key + key_first;
  load_transposed<Element>(team, a().key, s.batch, key_head, seq, from, to, dim(), m.key);
  load_transposed<Element>(team, a().value, s.batch, key_head, seq, from, to, dim_v(), m.value);
}

template <class Element, int kWidth>
KOKKOS_FUNCTION void GradientKernel<Element, kWidth>::compute(const Member& team, const Memory& m,
                                                              const Head& head, const Tile& tile,
                                                              Of of) const {
  team.team_barrier();
  multiply<kWidth>(team, m.query, m.key, dim(), tile.rows, tile.from, tile.to, m.weight);
  multiply<kWidth>(team, m.dout, m.value, dim_v(), tile.rows, tile.from, tile.to, m.gradient);
  team.team_barrier();
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tile.rows),
                       [&](int i) { weigh(team, m, head, tile, i, of); });
  team.team_barrier();
}

// Row i, for the tile's keys up to whole groups. By selection: a hidden key's weight and gradient
// are 0, whatever the products and the statistics were.
template <class Element, int kWidth>
KOKKOS_FUNCTION void GradientKernel<Element, kWidth>::weigh(const Member& team, const Memory& m,
                                                            const Head& head, const Tile& tile,
                                                            int i, Of of) const {
  const bool drops = a().dropout.threshold != 0;
  const float keep_scale = a().dropout.keep_scale();
  std::uint8_t* const kept = m.kept + i * (kKeys / 8);
  if (drops) {
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, tile.from / 8, (tile.to + 7) / 8),
                         [&](int group) {
                           std::uint32_t words[4], bits = 0;
                           draw(head, tile, i, group, words);
                           TESSERA_UNROLL
                           for (std::uint32_t j = 0; j < 8; ++j)
                             bits |= kernel::kept<Lanes>(head.dropout, words, j) ? 1u << j : 0u;
                           kept[group] = static_cast<std::uint8_t>(bits);
                         });
  }
  const kernel::Interval<int> see = tile.see(i);
  const float lse = m.lse[i], delta = m.delta[i];
  float* const weights = m.weight + i * kKeys;
  float* const gradients = m.gradient + i * kKeys;
  Kokkos::parallel_for(
      Kokkos::ThreadVectorRange(team, tile.from / kGroup * kGroup, groups_of(tile.to) * kGroup),
      [&](int j) {
        const float product = weights[j];
        const float score = score_of<Element>(a(), head, tile, see, i, j, product);
        float weight = 0, gradient = 0;
        if (score != kernel::kMinusInfinity) {
          const float p = Lanes::exp2(score - lse);
          const bool keeps = !drops || (kept[j / 8] >> j % 8 & 1) != 0;
          weight = keeps ? p : 0;
          gradient = p * ((keeps ? gradients[j] * keep_scale : 0) - delta);
          if (of == Of::Product) gradient *= kernel::cap_slope<Lanes>(head.modifiers, product);
        }
        weights[j] = weight;
        gradients[j] = gradient;
      });
}

}  // namespace tessera::kokkos::generic
