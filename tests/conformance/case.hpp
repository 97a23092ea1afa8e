#pragma once
/// A case: everything that makes one call, apart from memory. Plain data, reproducible, with a name
/// that says it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tessera/options.hpp>
#include <tessera/problem.hpp>
#include <tessera/tensor.hpp>

namespace tessera::testing {

/// How query, key, value and out lie in memory.
enum class Layout : std::uint8_t {
  bhsd,            ///< dense
  bshd,            ///< dense
  fused_qkv,       ///< q, k and v in one array [batch][seq][q heads, k heads, v heads][dim]
  transposed,      ///< each operand in another order of its axes
  padded,          ///< gaps of NaN between rows, heads and batches; 16-byte aligned
  unaligned,       ///< odd storage offset, odd strides
  repeated_head,   ///< keys and values with head stride 0
  repeated_batch,  ///< keys and values with batch stride 0
  repeated_seq,    ///< keys and values with seq stride 0
  one_a_row,       ///< dout alone: each row is one number, dim stride 0
  one_number,      ///< dout alone: one number, all strides 0, as the gradient of a sum is
};

/// What the numbers in query, key and value look like. The rule by which results are judged knows
/// nothing of the size of scores. In fp32, where no rounding of the output hides it, two right
/// computations of scores of some tens, in a row with a few keys, differ by more than twice what
/// one of them differs from the truth by luck: `large` is for 16 bits.
enum class Distribution : std::uint8_t {
  gaussian,  ///< mean 0, variance 1
  skewed,    ///< long tails, values of mean 1
  large,     ///< gaussian times 3
  integers,  ///< whole numbers in [-8, 8], exact in every type
  alike,     ///< keys nearly the same, as values are: all weigh nearly alike
  sink,      ///< likewise, but for the first key, which weighs more
};

/// Which of forward's results backward is given.
enum class Keep : std::uint8_t { both, lse, nothing };

enum class Alibi : std::uint8_t { none, per_head, per_batch };
enum class Bias : std::uint8_t { none, fp32, input };

/// Axes along which a score modifier repeats, or'ed together.
inline constexpr unsigned kNoBroadcast = 0;
inline constexpr unsigned kOverBatch = 1;
inline constexpr unsigned kOverHead = 2;
inline constexpr unsigned kOverRow = 4;
inline constexpr unsigned kOverColumn = 8;
inline constexpr unsigned kByStride = 16;  ///< full extent and stride 0; otherwise extent 1

struct Case {
  std::string label{};  ///< of a named case; precedes the description in its name
  DType dtype = DType::fp32;
  std::int64_t batch = 1;
  std::int64_t head_q = 1;
  std::int64_t head_k = 1;
  std::int64_t seq_q = 64;  ///< packed: ignored, as seq_k and batch are
  std::int64_t seq_k = 64;
  std::int64_t dim = 64;
  std::int64_t dim_v = 64;
  Mask mask{};
  Layout layout = Layout::bhsd;
  std::vector<std::int32_t> key_begin{};  ///< [batch] or absent
  std::vector<std::int32_t> key_end{};
  std::vector<std::int32_t> query_end{};
  bool packed = false;
  std::vector<std::int64_t> lengths_q{};  ///< a segment each
  std::vector<std::int64_t> lengths_k{};
  bool wide_prefix_sums = false;  ///< int64
  bool states_maximum = true;     ///< Options::max_seq_q and max_seq_k are given
  std::int64_t slack_k = 0;       ///< rows of keys behind the last segment
  std::optional<float> scale{};
  float softcap = 0;
  Alibi alibi = Alibi::none;
  bool negative_slopes = false;
  Bias bias = Bias::none;
  unsigned bias_broadcast = kNoBroadcast;
  bool boolean_mask = false;
  unsigned boolean_broadcast = kNoBroadcast;
  double visible = 0.75;  ///< share of the boolean mask that is visible
  bool sinks = false;
  double dropout = 0;
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  bool seed_on_device = false;
  Accumulate accumulate = Accumulate::fp32;  ///< fp16: for fp16 inputs, forward and decode
  bool lse = true;
  Distribution distribution = Distribution::gaussian;
  std::uint64_t fill = 1;    ///< seed of all data
  bool exact_end = false;    ///< memory ends with the last element; otherwise NaN follows
  bool expects_nan = false;  ///< the right answer holds NaN
  bool expensive = false;    ///< may take the reference longer than the limit: one of a few
  Operation operation = Operation::forward;
  bool gradients =
      true;  ///< may backward be asked for, too? NaN and what saturates do not allow it

  // Of backward alone.
  Keep keep = Keep::both;
  std::optional<Layout> dout_layout{};      ///< absent: `layout`; what repeats keys repeats dout
  std::optional<Layout> gradient_layout{};  ///< of dq, dk and dv; absent: `layout`
  bool dlse = false;
  bool dbias = false;  ///< where there is a bias
  bool dsink = false;  ///< where there are sinks

  std::int64_t group() const { return head_k > 0 ? head_q / head_k : 1; }
  std::int64_t segments() const { return static_cast<std::int64_t>(lengths_q.size()); }
  std::int64_t total_q() const;  ///< rows of query in memory along seq
  std::int64_t total_k() const;
  std::int64_t longest_q() const;  ///< extents of a score modifier
  std::int64_t longest_k() const;
  std::int64_t multiply_adds() const;  ///< as if everything were visible
};

std::string to_string(Layout layout);
std::string to_string(const Mask& mask);

/// What backward is asked for beside a forward case: what is kept and given, and how gradients lie,
/// is drawn from the case.
Case backward_of(const Case& c);

/// `Forward/bf16_d128_causal_br_gqa4_bshd_softcap_b2_h8_q65_k127`: all that a reader needs to know
/// the kind.
std::string name(const Case& c);

}  // namespace tessera::testing
