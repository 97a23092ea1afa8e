// Which of the gradient kernels a problem gets, and their launches, one after the other.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "backends/gpu_common/head_dims.hpp"
#include "backends/gpu_common/problem.hpp"
#include "backends/hip/code_objects.hpp"
#include "backends/hip/common/launch.hpp"
#include "backends/hip/gradient/config.hpp"
#include "backends/hip/gradient/parameters.hpp"
#include "backends/hip/host.hpp"

namespace tessera::hip::gradient {
namespace {

constexpr std::string_view kBackward = "backward.matrix";

// Ascending: the first that holds a problem is the cheapest.
constexpr std::array kChoices{make_choice<Shape64>("64"), make_choice<Shape128>("128"),
                              make_choice<Shape192x128>("192x128"), make_choice<Shape192>("192"),
                              make_choice<Shape256>("256")};

// --- Names of instances ----------------------------------------------------------------------

std::string family_of(DType dtype) {
  return std::string("backward_") + (dtype == DType::bf16 ? "bf16_" : "fp16_");
}

// `what`: dq, dk, dv, dkv; these have two flavours.
std::string instance_of(const Choice& choice, DType dtype, std::string_view what, bool general) {
  return family_of(dtype) + std::string(choice.shape) + "_" + std::string(what) +
         (general ? "_general" : "");
}

// Are dK and dV one kernel's? As instances.cmake has it.
bool together(const Choice& choice, const Device& device) {
  constexpr int kWide = 64;
  return choice.dim <= 64 || (choice.dim <= 128 && device.wave == kWide);
}

std::vector<std::string> instances(const Problem& p, const Choice& choice, const Device& device) {
  const DType dtype = p.query.dtype;
  const bool general = gpu::general(p);
  std::vector<std::string> all{family_of(dtype) + "rows",
                               instance_of(choice, dtype, "dq", general)};
  if (together(choice, device)) {
    all.push_back(instance_of(choice, dtype, "dkv", general));
  } else {
    all.push_back(instance_of(choice, dtype, "dk", general));
    all.push_back(instance_of(choice, dtype, "dv", general));
  }
  if (p.dbias) all.push_back(instance_of(choice, dtype, "dbias", false));
  if (p.dsink) all.emplace_back("backward_dsink");
  return all;
}

// --- Forward, where its results were not kept -------------------------------------------------

// Its out is dense, in the workspace.
Problem forward_problem(const Problem& p) {
  Problem f = p;
  f.operation = Operation::forward;
  if (f.out) return f;
  Extents extent = p.query.extent;
  extent.dim = p.value.extent.dim;
  f.out = TensorSpec{.dtype = p.query.dtype, .extent = extent, .stride = bhsd_strides(extent)};
  return f;
}

// That of this build's forward kernels which computes what this family takes.
backend::Candidate forward_candidate(const Problem& p, const Device& device) {
  std::vector<backend::Candidate> all;
  matrix::append(forward_problem(p), device, all);
  return all.front();
}

// --- Workspace -------------------------------------------------------------------------------

// Offsets in bytes.
struct Workspace {
  std::size_t lse = 0;  // statistics of every row, fp32
  std::size_t delta = 0;
  std::size_t out = 0;        // what forward gave, where the caller did not keep it
  std::size_t lse_given = 0;  // likewise
  std::size_t size = 0;

  static Workspace of(const Problem& p) {
    const double rows = static_cast<double>(p.query.extent.batch) *
                        static_cast<double>(p.query.extent.head) *
                        static_cast<double>(p.query.extent.seq);
    Workspace w;
    w.lse = w.take(rows * sizeof(float));
    w.delta = w.take(rows * sizeof(float));
    if (p.out) return w;
    w.out = w.take(rows * static_cast<double>(p.value.extent.dim) *
                   static_cast<double>(size_of(p.query.dtype)));
    if (!p.lse) w.lse_given = w.take(rows * sizeof(float));
    return w;
  }

 private:
  // Sizes come from problems that nobody has allocated yet: what does not fit in memory saturates.
  std::size_t take(double bytes) {
    constexpr double kMost = 9e15;
    constexpr std::size_t kStep = 128;
    const std::size_t at = size;
    const double total = static_cast<double>(size) + std::min(bytes, kMost);
    size = (static_cast<std::size_t>(std::min(total, kMost)) + kStep - 1) / kStep * kStep;
    return at;
  }
};

// --- Planning --------------------------------------------------------------------------------

std::string reject(const Problem& p, const Device& device, int choice) {
  std::string reason = gpu::reject_dims(p);
  if (!reason.empty()) return reason;
  if (!gpu::is_16_bit(p.query.dtype)) return "it computes fp16 and bf16 only";
  if (choice < 0)
    return gpu::both_dims(p) + "it has no kernel for them in a build for " TESSERA_BUILD_HEAD_DIMS
                               ": both must be at most 256";
  for (const std::string& name : instances(p, kChoices[static_cast<std::size_t>(choice)], device)) {
    reason = reject_target(device.isa, name);
    if (!reason.empty()) return reason;
  }
  return p.out ? "" : forward_candidate(p, device).rejected;
}

// is_fast of the rows that a work-group owns; dout may have another stride along dim.
bool fast(const TensorSpec& spec) {
  return (spec.stride.dim == 1 || spec.extent.dim <= 1) && is_fast(spec, kOwned);
}

// --- Launch ----------------------------------------------------------------------------------

// One call.
class Backward {
 public:
  Backward(const Launch& launch, const kernel::BackwardArguments& arguments)
      : launch_(launch),
        choice_(kChoices[static_cast<std::size_t>(launch.candidate.id)]),
        at_(Workspace::of(launch.problem)) {
    p_.arguments = arguments;
    p_.statistics = {memory<float>(at_.lse), memory<float>(at_.delta)};
    const Problem& problem = launch.problem;
    p_.fast_q = fast(problem.query);
    p_.fast_k = fast(problem.key);
    p_.fast_v = fast(problem.value);
    p_.fast_dout = fast(*problem.dout);
    p_.fast_out = fast(*forward_problem(problem).out);
    p_.aligned_dq = gpu::rows_aligned(*problem.dq, 8);
    p_.aligned_dk = gpu::rows_aligned(*problem.dk, 8);
    p_.aligned_dv = gpu::rows_aligned(*problem.dv, 8);
  }

