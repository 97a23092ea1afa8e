#pragma once
// What belongs to rows: their statistics, and the gradient of the sink that they share.

#include <cstdint>

#include "backends/hip/common/element.hip.hpp"
#include "backends/hip/gradient/operands.hip.hpp"

namespace tessera::hip::gradient {

// lse in base 2 and δ of kOwned rows as they lie in memory. Rowsum(dO∘O) is the diagonal of O·dOᵀ,
// by the instructions and in the order that give dP: in a row whose one weight is 1, O is V and dS
// is 0 to the bit.
template <class Element>
class RowStatistics {
 public:
  static constexpr int kNumbers = 1;

  TESSERA_DEVICE static void run(const Parameters& p, Index task, std::uint16_t*) {
    const kernel::BackwardArguments& b = p.arguments;
    const kernel::ForwardArguments& a = b.forward;
    const Index all = (a.packed() ? 1 : a.batch) * a.head_q * a.total_q;
    const Index row = task * kOwned + owned();
    const Index place = kernel::smaller(row, all - 1);
    const Index seq = place % a.total_q, head = place / a.total_q % a.head_q;
    const Index batch = place / a.total_q / a.head_q;
    const Source out = row_at(a.out, batch, head, seq, a.dim_v, p.fast_out, false);
    const Source dout = row_at(b.dout, batch, head, seq, a.dim_v, p.fast_dout, b.dout_column == 0);
    const bool fast = out.fast && dout.fast;
    const Matrix::Sums sums =
        fast ? products(Aligned(out), Aligned(dout)) : products(Scattered(out), Scattered(dout));
    float delta = 0;
    bool mine = false;  // has this half of the wave the row's?
    TESSERA_UNROLL
    for (int r = 0; r < Matrix::kSums; ++r) {
      const bool here = Matrix::row_of(r) + Matrix::own_row() == Matrix::column();
      delta = here ? sums[r] : delta;
      mine |= here;
    }
    if (!mine || row >= all) return;
    if (b.dlse.data != nullptr)
      delta -= b.dlse.data[batch * b.dlse.batch + head * b.dlse.head + seq * b.dlse.seq];
    const float lse = a.lse.data[batch * a.lse.batch + head * a.lse.head + seq * a.lse.seq];
    p.statistics.lse[row] =
        lse == kernel::kMinusInfinity ? -kernel::kMinusInfinity : kernel::to_base2<GcnLanes>(lse);
    p.statistics.delta[row] = delta;
  }

 private:
  // One row, which is aligned to 16 bytes.
  struct Aligned {
    Source from;
    TESSERA_DEVICE explicit Aligned(const Source& source) : from(source) {}
    TESSERA_DEVICE Words4 load8(int, int column) const {
      if (column >= from.columns) return 0;
      return *reinterpret_cast<const Words4*>(from.first + column);
    }
  };

  template <class Void>
  TESSERA_DEVICE static Source row_at(const kernel::Operand<Void>& o, Index batch, Index head,
                                      Index seq, Index columns, std::uint32_t fast, bool one) {
    const auto* const data = static_cast<const std::uint16_t*>(o.data);
    return {data + batch * o.batch + head * o.head + seq * o.seq,
            0,
            {0, 1},
            static_cast<int>(columns),
            fast != 0,
            one};
  }

  // Of the rows of the wave's lanes, each with each.
  template <class From>
  TESSERA_DEVICE static Matrix::Sums products(const From& out, const From& dout) {
    Matrix::Sums sums = 0;
    for (int first = 0; first < out.from.columns; first += 16) {
      Matrix::Operand left, right;
      TESSERA_UNROLL
      for (int i = 0; i < Matrix::kPieces; ++i) {
        put(left, i, out.load8(0, first + Matrix::piece(i)));
        put(right, i, dout.load8(0, first + Matrix::piece(i)));
      }
      Matrix::multiply<Element>(sums, left, right);
    }
    return sums;
  }
};

// e^(sink − lse), at most 1, as kernel::sink_probability says it, whose exponential in double no
// device library brings here. The difference is exact in double and reduced there; what is left is
// below 1, where fp32 is precise.
TESSERA_DEVICE double sink_probability(float sink, float lse) {
  const double difference = static_cast<double>(sink) - static_cast<double>(lse);
  if (difference > 0) return 1.0;
  constexpr double kLog2E = 1.4426950408889634074, kLeast = -1100;  // below 2^kLeast: 0 in double
  const double power = difference * kLog2E;
  if (power < kLeast) return 0.0;  // false for NaN
  const double whole = __builtin_rint(power);
  const float part = __builtin_amdgcn_exp2f(static_cast<float>(power - whole));
  return __builtin_amdgcn_ldexp(static_cast<double>(part), static_cast<int>(whole));
}

// Σ P_sink·(dlse − D) of a query head, in double.
class SinkGradient {
 public:
  static constexpr int kNumbers = kThreads * 4;

  TESSERA_DEVICE static void run(const Parameters& p, Index head, std::uint16_t* shared) {
    const kernel::BackwardArguments& b = p.arguments;
    const kernel::ForwardArguments& a = b.forward;
    const float sink = a.sinks[head * a.sinks_head];
    auto* const sums = reinterpret_cast<double*>(shared);
    double sum = 0;
    for (Index batch = 0; batch < a.batch && sink != kernel::kMinusInfinity; ++batch) {
      const kernel::Sequence s = uniform(kernel::sequence(a, batch));
      const float* const delta = p.statistics.delta + statistics_at(a, s, head);
      const float* const lse =
          a.lse.data + s.batch * a.lse.batch + head * a.lse.head + s.query * a.lse.seq;
      for (Index row = thread(); row < s.query_end; row += kThreads)
        sum -= sink_probability(sink, lse[row * a.lse.seq]) * static_cast<double>(delta[row]);
    }
    sums[thread()] = sum;
    for (int half = kThreads / 2; half > 0; half /= 2) {
      barrier();
      if (thread() < half) sums[thread()] += sums[thread() + half];
    }
    if (thread() == 0) b.dsink[head * b.dsink_head] = static_cast<float>(sums[0]);
  }
};

}  // namespace tessera::hip::gradient
