#pragma once
// The general flavour: what touches scores and weights between the two products.

#include "backends/kokkos/vector/forward.hpp"
#include "core/kernel/modifiers.hpp"
#include "core/kernel/philox.hpp"

namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA {

// Scratch memory of a panel's pass over a block of keys, [key][lanes] each.
struct ScorePass {
  float* score;
  float* bias;
  float* mask;  // 0: hidden by the boolean mask
};

// Start of a score operand for a panel and a block, in elements.
TESSERA_FN Index score_offset(const kernel::ScoreOperand& operand, Index batch, Index head,
                              Index row, Index key) {
  return batch * operand.batch + head * operand.head + row * operand.row + key * operand.column;
}

// Copies what of bias and boolean mask belongs to rows [row, row + count) and keys [key, key +
// keys), to [key][lanes].
template <class T>
TESSERA_FN void load_modifiers(const kernel::ForwardArguments& a, Index batch, Index head,
                               Index row, Index count, Index key, Index keys, Index lanes,
                               float* bias, float* mask) {
  const auto copy = [&](const kernel::ScoreOperand& from, auto element, float* to) {
    const auto* data = static_cast<const decltype(element)*>(from.data) +
                       score_offset(from, batch, head, row, key);
    pack_scores(data, from.row, from.column, count, keys, lanes, to);
  };
  if (a.bias.data && a.bias_fp32) copy(a.bias, float{}, bias);
  if (a.bias.data && !a.bias_fp32) copy(a.bias, T{}, bias);
  if (a.boolean_mask.data) copy(a.boolean_mask, std::uint8_t{}, mask);
}

// Products of keys [from, to) become scores; raises `top`, the tile maxima.
template <int kV>
TESSERA_FN void modify_scores(const ForwardTask& task, const Panel<kV>& panel,
                              const KeyBlock& block, const ScorePass& pass, Index from, Index to,
                              const kernel::Interval<Int> (&see)[kV], Float (&top)[kV]) {
  const kernel::ScoreModifiers m = kernel::score_modifiers(*task.arguments, task.batch, task.head);
  const kernel::TileDistance distance =
      kernel::distance_to(task.sequence->diagonal, panel.row, block.first);
  for (Index key = from; key < to; ++key) {
    const Int column = Lanes::whole(static_cast<int>(key));
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) {
      const Index at = (key * kV + v) * kWidth;
      const Float bias = m.bias ? load(pass.bias + at) : Float{};
      const Int visible = m.mask ? load(pass.mask + at) != Float{} : Int{};
      const Float score =
          kernel::modify<Lanes>(m, load(pass.score + at), distance,
                                iota() + Lanes::whole(v * kWidth), column, bias, visible);
      const Float shown = kernel::hide<Lanes>(score, see[v], column);
      top[v] = kernel::observe<Lanes>(top[v], shown);
      store(pass.score + at, shown);
    }
  }
}

// Dropped weights become 0; their sums are done already. The kept ones are scaled at the end.
template <int kV>
TESSERA_FN void drop_weights(const ForwardTask& task, const Panel<kV>& panel, const KeyBlock& block,
                             const ScorePass& pass, Index from, Index to) {
  const kernel::ForwardArguments& a = *task.arguments;
  if (a.dropout.threshold == 0) return;
  const kernel::DropoutStream stream =
      kernel::dropout_stream(a.dropout, a.head_q, task.batch, task.head);
  for (Index group = from / 8 * 8; group < to; group += 8) {  // blocks start at multiples of 8
    TESSERA_UNROLL
    for (int v = 0; v < kV; ++v) {
      Bits words[4];
      kernel::draw<Lanes>(stream,
                          kernel::dropout_rows<Lanes>(panel.row, iota() + Lanes::whole(v * kWidth)),
                          static_cast<std::uint32_t>((block.first + group) / 8), words);
      for (int c = 0; c < 8; ++c) {
        if (group + c < from || group + c >= to) continue;
        float* p = pass.score + ((group + c) * kV + v) * kWidth;
        store(p, Lanes::select(kernel::kept<Lanes>(stream, words, static_cast<std::uint32_t>(c)),
                               load(p), Float{}));
      }
    }
  }
}

}  // namespace tessera::kokkos::vector::TESSERA_VECTOR_ISA