  void run() {
    if (a().out.data == nullptr) recompute();
    const DType dtype = launch_.problem.query.dtype;
    const Index rows = (a().packed() ? 1 : a().batch) * a().head_q * a().total_q;
    queue_tasks(family_of(dtype) + "rows", kernel::count_blocks(rows, kOwned));
    p_.order = kernel::work_order(a(), kOwned, nullptr);
    queue_tasks(name("dq"), p_.order.size());
    p_.order = kernel::key_work_order(a(), kOwned, nullptr);
    if (together(choice_, launch_.device)) {
      queue_tasks(name("dkv"), p_.order.size());
    } else {
      queue_tasks(name("dk"), p_.order.size());
      queue_tasks(name("dv"), p_.order.size());
    }
    if (p_.arguments.dbias.data != nullptr)
      queue_tasks(instance_of(choice_, dtype, "dbias", false), bias_blocks());
    if (p_.arguments.dsink != nullptr) queue_tasks("backward_dsink", a().head_q);
  }

 private:
  kernel::ForwardArguments& a() { return p_.arguments.forward; }

  template <class T>
  T* memory(std::size_t offset) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(launch_.workspace) + offset);
  }

  std::string name(std::string_view what) {
    return instance_of(choice_, launch_.problem.query.dtype, what, a().general());
  }

  // out and lse, where the caller did not keep them.
  void recompute() {
    a().out = {memory<void>(at_.out), a().head_q * a().total_q * a().dim_v, a().total_q * a().dim_v,
               a().dim_v};
    const kernel::Operand<float> given = a().lse;
    a().lse = {};
    if (given.data == nullptr)
      a().lse = {memory<float>(at_.lse_given), a().head_q * a().total_q, a().total_q, 1};
    const Problem problem = forward_problem(launch_.problem);
    const backend::Candidate candidate = forward_candidate(launch_.problem, launch_.device);
    matrix::launch({.candidate = candidate,
                    .problem = problem,
                    .arguments = a(),
                    .workspace = nullptr,
                    .stream = launch_.stream,
                    .device = launch_.device});
    if (given.data != nullptr) a().lse = given;
  }

  Index bias_blocks() {
    const kernel::ScoreGradient& d = p_.arguments.dbias;
    return (d.each_batch ? a().batch : 1) * (d.each_head ? a().head_q : 1) *
           (d.each_row ? kernel::count_blocks(a().seq_q, kOwned) : 1) *
           (d.each_column ? kernel::count_blocks(a().seq_k, kTile) : 1);
  }

  void queue_tasks(const std::string& instance, Index tasks) {
    if (tasks == 0) return;
    // A launch has fewer than 2^32 threads: a work-group takes up what is beyond in turn.
    constexpr Index kMostGroups = (Index{1} << 32) / kThreads - 1;
    p_.tasks = tasks;
    p_.groups = std::min(kMostGroups, tasks);
    queue(launch_, instance, {static_cast<unsigned>(p_.groups), 1, 1}, kThreads, 0, &p_, sizeof p_);
  }

  const Launch& launch_;
  const Choice& choice_;
  const Workspace at_;
  Parameters p_{};
};

}  // namespace

void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all) {
  if (problem.operation != Operation::backward) return;
  const int choice = find_choice(kChoices, problem);
  backend::Candidate candidate;
  candidate.kernel = kBackward;
  candidate.id = choice;
  candidate.rejected = reject(problem, device, choice);
  if (candidate.rejected.empty()) {
    const Choice& c = kChoices[static_cast<std::size_t>(choice)];
    candidate.tile_q = candidate.tile_k = kOwned;
    candidate.head_dim = c.dim;
    candidate.head_dim_v = c.dim_v;
    candidate.workspace = Workspace::of(problem).size;
    candidate.why = "matrix instructions of " + device.isa + ", " + std::to_string(kOwned) +
                    " rows or keys a work-group of " + std::to_string(kThreads) +
                    " threads, dk and dv " + (together(c, device) ? "together; " : "apart; ") +
                    (gpu::general(problem) ? "general" : "plain") + " flavour" +
                    (problem.out ? "" : "; recomputes what forward gave");
  }
  all.push_back(std::move(candidate));
}

void launch(const Launch& launch, const kernel::BackwardArguments& arguments) {
  Backward(launch, arguments).run();
}

}  // namespace tessera::hip::gradient
