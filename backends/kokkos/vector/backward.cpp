// Backward: lays out its phases' memory and hands their tasks to threads.
//
//     forward    out and lse, where the caller did not keep them
//     rows       lse in base 2 and δ = rowsum(dO∘O) − dlse of every row
//     sums       dQ; dK and dV of one key head, or parts of them
//     keys       parts to dK and dV, in fixed order
//     bias       dbias, if wanted
//     sinks      dsink, if wanted

#include <cmath>
#include <string>

#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/tuning/backward.hpp"
#include "backends/kokkos/vector/units.hpp"
#include "backends/kokkos/vector/vector.hpp"
#include "core/kernel/lanes.hpp"
#include "core/kernel/modifiers.hpp"
#include "core/kernel/softmax.hpp"
#include "core/kernel/work_order.hpp"
#include "core/src/environment.hpp"

namespace tessera::kokkos::vector {
namespace {

using kernel::larger;
using kernel::smaller;

constexpr Index kRowsBlock = 256;  // rows or keys of a task that only streams

// Sizes come from problems that nobody has allocated yet: what does not fit in memory saturates.
constexpr double kMost = 9e15;

constexpr bool ends_stretches() {
  for (const BackwardTuning& row : kBackwardTuning) {
    if (kStretchKeys % row.keys != 0) return false;
  }
  return true;
}
static_assert(ends_stretches(), "a stretch is whole blocks of keys");

// Of one task's dK and dV.
double bytes_of_sums(const Problem& p) {
  const double keys = static_cast<double>(most_keys(p));
  const Index columns = gradient_columns(p.query.extent.dim) + gradient_columns(p.value.extent.dim);
  const double bytes = (keys + 8) * static_cast<double>(columns) * sizeof(float);
  return bytes < kMost ? bytes : kMost;
}

// How a problem is cut: the rows of a key head into chunks, and its chunks into parts.
struct Cut {
  Blocking blocking;
  Index parts = 1;
};

// Tasks wanted: with `deterministic` the sums must not depend on the number of threads, and are cut
// as for a few.
Cut cut(const Problem& p, Index panel) {
  constexpr Index kTasksAThread = 4, kDeterministicTasks = 32;
  constexpr double kMostSums = 512.0 * 1024 * 1024;  // bytes of parts at once
  const Index wanted = p.options.deterministic ? kDeterministicTasks : kTasksAThread * threads();
  const Index head_k = larger(1, p.key.extent.head);
  const Index group = larger(1, p.query.extent.head / head_k);
  const double heads = static_cast<double>(sequences(p)) * static_cast<double>(head_k);
  const Index panels = larger(1, kernel::count_blocks(most_rows(p), panel));
  Cut c{widest_blocking(kBackwardTuning, p.query.extent.dim, p.value.extent.dim, panel), 1};
  const double missing = heads > 0 ? static_cast<double>(wanted) / heads : 1.0;
  if (missing > 1.0) {
    // Chunks small enough for every part to get two.
    const double fitting =
        static_cast<double>(panels) * static_cast<double>(group) / (2.0 * missing);
    if (fitting < static_cast<double>(c.blocking.panels))
      c.blocking.panels = larger(1, static_cast<Index>(fitting));
  }
  const Index chunks_a_head = kernel::count_blocks(panels, c.blocking.panels);
  c.blocking.panels = kernel::count_blocks(panels, chunks_a_head);  // equal chunks
  if (missing > 1.0) {
    const double chunks = static_cast<double>(chunks_a_head) * static_cast<double>(group);
    const double bytes = bytes_of_sums(p) * heads;
    double parts = missing < chunks ? missing : chunks;
    if (parts * bytes > kMostSums) parts = kMostSums / bytes;
    c.parts = larger(1, std::lround(parts));
  }
  return c;
}

// Where things lie in the workspace, in bytes.
struct Parts {
  std::size_t out = 0;        // recomputed
  std::size_t lse_given = 0;  // recomputed
  std::size_t forward = 0;    // scratch memory of recomputing
  std::size_t lse = 0;        // statistics
  std::size_t delta = 0;
  std::size_t sums = 0;
  std::size_t sums_stride = 0;  // of a thread, or of a task if there are parts
  std::size_t scratch = 0;
  std::size_t scratch_stride = 0;
  std::size_t size = 0;
};

class Layout {
 public:
  std::size_t take(double bytes) {
    const std::size_t at = next_;
    total_ += bytes < kMost ? bytes + 128 : kMost;
    if (total_ > kMost) total_ = kMost;
    next_ = static_cast<std::size_t>(total_) / 128 * 128;
    return at;
  }
  std::size_t size() const { return next_; }

