#pragma once
/// Attention in float64, written from the mathematics alone: what tests, benchmarks and `tessera check` compare with. It
/// shares no code with core/kernel. Every pointer in Args is host memory. Arguments are taken to be valid.

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/args.hpp>
#include <tessera/options.hpp>

namespace tessera::reference {

/// Results of forward, dense: out [batch, head_q, seq_q, dim_v], lse and magnitude below. Packed: batch 1, seq total_q.
struct Forward {
  std::int64_t batch = 0, head = 0, seq = 0, dim = 0;  ///< extents of out
  std::vector<double> out;        ///< [batch, head, seq, dim]
  std::vector<double> lse;        ///< [batch, head, seq], natural log, sink included; −∞ for a row that sees nothing
  std::vector<double> magnitude;  ///< [batch, head, seq]: largest over dim of Σ P·|v|, the A of the tolerance rule
  std::vector<double> score_magnitude;  ///< [batch, head, seq]: scale·max over visible keys of Σ|q||k|
};

/// float64, every option.
Forward forward(const Args& args, const Options& options);

/// The plain unfused computation in float32 ("low"): float32 scores and statistics, the unnormalised
/// P = exp(score − row maximum) rounded once to the input type, divided by the float32 sum of the unrounded P, float32
/// accumulation, result rounded to the output type. `magnitude` stays empty.
Forward forward_low(const Args& args, const Options& options);

/// Gradients, dense: dq like query, dk like key, dv like value, dbias like bias, dsink [head_q].
struct Backward {
  std::vector<double> dq, dk, dv;
  std::vector<double> dbias;  ///< of the bias's own shape, broadcast dimensions summed; empty without a bias
  std::vector<double> dsink;  ///< [head_q]; empty without sinks
  std::vector<double> dq_magnitude, dk_magnitude, dv_magnitude;  ///< a row each: largest Σ|terms| of an element
};

/// float64, every option. `dout` is like out; `dlse` is optional (data null), like lse.
Backward backward(const Args& args, const Options& options, const ConstTensor& dout, const ConstTensor& dlse);

/// "low" for gradients: as forward_low, with D = rowsum(dO∘O) of the rounded O, results rounded to the input type.
Backward backward_low(const Args& args, const Options& options, const ConstTensor& dout, const ConstTensor& dlse);

/// Outcome of the tolerance rule for one call of forward.
struct Verdict {
  bool pass = false;
  double max_abs = 0;        ///< largest |ours − ref| of out
  double mean_relative = 0;  ///< mean |ours − ref| / mean |ref| of out
  double max_abs_lse = 0;
  double worst_ratio = 0;    ///< largest |ours − ref| / allowed over all heads and rows; at most 1 to pass
  std::string text;          ///< where and by how much it failed; empty if it passed
};

/// Judges `args.out` (and `args.lse`, if given) by the rule of docs/numerics.md, "How results are judged". `low` is
/// what forward_low gave for the same arguments. A NaN in `ref` where out is finite fails, and the other way round.
Verdict judge(const Args& args, const Options& options, const Forward& ref, const Forward& low);

}  // namespace tessera::reference
