// Which of the mma.sync kernels a problem gets, and its launch.

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <string>

#include "backends/cuda/common/element.cuh"
#include "backends/cuda/common/reject.hpp"
#include "backends/cuda/mma/config.hpp"
#include "backends/cuda/mma/launch.hpp"
#include "backends/cuda/mma/mma.hpp"

namespace tessera::cuda::mma {
namespace {

constexpr std::string_view kForward = "forward.mma", kDecode = "decode.mma.rows";

// One flavour of one shape.
struct Kernel {
  const void* (*of[2])() = {nullptr, nullptr};  // fp16, bf16
  Index rows = 0;
  Index keys = 0;
  Index columns = 0;  // of values, a block
  unsigned threads = 0;
  std::size_t shared = 0;
};

struct Choice {
  Index dim = 0;    // largest of queries
  Index dim_v = 0;  // largest of values
  Kernel plain, general;
};

template <class S, bool kGeneral>
constexpr Kernel make_kernel() {
  return {{&kernel_of<Fp16, S, kGeneral>, &kernel_of<Bf16, S, kGeneral>},
          S::kRows,
          S::kKeys,
          S::kDimV,
          S::kThreads,
          S::kSharedBytes};
}

template <class Plain, class General = Plain>
constexpr Choice make_choice(Index dim_v = Plain::kDimV) {
  if constexpr (is_built(Plain::kDim)) {
    return {Plain::kDim, dim_v, make_kernel<Plain, false>(), make_kernel<General, true>()};
  } else {
    return {};
  }
}

// Ascending: the first that holds a problem is the cheapest.
constexpr std::array kChoices{
    make_choice<Shape64, General64>(), make_choice<Shape128, General128>(),
    make_choice<Shape192x128>(),       make_choice<Shape192>(),
    make_choice<Shape256>(),           make_choice<Shape512>(512)};

int find(Index dim, Index dim_v) {
  for (std::size_t i = 0; i < kChoices.size(); ++i)
    if (dim <= kChoices[i].dim && dim_v <= kChoices[i].dim_v) return static_cast<int>(i);
  return -1;
}

}  // namespace

std::string reject(const Problem& p, const Device& device) {
  std::string reason = reject_device(device, TESSERA_CUDA_TARGETS);
  if (reason.empty()) reason = reject_dims(p);
  if (!reason.empty()) return reason;
  if (!is_16_bit(p.query.dtype)) return "it computes fp16 and bf16 only";
  if (p.options.accumulate != Accumulate::fp32) return "it accumulates in fp32 only";
  return {};
}

void queue(const void* kernel, std::int64_t blocks, unsigned threads, std::size_t shared,
           void* parameters, const Launch& launch, const char* what) {
  constexpr std::size_t kGranted = 47 * 1024;  // beside what a kernel has of its own
  if (shared > kGranted) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared)),
          what);
  }
  constexpr std::int64_t kMostBlocks = 0x7FFFFFFF;  // forward takes up what is beyond in turn
  void* arguments[] = {parameters};
  check(
      cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(std::min(kMostBlocks, blocks))),
                       dim3(threads), arguments, shared, static_cast<cudaStream_t>(launch.stream)),
      what);
}

void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all) {
  if (problem.operation == Operation::backward) return;
  if (problem.operation == Operation::decode) append_decode(problem, device, all);
  const int choice = find(problem.query.extent.dim, problem.value.extent.dim);
  backend::Candidate candidate;
  candidate.kernel = problem.operation == Operation::decode ? kDecode : kForward;
  candidate.id = choice;
  candidate.rejected = reject(problem, device);
  if (candidate.rejected.empty() && choice < 0)
    candidate.rejected = both_dims(problem) + "it has no kernel for them in a build for " +
                         TESSERA_BUILD_HEAD_DIMS + ": forward.simt and decode.simt take them";
  if (candidate.rejected.empty()) {
    const Choice& c = kChoices[static_cast<std::size_t>(choice)];
    const Kernel& kernel = general(problem) ? c.general : c.plain;
    candidate.tile_q = kernel.rows;
    candidate.tile_k = kernel.keys;
    candidate.head_dim = c.dim;
    candidate.head_dim_v = c.dim_v;
    candidate.why = "mma.sync, " + std::to_string(kernel.rows) + " rows x " +
                    std::to_string(kernel.keys) + " keys a block of " +
                    std::to_string(kernel.threads) + " threads; " +
                    (general(problem) ? "general" : "plain") + " flavour";
  }
  all.push_back(std::move(candidate));
}

void launch(const Launch& launch) {
  if (is_decode(launch.candidate)) return launch_decode(launch);
  const kernel::ForwardArguments& a = launch.arguments;
  const Choice& choice = kChoices[static_cast<std::size_t>(launch.candidate.id)];
  // The plain flavour multiplies by the scale after it has looked for the largest score.
  const Kernel& kernel = a.general() || !(a.scale > 0) ? choice.general : choice.plain;
  const void* const function = kernel.of[launch.problem.query.dtype == DType::bf16]();
  const Index value_parts = std::max<Index>(1, kernel::count_blocks(a.dim_v, kernel.columns));
  kernel::WorkOrder order = kernel::work_order(a, kernel.rows, nullptr);
  order.prefix = nullptr;  // packed: as many blocks as the longest segment has
  Parameters p{a,
               order,
               order.size(),
               static_cast<int>(value_parts),
               rows_aligned(launch.problem.query),
               rows_aligned(launch.problem.key),
               rows_aligned(launch.problem.value),
               rows_aligned(*launch.problem.out)};
  if (p.tasks == 0) return;
  queue(function, p.tasks * value_parts, kernel.threads, kernel.shared, &p, launch,
        "launching forward.mma");
}

}  // namespace tessera::cuda::mma