 private:
  double total_ = 0;
  std::size_t next_ = 0;
};

// The forward problem whose results the caller did not keep.
Problem forward_problem(const Problem& p) {
  Problem f = p;
  f.operation = Operation::forward;
  return f;
}

// What forward itself would choose, so that what is recomputed has the bits of what was not kept.
// Where backward's kernel was chosen by a name that no forward kernel has: the instruction set of
// backward.
int forward_id(const Problem& p, int backward_id) {
  const std::string_view forced = detail::forced_kernel();
  for (int id = 0; id < static_cast<int>(choices().size()); ++id) {
    const backend::Candidate candidate = forward_candidate(forward_problem(p), id);
    if (!candidate.rejected.empty()) continue;
    if (forced.empty() || detail::is_called(candidate.kernel, forced)) return id;
  }
  return backward_id;
}

Parts parts_of(const Problem& p, const Cut& c, int forward_id) {
  const double rows = static_cast<double>(p.query.extent.batch) *
                      static_cast<double>(p.query.extent.head) *
                      static_cast<double>(p.query.extent.seq);
  const Index dim = p.query.extent.dim, dim_v = p.value.extent.dim;
  Layout layout;
  Parts parts;
  if (!p.out) {
    parts.out = layout.take(rows * static_cast<double>(dim_v * size_of(p.query.dtype)));
    if (!p.lse) parts.lse_given = layout.take(rows * sizeof(float));
    parts.forward = layout.take(
        static_cast<double>(forward_candidate(forward_problem(p), forward_id).workspace));
  }
  parts.lse = layout.take(rows * sizeof(float));
  parts.delta = layout.take(rows * sizeof(float));
  const double tasks = static_cast<double>(sequences(p)) * static_cast<double>(p.key.extent.head) *
                       static_cast<double>(c.parts);
  parts.sums_stride = round_up(static_cast<std::size_t>(bytes_of_sums(p)), std::size_t{128});
  parts.sums = layout.take(static_cast<double>(parts.sums_stride) *
                           (c.parts > 1 ? tasks : static_cast<double>(threads())));
  const GradientScratch scratch =
      gradient_layout(c.blocking, dim, dim_v, general(p), by_stretches(p));
  parts.scratch_stride = static_cast<std::size_t>(scratch.size) * sizeof(float);
  parts.scratch =
      layout.take(static_cast<double>(parts.scratch_stride) * static_cast<double>(threads()));
  parts.size = layout.size();
  return parts;
}

std::string why(const Problem& p, const Cut& c, int forward_id) {
  return "chunks of " + std::to_string(c.blocking.panels) + " x " +
         std::to_string(c.blocking.panel) + " rows, one a SIMD lane, against blocks of " +
         std::to_string(c.blocking.keys) + " packed keys; " + std::to_string(c.parts) +
         (c.parts == 1 ? " part" : " parts") + " a key head" +
         (p.options.deterministic ? ", whatever the number of threads" : "") + "; " +
         (general(p) ? "general" : "plain") + " flavour" +
         (p.out ? ""
                : "; recomputes by " +
                      std::string(choices()[static_cast<std::size_t>(forward_id)].forward_kernel));
}

// One call.
class Backward {
 public:
  Backward(const backend::Candidate& candidate, const Problem& problem,
           const kernel::BackwardArguments& arguments, const Stream& stream)
      : problem_(problem),
        b_(arguments),
        stream_(stream),
        forward_id_(candidate.forward_id),
        unit_(*choices()[static_cast<std::size_t>(candidate.id)].backward),
        element_(static_cast<int>(element(problem.query.dtype))),
        cut_(cut(problem, choices()[static_cast<std::size_t>(candidate.id)].unit->panel)),
        parts_(parts_of(problem, cut_, candidate.forward_id)) {
    const kernel::ForwardArguments& a = b_.forward;
    serial_ = tiny(5.0 * static_cast<double>(a.batch) * static_cast<double>(a.head_q) *
                   static_cast<double>(a.seq_q) * static_cast<double>(a.seq_k) *
                   static_cast<double>(a.dim + a.dim_v));
  }

