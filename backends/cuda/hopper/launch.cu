// Which of the sm_90a kernels a problem gets, and its launch.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <string>

#include "backends/cuda/common/element.cuh"
#include "backends/cuda/common/reject.hpp"
#include "backends/cuda/hopper/config.hpp"
#include "backends/cuda/hopper/launch.hpp"
#include "backends/cuda/hopper/prepare.cuh"
#include "backends/cuda/hopper/tensor_map.hpp"
#include "backends/cuda/host.hpp"
#include "core/kernel/lanes.hpp"

namespace tessera::cuda::hopper {
namespace {

constexpr std::string_view kName = "forward.hopper";

// --- Which kernels there are -----------------------------------------------------------------

// One flavour of one shape.
struct Variant {
  Kernel (*of[2])() = {nullptr, nullptr};  // fp16, bf16
  int rows = 0;
  int keys = 0;
  int warpgroups = 0;
  unsigned threads = 0;
};

struct Choice {
  Index dim = 0;        // largest of queries
  Index dim_v = 0;      // largest of values
  Index most_keys = 0;  // of a sequence
  Variant plain, general;
};

template <class S, bool kGeneral>
constexpr Variant make_variant() {
  return {{&kernel_of<Fp16, S, kGeneral>, &kernel_of<Bf16, S, kGeneral>},
          S::kRows,
          S::kKeys,
          S::kWarpgroups,
          S::kThreads};
}

constexpr Index kAnyLength = kernel::kUnbounded;

template <class Plain, class General>
constexpr Choice make_choice(Index most_keys = kAnyLength) {
  if constexpr (is_built(Plain::kDim)) {
    return {Plain::kDim, Plain::kDimV, most_keys, make_variant<Plain, false>(),
            make_variant<General, true>()};
  } else {
    return {};
  }
}

// Ascending: the first that holds a problem is the fastest.
constexpr std::array kChoices{
    make_choice<Shape64, General64>(),            //
    make_choice<Shape96, General96>(),            //
    make_choice<Short128, General128>(1024),      //
    make_choice<Shape128, General128>(),          //
    make_choice<Shape192x128, General192x128>(),  //
    make_choice<Shape192, General192>(),          //
    make_choice<Shape256, General256>(),
};

// Keys of the longest sequence; unbounded where the choice must not depend on it, for a row's bits
// would depend on its neighbours in the batch.
Index most_keys(const Problem& p) {
  if (p.packed && p.options.batch_invariant) return kAnyLength;
  return p.packed && p.options.max_seq_k > 0 ? p.options.max_seq_k : p.key.extent.seq;
}

int find(const Problem& p) {
  for (std::size_t i = 0; i < kChoices.size(); ++i) {
    const Choice& c = kChoices[i];
    if (p.query.extent.dim <= c.dim && p.value.extent.dim <= c.dim_v && most_keys(p) <= c.most_keys)
      return static_cast<int>(i);
  }
  return -1;
}

// --- What they cannot do ---------------------------------------------------------------------

// At most as many tasks as this: their numbers, plus a grid of blocks, are ints.
constexpr double kMostTasks = 2147400000.0;

double most_tasks(const Problem& p, int rows) {
  const auto all = static_cast<double>(p.query.extent.seq);
  const double blocks = p.packed ? all / rows + static_cast<double>(p.packed->segments)
                                 : static_cast<double>(p.query.extent.batch) * (all / rows + 1);
  return blocks * static_cast<double>(p.query.extent.head);
}

// A lane writes 16 bytes at once.
std::string reject_result(const TensorSpec& out) {
  const Extents& e = out.extent;
  if (e.batch == 0 || e.head == 0 || e.seq == 0 || rows_aligned(out)) return {};
  return "out has an alignment of " + std::to_string(out.alignment) + " bytes and strides of " +
         std::to_string(out.stride.batch) + ", " + std::to_string(out.stride.head) + ", " +
         std::to_string(out.stride.seq) +
         " elements (batch, head, seq); it writes rows that begin at multiples of 16 bytes: "
         "forward.mma takes it";
}

std::string reject(const Problem& p, const Device& device, int choice) {
  if (device.capability != 90)
    return "the device has compute capability " + version_text(device.capability) +
           "; it needs 9.0";
  if (!is_16_bit(p.query.dtype)) return "it computes fp16 and bf16 only";
  if (p.options.accumulate != Accumulate::fp32) return "it accumulates in fp32 only";
  if (p.paged) return "it reads no pages";
  std::string reason = reject_dims(p);
  if (reason.empty() && choice < 0)
    reason = both_dims(p) + "it computes up to 256, in this build's head dimensions (" +
             TESSERA_BUILD_HEAD_DIMS + "): forward.mma takes what they hold";
  if (reason.empty()) reason = reject_operand("query", p.query);
  if (reason.empty()) reason = reject_operand("key", p.key);
  if (reason.empty()) reason = reject_operand("value", p.value);
  if (reason.empty()) reason = reject_result(*p.out);
  if (reason.empty() &&
      most_tasks(p, kChoices[static_cast<std::size_t>(choice)].general.rows) > kMostTasks)
    reason = "it would have more than 2147400000 tasks: forward.mma takes it";
  return reason;
}

// --- Workspace -------------------------------------------------------------------------------

// May tasks differ in the keys that they see? As `uneven` below, of a problem.
bool may_be_uneven(const Problem& p) {
  return p.options.mask != Mask{} || p.key_begin || p.key_end || p.query_end;
}

// The counter of tasks, then (packed) the prefix sums of the segments' blocks.
constexpr std::size_t kPrefixAt = 64;

std::size_t workspace_bytes(const Problem& p) {
  if (!p.packed) return may_be_uneven(p) ? kPrefixAt : 0;
  return kPrefixAt + (static_cast<std::size_t>(p.packed->segments) + 1) * sizeof(Index);
}

// --- Launch ----------------------------------------------------------------------------------

// Query heads in a section, whose keys and values leave some of the L2 cache: 31 of an H200's 50
// MB, where 32 was measured to be good; yet so many that each section's short tasks can fill up
// what its long ones leave of the machine, the last section's above all: it is not much smaller.
int heads_a_section(const kernel::ForwardArguments& a, Index blocks, const Device& device) {
  constexpr Index kElement = 2;
  const Index all = a.batch * a.head_q, group = a.head_q / a.head_k;
  const Index bytes = std::max<Index>(1, a.seq_k * (a.dim + a.dim_v) * kElement);
  const Index fitting = static_cast<Index>(device.l2 / 8 * 5) / bytes * group;
  const Index filling = 7 * Index{device.multiprocessors} / 4 / std::max<Index>(1, blocks) + 1;
  const Index most = std::max({Index{1}, fitting, filling});
  for (Index sections = (all + most - 1) / most;; --sections) {
    if (sections <= 1) return static_cast<int>(all);
    const Index heads = (all + sections - 1) / sections, last = all - heads * (sections - 1);
    if (4 * last >= 3 * heads) return static_cast<int>(heads);
  }
}

bool uneven(const kernel::ForwardArguments& a) {
  return kernel::heaviest(a.left, a.right) != kernel::Heaviest::None || a.key_begin || a.key_end ||
         a.query_end || a.packed();
}

// But for the slope, which lies on the device.
kernel::ScoreModifiers modifiers(kernel::ForwardArguments a) {
  const bool alibi = a.alibi_slopes != nullptr;
  a.alibi_slopes = nullptr;
  kernel::ScoreModifiers m = kernel::score_modifiers(a, 0, 0);
  m.alibi = alibi;
  return m;
}

Parameters parameters(const Launch& launch, const Variant& variant, Index* prefix) {
  const kernel::ForwardArguments& a = launch.arguments;
  const DType dtype = launch.problem.query.dtype;
  const Index batch = a.packed() ? 1 : a.batch;
  Parameters p{};
  p.query = make_map(a.query, dtype, batch, a.head_q, a.total_q, a.dim, variant.rows);
  const bool keys = a.total_k > 0;  // else nobody reads them
  p.key = keys ? make_map(a.key, dtype, batch, a.head_k, a.total_k, a.dim, variant.keys) : p.query;
  p.value =
      keys ? make_map(a.value, dtype, batch, a.head_k, a.total_k, a.dim_v, variant.keys) : p.query;
  p.arguments = a;
  p.order = kernel::work_order(a, variant.rows, prefix);
  p.group = static_cast<int>(a.head_q / a.head_k);
  if (!a.packed() && p.order.heaviest != kernel::Heaviest::None)
    p.section = heads_a_section(a, p.order.blocks, launch.device);
  p.tasks = a.packed() ? 0 : static_cast<int>(p.order.size());
  p.scale = a.scale * kernel::kLog2E;
  p.modifiers = modifiers(a);
  p.keep_scale = a.dropout.keep_scale();
  p.clean_keys = a.packed() || a.key_begin || a.key_end;
  return p;
}

// Can the softmax multiply by the scale after it has looked for the largest product?
bool is_plain(const kernel::ForwardArguments& a) {
  const float scale = a.scale * kernel::kLog2E;
  return !a.general() && scale > 0 && scale <= -kernel::kMostNegative;
}

}  // namespace

void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all) {
  if (problem.operation != Operation::forward) return;
  const int choice = find(problem);
  backend::Candidate candidate;
  candidate.kernel = kName;
  candidate.id = choice;
  candidate.rejected = reject(problem, device, choice);
  if (candidate.rejected.empty()) {
    const Choice& c = kChoices[static_cast<std::size_t>(choice)];
    const Variant& v = general(problem) ? c.general : c.plain;
    candidate.tile_q = v.rows;
    candidate.tile_k = v.keys;
    candidate.head_dim = c.dim;
    candidate.head_dim_v = c.dim_v;
    candidate.workspace = workspace_bytes(problem);
    candidate.why = "wgmma and TMA, " + std::to_string(v.rows) + " rows x " +
                    std::to_string(v.keys) + " keys, " + std::to_string(v.warpgroups) +
                    " consumer warpgroups; " + (general(problem) ? "general" : "plain") +
                    " flavour";
  }
  all.push_back(std::move(candidate));
}

