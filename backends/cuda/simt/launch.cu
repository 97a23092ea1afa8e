// forward.simt, decode.simt: what computes every problem; how it is cut, and launched.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <string>

#include "backends/cuda/common/reject.hpp"
#include "backends/cuda/host.hpp"
#include "backends/cuda/simt/simt.hpp"
#include "core/kernel/sequence.hpp"
#include "core/kernel/split.hpp"

namespace tessera::cuda::simt {
namespace {

// Query rows of a head up to which a block's lines are a group's.
constexpr Index kFewRows = 16;

std::string reject(const Problem& p, const Device& device) {
  std::string reason = reject_device(device, TESSERA_CUDA_TARGETS);
  return reason.empty() ? reject_dims(p) : reason;
}

// --- How a problem is cut --------------------------------------------------------------------

Index most(bool packed, Index segment, Index all) { return packed && segment > 0 ? segment : all; }

struct Cut {
  Lines lines = Lines::OfHead;
  int dim = 0;      // the instance's
  Index rows = 0;   // lines of a block
  Index parts = 1;  // if the keys are split
  Index tasks = 0;  // at most, but for packed input with overlapping segments; parts not counted
};

Cut cut(const Problem& p) {
  const bool packed = p.packed.has_value();
  const Extents& query = p.query.extent;
  const Index head_k = std::max<Index>(p.key.extent.head, 1), group = query.head / head_k;
  const Index dim = std::max(query.dim, p.value.extent.dim);
  const Index rows = most(packed, p.options.max_seq_q, query.seq);
  Cut c;
  const bool few = p.operation == Operation::decode && rows <= kFewRows && group <= 1 << 20;
  c.lines = few ? Lines::OfGroup : Lines::OfHead;
  for (c.dim = few ? 128 : 64; c.dim < dim; c.dim *= few ? 4 : 2) {
  }
  c.rows = rows_of(c.dim, c.lines);
  const Index heads = few ? head_k : query.head, together = few ? group : 1;
  const Index blocks = packed ? together * query.seq / c.rows + p.packed->segments
                              : query.batch * kernel::count_blocks(together * rows, c.rows);
  c.tasks = blocks * heads;
  if (few) {
    const Index keys = most(packed, p.options.max_seq_k, p.key.extent.seq);
    c.parts = kernel::split_keys(keys, kKeys, c.tasks).parts;
  }
  return c;
}

// Offsets in bytes.
struct Workspace {
  std::size_t prefix = 0;  // of the blocks of a packed batch's segments
  std::size_t states = 0;  // Partials
  std::size_t out = 0;
  std::size_t size = 0;

