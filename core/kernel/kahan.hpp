#pragma once
// Long sums of fp32. Where keys weigh alike the same is added over and over again and rounded the
// same way every time: the error grows with their number, unless what rounding takes is kept.

#include "core/kernel/macros.hpp"

namespace tessera::kernel {

// sum + rest += term: the sum rounded, and what rounding took from it (Kahan 1965). Adding 0 adds
// the rest. Build without reordering of sums.
template <class V>
TESSERA_FN void add_keeping_rest(V& sum, V& rest, V term) {
  const V before = sum, all = term + rest;
  sum = before + all;
  rest = all - (sum - before);
}

// The same of sums that may be infinite: such a sum leaves nothing.
template <class V>
TESSERA_FN void add_keeping_finite_rest(V& sum, V& rest, V term) {
  add_keeping_rest(sum, rest, term);
  rest = rest - rest == V{} ? rest : V{};
}

}  // namespace tessera::kernel