void launch(const Launch& launch) {
  const kernel::ForwardArguments& a = launch.arguments;
  const Choice& choice = kChoices[static_cast<std::size_t>(launch.candidate.id)];
  const Variant& variant = is_plain(a) ? choice.plain : choice.general;
  const Kernel kernel = variant.of[launch.problem.query.dtype == DType::bf16]();
  auto* const memory = static_cast<std::byte*>(launch.workspace);
  auto* const counter = reinterpret_cast<int*>(memory);
  auto* const prefix = reinterpret_cast<Index*>(memory + kPrefixAt);
  const auto stream = static_cast<cudaStream_t>(launch.stream);

  Parameters p = parameters(launch, variant, prefix);
  const double most = most_tasks(launch.problem, variant.rows);
  const int blocks = static_cast<int>(
      std::min<double>(launch.device.multiprocessors, a.packed() ? most + 1 : p.tasks));
  if (a.packed()) {
    p.counter = counter;
    prepare_packed<<<1, kPrepareThreads, 0, stream>>>(a, variant.rows, prefix, counter);
    check(cudaGetLastError(), "launching what numbers the blocks of a packed batch");
  } else if (uneven(a) && p.tasks > blocks) {
    p.counter = counter;
    check(cudaMemsetAsync(counter, 0, sizeof *counter, stream), "zeroing the counter of tasks");
  }
  check(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(kernel.shared)),
        "allowing a kernel its shared memory");
  void* arguments[] = {&p};
  check(cudaLaunchKernel(kernel.function, dim3(static_cast<unsigned>(blocks)),
                         dim3(variant.threads), arguments, kernel.shared, stream),
        "launching forward.hopper");
}

}  // namespace tessera::cuda::hopper
