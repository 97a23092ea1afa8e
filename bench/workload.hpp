#pragma once
/// What a benchmark computes: a case by its named axes, and its data.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tessera.hpp>

#include "bench/adapter.hpp"

namespace tessera::bench {

enum class Visible : std::uint8_t {
  Full,
  Causal,
  Window,  ///< causal, and at most the last `Case::window` keys
};

/// What else touches the score; None leaves the plain kernel.
enum class Extra : std::uint8_t { None, Gqa4, Softcap, Alibi, Bias, Dropout };

enum class Layout : std::uint8_t { Bhsd, Bshd };

inline constexpr std::int64_t kHeads = 8;
inline constexpr std::int64_t kWindow = 256;

/// One point of the axes. Without a preset batch·heads is 8 (batch 1, 8 query heads), seq_q = seq_k
/// and head_dim is V's too, so that a name needs five axes only. A preset is the shape of a model
/// that exists: it says how many heads there are, and its name says batch, key heads and layout.
struct Case {
  DType dtype = DType::fp32;
  std::int64_t head_dim = 64;
  Visible visible = Visible::Full;
  std::int64_t seq = 16;
  Extra extra = Extra::None;

  Operation operation = Operation::forward;
  std::string_view preset{};
  std::int64_t batch = 1;
  std::int64_t heads = kHeads;
  std::int64_t key_heads = 0;   ///< 0: as many as heads (Gqa4: a quarter)
  std::int64_t head_dim_v = 0;  ///< 0: head_dim
  std::int64_t window = kWindow;
  std::int64_t documents = 0;  ///< packed: seq tokens in all, in as many documents; 0: not packed
  Layout layout = Layout::Bhsd;
  std::string_view note{};  ///< what else a name needs, at its end
};

/// "forward", "backward" or "decode".
std::string_view to_string(Operation operation) noexcept;

/// "bf16/d128/causal/s4096", "bf16/d128/causal/s4096/gqa4",
/// "bf16/d128/causal/s2048/llama/b1/k8/bshd".
std::string name_of(const Case& c);

/// "forward/" and the like, then name_of.
std::string full_name_of(const Case& c);

/// Lengths of a case's documents: seeded, skewed, at least 1, together c.seq.
std::vector<std::int64_t> document_lengths(const Case& c);

/// Forward: 2·batch·head_q·seq_q·avg_k·(d + d_v), avg_k being the mean number of visible keys a
/// row. Backward: 2·batch·head_q·seq_q·avg_k·(3 d + 2 d_v). Decode: as forward, for one row.
double flops_of(const Case& c) noexcept;

/// Bytes that a call must move at least: every operand once (decode: of K and V alone).
double bytes_of(const Case& c) noexcept;

/// A case's data in device memory: seeded, standard normal. Move-only.
class Workload {
 public:
  explicit Workload(const Case& c);

  const Case& what() const noexcept { return case_; }
  const Args& args() const noexcept { return args_; }
  const Options& options() const noexcept { return options_; }
  Problem problem() const { return describe(args_, options_, case_.operation); }

 private:
  void* random(DType dtype, std::int64_t count, std::uint64_t seed);
  void* upload(const void* host, std::size_t bytes);
  Tensor random_tensor(const Extents& extent, std::uint64_t seed);
  void add_extra();
  void pack();
  void add_gradients();

  Case case_;
  std::vector<Buffer> buffers_;
  Args args_;
  Options options_;
};

/// A workload, planned, with a workspace of its own: what a caller who cares does once. With an
/// adapter it is the adapter's call instead, and there is no plan. The workload must outlive it.
class Runner {
 public:
  explicit Runner(const Workload& workload, const Adapter* adapter = nullptr);

  /// The kernel's name, or the adapter's.
  std::string_view kernel() const noexcept;
  void queue() const;  ///< starts a call
  void run() const;    ///< a call from start to end

 private:
  std::optional<Plan> plan_;
  const Adapter* adapter_;
  Buffer workspace_;
  Operation operation_;
  Options options_;
  Args args_;
};

}  // namespace tessera::bench
