#pragma once
/// Attention in float64, written from the mathematics alone: what tests, benchmarks and `tessera
/// check` compare with. It shares no code with core/kernel. Every pointer in Args is host memory.
/// Arguments are taken to be valid; indices are clamped to the extents. `args.out` is not written:
/// it only says the output type (the query's if it is absent).

#include <cstdint>
#include <string>
#include <vector>

#include <tessera/args.hpp>
#include <tessera/options.hpp>

namespace tessera::reference {

/// Results of forward, dense: out [batch, head_q, seq_q, dim_v], lse and magnitude below. Packed:
/// batch 1, seq total_q; rows of no segment are like rows that see nothing.
struct Forward {
  std::int64_t batch = 0, head = 0, seq = 0, dim = 0;  ///< extents of out
  std::vector<double> out{};                           ///< [batch, head, seq, dim]
  std::vector<double>
      lse{};  ///< [batch, head, seq], natural log, sink included; −∞ for a row that sees nothing
  std::vector<double> magnitude{};  ///< [batch, head, seq]: largest over dim of Σ P·|v|, the A of
                                    ///< the tolerance rule
  std::vector<double>
      score_magnitude{};  ///< [batch, head, seq]: |scale|·max over visible keys of Σ|q||k|
};

/// float64, every option.
Forward forward(const Args& args, const Options& options);

/// The plain unfused computation in float32 ("low"): float32 scores and statistics, the
/// unnormalised P = exp(score − row maximum) rounded once to the input type, divided by the float32
/// sum of the unrounded P, float32 accumulation, result rounded to the output type. The maximum is
/// that of the scores: a sink only enlarges the sum. Accumulate::fp16: Q·Kᵀ and P·V are rounded to
/// fp16. The magnitudes stay empty.
Forward forward_low(const Args& args, const Options& options);

/// Gradients, dense: dq like query, dk like key, dv like value, dbias like bias, dsink [head_q]. A
/// magnitude is one number a row ([batch, head, seq] of the tensor): the largest over the row's
/// elements of Σ|terms|.
struct Backward {
  std::vector<double> dq{}, dk{}, dv{};
  std::vector<double>
      dbias{};  ///< of the bias's own shape, broadcast dimensions summed; empty without a bias
  std::vector<double> dsink{};  ///< [head_q]; empty without sinks
  std::vector<double> dq_magnitude{}, dk_magnitude{}, dv_magnitude{}, dbias_magnitude{},
      dsink_magnitude{};
};

/// float64, every option. `dout` is like out; `dlse` is optional (data null), like lse. `out`, if
/// given, is what D = rowsum(dO∘out) takes, and `lse`, if given, what weights are made of: P =
/// exp(score − lse), a sink's exp(sink − lse). Backward takes what forward rounded: with both these
/// are gradients as a function of all that it is given. Without them D and P are those of unrounded
/// results.
Backward backward(const Args& args, const Options& options, const ConstTensor& dout,
                  const ConstTensor& dlse = {}, const ConstTensor& out = {},
                  const ConstTensor& lse = {});

/// "low" for gradients: float32, P = softmax and dS = P∘(dP − D + dlse) each rounded once to the
/// input type before they are multiplied, D = rowsum(dO∘O) of the rounded O, or of `out`, results
/// rounded to the input type (dbias: to the bias's, dsink: not). The magnitudes stay empty.
Backward backward_low(const Args& args, const Options& options, const ConstTensor& dout,
                      const ConstTensor& dlse = {}, const ConstTensor& out = {},
                      const ConstTensor& lse = {});

/// Outcome of the tolerance rule.
struct Verdict {
  bool pass = false;
  double max_abs = 0;        ///< largest |ours − ref| of out (of all gradients)
  double mean_relative = 0;  ///< mean |ours − ref| / mean |ref| of out (largest of the gradients)
  double max_abs_lse = 0;
  double worst_ratio =
      0;  ///< largest |ours − ref| / allowed over all heads and rows; at most 1 to pass
  std::int64_t reference_nan =
      0;               ///< elements that are NaN in the reference: a test of ordinary input wants 0
  std::string text{};  ///< where and by how much it failed worst; empty if it passed
};

/// Judges `args.out` (and `args.lse`, if given) by the rule of docs/numerics.md, "How results are
/// judged". `low` is what forward_low gave for the same arguments. A NaN in `ref` where ours is not
/// NaN fails, and the other way round; so does an infinity that is not the same in both. An element
/// that `low` got infinite or NaN widens no bound. Packed: every segment is a batch entry, rows of
/// no segment are not looked at.
Verdict judge(const Args& args, const Options& options, const Forward& ref, const Forward& low);

/// Gradients to be judged; those without data are not.
struct Gradients {
  ConstTensor dq{};     ///< like query
  ConstTensor dk{};     ///< like key
  ConstTensor dv{};     ///< like value
  ConstTensor dbias{};  ///< like bias
  ConstTensor dsink{};  ///< [1, head_q, 1, 1]
};

/// Judges gradients by the same rule with k = 3.
Verdict judge_backward(const Args& args, const Options& options, const Gradients& ours,
                       const Backward& ref, const Backward& low);

/// What judge() does to each tensor: the rule for one [batch, head, seq, dim] result.
struct Judged {
  std::string name{};                              ///< for the text
  ConstTensor ours{};                              ///< any strides; its type sets u
  const std::vector<double>* ref = nullptr;        ///< dense, of the same extents
  const std::vector<double>* low = nullptr;        ///< dense, of the same extents
  const std::vector<double>* magnitude = nullptr;  ///< [batch, head, seq]
  double factor = 2;                               ///< k
  /// Rows [starts[i], starts[i + 1]) are judged as one head each; empty: all rows of a batch entry
  /// are.
  std::vector<std::int64_t> starts{};
};
Verdict judge_tensor(const Judged& judged);

}  // namespace tessera::reference
