#pragma once
// FlashAttention forward (Dao 2023, arXiv:2307.08691) on matrix instructions. Everything is
// computed transposed,
//
//     Sᵀ = K·Qᵀ        Oᵀ = Vᵀ·Pᵀ
//
// so that a lane owns one query: its maximum, sum and factor are its own, and weights become the
// operand of the second product where they are. A work-group walks over its keys from last to
// first.

#include "backends/hip/common/lds.hip.hpp"
#include "backends/hip/matrix/block.hip.hpp"
#if TESSERA_HIP_CDNA
#include "backends/hip/matrix/cdna.hip.hpp"
#else
#include "backends/hip/matrix/rdna.hip.hpp"
#endif

namespace tessera::hip::matrix {

template <class Element, class T>
TESSERA_DEVICE void forward_block(const Parameters& p, Index task, std::uint16_t* shared) {
  const Task<T> t(p, task);
  if (t.row_first >= t.sequence.rows) return;  // packed: a segment shorter than the longest
  Row state;
  Matrix::Sums out[T::kColumns];
  TESSERA_UNROLL
  for (int m = 0; m < T::kColumns; ++m) out[m] = 0;
  Block<Element, T> block(p, t);
  const kernel::LoopSplit loop =
      uniform(kernel::split_loop(t.sequence.band, t.row_first, t.live, T::kKeys));
  if (loop.first < loop.last) {
    block.load_queries(t);
    Walk<Element, T>(block, shared).run(loop, state, out);
  }
  block.store(Task<T>(argument_anew<Parameters>(), uniform_anew(task)), state, out);
}

// Waves that a SIMD unit holds at once, which share its 512 registers (CDNA; RDNA's waves have 256
// each).
template <class Element, class S, bool kGeneral>
constexpr int waves() {
  return S::kDim <= (kGeneral ? 64 : 128) || Tile<S, kGeneral>::kThreads == 512 ? 2 : 1;
}

template <class Element, class S, bool kGeneral>
constexpr int threads() {
  return Tile<S, kGeneral>::kThreads;
}

template <class Element, class S, bool kGeneral>
TESSERA_DEVICE void forward() {
  using T = Tile<S, kGeneral>;
  using Numbers = std::uint16_t[Walk<Element, T>::kNumbers];
  TESSERA_HIP_LDS(Numbers, shared, 1024);
  const Parameters& p = kernel_argument<Parameters>();
  for (Index i = group(); i < p.tasks; i += p.groups) {
    // Nothing that only some task's beginning or end needs is kept in registers from task to task.
    forward_block<Element, T>(argument_anew<Parameters>(), p.task(i), shared);
    barrier();  // nobody reads LDS of the task of before any more
  }
}

}  // namespace tessera::hip::matrix