  std::size_t workspace() const { return parts_.size; }

  void run_all(std::byte* memory) {
    memory_ = memory;
    const kernel::ForwardArguments& a = b_.forward;
    if (a.head_k > 0) {
      if (a.out.data == nullptr) recompute();
      rows();
      sums();
      if (cut_.parts > 1) keys();
    }
    if (b_.dbias.data) bias();
    if (b_.dsink) sinks();
  }

 private:
  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  float* scratch(int thread) const {
    return at<float>(parts_.scratch + parts_.scratch_stride * static_cast<std::size_t>(thread));
  }
  Index statistics(const kernel::Sequence& s, Index head) const {
    return (s.batch * b_.forward.head_q + head) * b_.forward.total_q + s.query;
  }

  void recompute() {
    kernel::ForwardArguments& a = b_.forward;
    a.out = {at<void>(parts_.out), a.head_q * a.total_q * a.dim_v, a.total_q * a.dim_v, a.dim_v};
    const bool wants_lse = a.lse.data == nullptr;
    const kernel::Operand<float> given = a.lse;
    a.lse = {};
    if (wants_lse) a.lse = {at<float>(parts_.lse_given), a.head_q * a.total_q, a.total_q, 1};
    const Problem problem = forward_problem(problem_);
    launch_forward(forward_candidate(problem, forward_id_), problem, a, at<void>(parts_.forward),
                   stream_);
    if (!wants_lse) a.lse = given;
  }

  void rows() {
    const kernel::ForwardArguments& a = b_.forward;
    const Index blocks = kernel::count_blocks(a.seq_q, kRowsBlock);
    run(a.batch * a.head_q * blocks, serial_, stream_, [&](Index task, int) {
      const Index head = task / blocks % a.head_q;
      const kernel::Sequence s = kernel::sequence(a, task / blocks / a.head_q);
      const Index first = task % blocks * kRowsBlock;
      if (first >= s.rows) return;
      unit_.rows[element_]({&b_, &s, head, first, smaller(first + kRowsBlock, s.rows),
                            at<float>(parts_.lse) + statistics(s, head),
                            at<float>(parts_.delta) + statistics(s, head)});
    });
  }

  void sums() {
    const kernel::ForwardArguments& a = b_.forward;
    const auto backward = unit_.backward[element_][static_cast<int>(flavour(problem_))];
    run(a.batch * a.head_k * cut_.parts, serial_, stream_, [&](Index task, int thread) {
      const Index head = task / cut_.parts, key_head = head % a.head_k, batch = head / a.head_k;
      const kernel::Sequence s = kernel::sequence(a, batch);
      float* const sums = sums_of(cut_.parts > 1 ? task : thread);
      backward({&b_, &s, batch, key_head, task % cut_.parts, cut_.parts, cut_.blocking,
                at<float>(parts_.lse), at<float>(parts_.delta), by_stretches(problem_), sums,
                scratch(thread)});
      if (cut_.parts == 1) unit_.keys[element_]({&b_, &s, key_head, 0, last_key(s), sums, 0, 1});
    });
  }

  void keys() {
    const kernel::ForwardArguments& a = b_.forward;
    const Index blocks = kernel::count_blocks(a.seq_k, kRowsBlock);
    run(a.batch * a.head_k * blocks, serial_, stream_, [&](Index task, int) {
      const Index head = task / blocks, first = task % blocks * kRowsBlock;
      const kernel::Sequence s = kernel::sequence(a, head / a.head_k);
      const Index last = smaller(first + kRowsBlock, last_key(s));
      if (first >= last) return;
      unit_.keys[element_]({&b_, &s, head % a.head_k, first, last, sums_of(head * cut_.parts),
                            static_cast<Index>(parts_.sums_stride / sizeof(float)), cut_.parts});
    });
  }

