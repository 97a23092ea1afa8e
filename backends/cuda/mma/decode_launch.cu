// Which problems are decoded in parts, and how.

#include <cuda_runtime.h>

#include <array>
#include <string>

#include "backends/cuda/common/element.cuh"
#include "backends/cuda/common/reject.hpp"
#include "backends/cuda/mma/decode.hpp"
#include "backends/cuda/mma/mma.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::cuda::mma {
namespace {

constexpr std::string_view kDecode = "decode.mma.split";

struct Choice {
  Index dim = 0;
  const void* (*of[2])() = {nullptr, nullptr};  // fp16, bf16
  unsigned threads = 0;
  std::size_t shared = 0;
  Index keys = 0;
};

template <int kDim>
constexpr Choice make_choice() {
  using S = DecodeShape<kDim>;
  static_assert(S::kSharedBytes <= 98 * 1024,
                "fits compute capability 8.6, beside 1 KB of its own");
  if constexpr (is_built(kDim)) {
    return {kDim,
            {&decode_kernel<Fp16, S>, &decode_kernel<Bf16, S>},
            S::kThreads,
            S::kSharedBytes,
            S::kKeys};
  } else {
    return {};
  }
}

constexpr std::array kChoices{make_choice<64>(), make_choice<128>(), make_choice<256>()};

int find(Index dim) {
  for (std::size_t i = 0; i < kChoices.size(); ++i)
    if (dim <= kChoices[i].dim) return static_cast<int>(i);
  return -1;
}

struct Cut {
  Index group, row_blocks, tasks, parts;
  Index rows;  // in memory
};

Cut cut(const Problem& p) {
  const Index head_k = std::max<Index>(p.key.extent.head, 1);
  Cut c{};
  c.group = p.query.extent.head / head_k;
  const Index batch = p.packed ? p.packed->segments : p.query.extent.batch;
  const Options& o = p.options;
  const Index longest = o.max_seq_q > 0 ? o.max_seq_q : p.query.extent.seq;
  const Index keys = o.max_seq_k > 0 ? o.max_seq_k : p.key.extent.seq;
  c.row_blocks = kernel::count_blocks(longest * c.group, kDecodeRows);
  c.tasks = batch * head_k * c.row_blocks;
  const Index beside = o.batch_invariant ? head_k * c.row_blocks : c.tasks;
  c.parts = kernel::split_keys(keys, kDecodeTile, beside).parts;
  c.rows = p.query.extent.batch * p.query.extent.head * p.query.extent.seq;
  return c;
}

constexpr std::size_t round_up(std::size_t x) { return (x + 127) / 128 * 128; }

std::size_t bytes_of_states(const Cut& c) {
  return round_up(static_cast<std::size_t>(c.rows * c.parts) * sizeof(kernel::SoftmaxState<float>));
}

std::string reject_decode(const Problem& p) {
  if (general(p))
    return "it computes the plain flavour only: decode.mma.rows does what touches scores";
  if (find(std::max(p.query.extent.dim, p.value.extent.dim)) < 0)
    return both_dims(p) + "it takes up to 256: decode.mma.rows takes 512";
  if (!rows_aligned(p.query) || !rows_aligned(p.key) || !rows_aligned(p.value))
    return "a row of query, key or value does not begin at a multiple of 16 bytes: "
           "decode.mma.rows takes it";
  const Cut c = cut(p);
  constexpr Index kMost = Index{1} << 31, kMostRows = Index{1} << 28;  // see kernel::tile_relative
  if (static_cast<double>(c.tasks) * static_cast<double>(std::max<Index>(c.parts, kDecodeRows)) >=
          static_cast<double>(kMost) ||
      c.row_blocks >= kMostRows / kDecodeRows)
    return "rows are too many: decode.mma.rows takes them";
  return {};
}

}  // namespace

void append_decode(const Problem& problem, const Device& device,
                   std::vector<backend::Candidate>& all) {
  backend::Candidate candidate;
  candidate.kernel = kDecode;
  candidate.rejected = reject(problem, device);
  if (candidate.rejected.empty()) candidate.rejected = reject_decode(problem);
  if (candidate.rejected.empty()) {
    candidate.id = find(std::max(problem.query.extent.dim, problem.value.extent.dim));
    const Choice& choice = kChoices[static_cast<std::size_t>(candidate.id)];
    const Cut c = cut(problem);
    candidate.tile_q = kDecodeRows;
    candidate.tile_k = choice.keys;
    candidate.head_dim = candidate.head_dim_v = choice.dim;
    candidate.splits = c.parts;
    if (c.parts > 1) {
      candidate.workspace =
          bytes_of_states(c) + round_up(static_cast<std::size_t>(c.rows * c.parts) * 4 *
                                        static_cast<std::size_t>(problem.value.extent.dim));
    }
    candidate.why = "query heads of a key head share its keys; a warp has " +
                    std::to_string(choice.keys) + " keys at a time, " +
                    std::to_string(choice.threads / 32) + " warps a block";
  }
  all.push_back(std::move(candidate));
}

bool is_decode(const backend::Candidate& candidate) { return candidate.kernel == kDecode; }

void launch_decode(const Launch& launch) {
  const Problem& problem = launch.problem;
  const Choice& choice = kChoices[static_cast<std::size_t>(launch.candidate.id)];
  const Cut c = cut(problem);
  const bool bf16 = problem.query.dtype == DType::bf16;
  auto* const memory = static_cast<unsigned char*>(launch.workspace);
  DecodeParameters p{launch.arguments,
                     static_cast<int>(c.group),
                     static_cast<int>(c.row_blocks),
                     static_cast<int>(c.parts),
                     nullptr,
                     nullptr};
  if (c.parts > 1) {
    p.state = reinterpret_cast<kernel::SoftmaxState<float>*>(memory);
    p.out = reinterpret_cast<float*>(memory + bytes_of_states(c));
  }
  queue(choice.of[bf16](), c.tasks * c.parts, choice.threads, choice.shared, &p, launch,
        "launching decode.mma.split");
  if (c.parts > 1) {
    queue(bf16 ? combine_kernel<Bf16>() : combine_kernel<Fp16>(), c.tasks * kDecodeRows,
          kCombineThreads, 0, &p, launch, "launching decode.mma.split's merge");
  }
}

}  // namespace tessera::cuda::mma
