#pragma once
/// What a benchmark computes: a case by its named axes, and its data.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

namespace tessera::bench {

enum class Visible : std::uint8_t {
  Full,
  Causal,
  Window,  ///< causal, and at most the last 256 keys
};

/// What else touches the score; None leaves the plain kernel.
enum class Extra : std::uint8_t { None, Gqa4, Softcap, Alibi, Bias, Dropout };

/// One point of the axes. By convention batch·heads is 8 (batch 1, 8 query heads) in every case,
/// seq_q = seq_k and head_dim is V's too, so that a name needs five axes only.
struct Case {
  DType dtype = DType::fp32;
  std::int64_t head_dim = 64;
  Visible visible = Visible::Full;
  std::int64_t seq = 16;
  Extra extra = Extra::None;
};

inline constexpr std::int64_t kHeads = 8;
inline constexpr std::int64_t kWindow = 256;

/// "bf16/d128/causal/s4096", "bf16/d128/causal/s4096/gqa4".
std::string name_of(const Case& c);

/// 2·batch·head_q·seq_q·avg_k·(d + d_v), avg_k being the mean number of visible keys a row.
double flops_of(const Case& c) noexcept;

/// Bytes that a call must move at least: q, k, v and out (and bias) once each.
double bytes_of(const Case& c) noexcept;

/// A case's data in device memory: seeded, standard normal. Move-only.
class Workload {
 public:
  explicit Workload(const Case& c);

  const Args& args() const noexcept { return args_; }
  const Options& options() const noexcept { return options_; }
  Problem problem() const { return describe(args_, options_); }

 private:
  void* random(DType dtype, std::int64_t count, std::uint64_t seed);
  void* upload(const void* host, std::size_t bytes);

  std::vector<Buffer> buffers_;
  Args args_;
  Options options_;
};

/// A workload, planned, with a workspace of its own: what a caller who cares does once. The
/// workload must outlive it.
class Runner {
 public:
  explicit Runner(const Workload& workload);

  const Plan& plan() const noexcept { return plan_; }
  void queue() const;  ///< starts a call
  void run() const;    ///< a call from start to end

 private:
  Plan plan_;
  Buffer workspace_;
  Args args_;
};

}  // namespace tessera::bench