  float* sums_of(Index index) const {
    return at<float>(parts_.sums + parts_.sums_stride * static_cast<std::size_t>(index));
  }
  // Keys whose gradients are written: packed, behind the sequence lies the next one.
  Index last_key(const kernel::Sequence& s) const {
    return b_.forward.packed() ? s.keys : b_.forward.seq_k;
  }

  void bias() {
    const kernel::ForwardArguments& a = b_.forward;
    const kernel::ScoreGradient& d = b_.dbias;
    const Blocking blocking{cut_.blocking.panel, 1, cut_.blocking.keys};
    const Index rows = d.each_row ? blocking.panel : larger(1, a.seq_q);
    const Index keys = d.each_column ? blocking.keys : larger(1, a.seq_k);
    const Index row_blocks = d.each_row ? kernel::count_blocks(a.seq_q, rows) : 1;
    const Index key_blocks = d.each_column ? kernel::count_blocks(a.seq_k, keys) : 1;
    const Index heads = d.each_head ? a.head_q : 1, batches = d.each_batch ? a.batch : 1;
    run(batches * heads * row_blocks * key_blocks, serial_, stream_, [&](Index task, int thread) {
      const Index key = task % key_blocks * keys, row = task / key_blocks % row_blocks * rows;
      const Index head = task / key_blocks / row_blocks;
      unit_.bias[element_]({&b_, head / heads, head % heads, row, smaller(row + rows, a.seq_q), key,
                            smaller(key + keys, a.seq_k), blocking, at<float>(parts_.lse),
                            at<float>(parts_.delta), scratch(thread)});
    });
  }

  // Σ P_sink·(dlse − D).
  void sinks() {
    const kernel::ForwardArguments& a = b_.forward;
    run(a.head_q, serial_, stream_, [&](Index head, int) {
      const float sink = a.sinks[head * a.sinks_head];
      double sum = 0;
      for (Index batch = 0; batch < a.batch && sink != kernel::kMinusInfinity; ++batch) {
        const kernel::Sequence s = kernel::sequence(a, batch);
        const float* const lse =
            a.lse.data + s.batch * a.lse.batch + head * a.lse.head + s.query * a.lse.seq;
        const float* const delta = at<float>(parts_.delta) + statistics(s, head);
        for (Index row = 0; row < s.query_end; ++row)
          sum -= kernel::sink_probability(sink, lse[row * a.lse.seq]) *
                 static_cast<double>(delta[row]);
      }
      b_.dsink[head * b_.dsink_head] = static_cast<float>(sum);
    });
  }

  const Problem& problem_;
  kernel::BackwardArguments b_;  // ours: recomputed out and lse are entered
  const Stream& stream_;
  const int forward_id_;
  const BackwardUnit& unit_;
  const int element_;
  const Cut cut_;
  const Parts parts_;
  bool serial_ = false;
  std::byte* memory_ = nullptr;
};

}  // namespace

void append_backward(const Problem& problem, std::vector<backend::Candidate>& candidates) {
  for (const Choice& choice : choices()) {
    if (choice.backward == nullptr) continue;
    backend::Candidate candidate;
    candidate.kernel = choice.backward_kernel;
    candidate.id = static_cast<int>(&choice - choices().data());
    candidate.rejected = reject(choice, problem);
    if (candidate.rejected.empty()) {
      const Cut c = cut(problem, choice.unit->panel);
      candidate.tile_q = c.blocking.panel * c.blocking.panels;
      candidate.tile_k = c.blocking.keys;
      candidate.head_dim = problem.query.extent.dim;
      candidate.head_dim_v = problem.value.extent.dim;
      candidate.forward_id = forward_id(problem, candidate.id);
      candidate.workspace = parts_of(problem, c, candidate.forward_id).size;
      candidate.why = why(problem, c, candidate.forward_id);
    }
    candidates.push_back(std::move(candidate));
  }
}

void launch_backward(const backend::Candidate& candidate, const Problem& problem,
                     const kernel::BackwardArguments& arguments, void* workspace,
                     const Stream& stream) {
  Backward call(candidate, problem, arguments, stream);
  check_workspace(workspace, call.workspace(), candidate);
  call.run_all(static_cast<std::byte*>(workspace ? workspace : arena(call.workspace())));
}

}  // namespace tessera::kokkos::vector