  static Workspace of(const Problem& p, Index parts) {
    const double rows =
        parts == 1
            ? 0
            : static_cast<double>(p.query.extent.batch) * static_cast<double>(p.query.extent.head) *
                  static_cast<double>(p.query.extent.seq) * static_cast<double>(parts);
    Workspace w;
    if (p.packed) w.prefix = w.take((static_cast<double>(p.packed->segments) + 1) * sizeof(Index));
    w.states = w.take(rows * sizeof(kernel::SoftmaxState<float>));
    w.out = w.take(rows * static_cast<double>(p.value.extent.dim) * sizeof(float));
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

// --- Candidates ------------------------------------------------------------------------------

backend::Candidate candidate_of(const Problem& p, const Cut& c) {
  std::string why = "fp32 arithmetic, every option, every device from 8.0 on";
  if (c.lines == Lines::OfGroup) why += "; rows of a key head's query heads share its keys";
  return {.kernel = p.operation == Operation::decode ? "decode.simt" : "forward.simt",
          .tile_q = c.rows,
          .tile_k = kKeys,
          .head_dim = bucket(p.query.extent.dim),
          .head_dim_v = bucket(p.value.extent.dim),
          .splits = c.parts,
          .workspace = Workspace::of(p, c.parts).size,
          .why = std::move(why)};
}

// --- Launch ----------------------------------------------------------------------------------

constexpr int kScanThreads = 512;

// kernel::build_block_prefix by one thread block: each thread has some neighbouring segments.
__global__ void __launch_bounds__(kScanThreads)
    build_prefix(const __grid_constant__ kernel::ForwardArguments a, Index block, Index group,
                 Index* prefix) {
  __shared__ Index sum[kScanThreads];
  const Index each = kernel::count_blocks(a.batch, kScanThreads), thread = threadIdx.x;
  const Index first = kernel::smaller(thread * each, a.batch);
  const Index last = kernel::smaller(first + each, a.batch);
  const auto blocks = [&](Index s) {
    return kernel::count_blocks(group * kernel::sequence(a, s).rows, block);
  };
  Index own = 0;
  for (Index s = first; s < last; ++s) own += blocks(s);
  sum[thread] = own;
  for (int step = 1; step < kScanThreads; step *= 2) {
    __syncthreads();
    const Index before = thread >= step ? sum[thread - step] : 0;
    __syncthreads();
    sum[thread] += before;
  }
  Index total = sum[thread] - own;
  if (thread == 0) prefix[0] = 0;
  for (Index s = first; s < last; ++s) prefix[s + 1] = total += blocks(s);
}

template <class Void>
bool aligned(const kernel::Operand<Void>& x, std::int64_t element) {
  const auto whole = [&](Index number) { return number % (4 * element) == 0; };
  return whole(static_cast<Index>(reinterpret_cast<std::uintptr_t>(x.data))) &&
         whole(x.batch * element) && whole(x.head * element) && whole(x.seq * element);
}

using Runner = void (*)(const Work&, Index, const char*, void*);

// Those of instances.cmake: the dimensions that this build's largest bucket needs.
template <class Element>
Runner runner(const Cut& c) {
  constexpr int kMost = TESSERA_BUILD_HEAD_DIM_MAX;
  const bool group = c.lines == Lines::OfGroup;
  if constexpr (kMost > 256) {
    if (!group && c.dim == 512) return run<Element, 512, Lines::OfHead>;
  }
  if constexpr (kMost > 128) {
    if (group && c.dim == 512) return run<Element, 512, Lines::OfGroup>;
    if (!group && c.dim == 256) return run<Element, 256, Lines::OfHead>;
  }
  if constexpr (kMost > 64) {
    if (!group && c.dim == 128) return run<Element, 128, Lines::OfHead>;
  }
  return group ? run<Element, 128, Lines::OfGroup> : run<Element, 64, Lines::OfHead>;
}

Runner runner(DType type, const Cut& c) {
  switch (type) {
    case DType::fp16:
      return runner<Fp16>(c);
    case DType::bf16:
      return runner<Bf16>(c);
    default:
      return runner<Fp32>(c);
  }
}

kernel::WorkOrder order_of(const kernel::ForwardArguments& a, const Cut& c, const Index* prefix) {
  if (c.lines == Lines::OfHead) return kernel::work_order(a, c.rows, prefix);
  const Index blocks = kernel::count_blocks(a.head_q / a.head_k * a.seq_q, c.rows);
  return {a.batch, a.head_k, a.head_k, blocks, kernel::Heaviest::None, prefix};
}

}  // namespace

void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all) {
  if (problem.operation == Operation::backward) return;
  std::string rejected = reject(problem, device);
  if (!rejected.empty()) {
    const char* const name =
        problem.operation == Operation::decode ? "decode.simt" : "forward.simt";
    all.push_back({.kernel = name, .rejected = std::move(rejected)});
    return;
  }
  all.push_back(candidate_of(problem, cut(problem)));
}

void launch(const Launch& launch) {
  const kernel::ForwardArguments& a = launch.arguments;
  const Problem& problem = launch.problem;
  const Cut c = cut(problem);
  const Workspace at = Workspace::of(problem, launch.candidate.splits);
  auto* const memory = static_cast<std::byte*>(launch.workspace);
  const char* const name = launch.candidate.kernel.data();  // a literal

  Index* prefix = nullptr;
  if (a.packed()) {
    prefix = reinterpret_cast<Index*>(memory + at.prefix);
    const Index group = c.lines == Lines::OfGroup ? a.head_q / a.head_k : 1;
    cudaLaunchConfig_t config{};
    config.gridDim = 1;
    config.blockDim = kScanThreads;
    config.stream = static_cast<cudaStream_t>(launch.stream);
    check(cudaLaunchKernelEx(&config, build_prefix, a, c.rows, group, prefix), name);
  }
  Work work{.arguments = a, .order = order_of(a, c, prefix), .partials = {}, .aligned = {}};
  if (launch.candidate.splits > 1) {
    work.partials = {launch.candidate.splits,
                     reinterpret_cast<kernel::SoftmaxState<float>*>(memory + at.states),
                     reinterpret_cast<float*>(memory + at.out)};
  }
  const std::int64_t element = size_of(problem.query.dtype);
  work.aligned = {aligned(a.query, element), aligned(a.key, element), aligned(a.value, element),
                  aligned(a.out, element)};
  runner(problem.query.dtype, c)(work, c.tasks, name, launch.stream);
}

}  // namespace tessera::cuda::simt
