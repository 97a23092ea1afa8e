// Which problems are decoded in parts, and how.

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "backends/gpu_common/head_dims.hpp"
#include "backends/gpu_common/problem.hpp"
#include "backends/hip/code_objects.hpp"
#include "backends/hip/common/launch.hpp"
#include "backends/hip/decode/config.hpp"
#include "backends/hip/decode/parameters.hpp"
#include "backends/hip/host.hpp"
#include "core/kernel/split.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::hip::decode {
namespace {

constexpr std::string_view kName = "decode.split";

constexpr std::array<Index, 3> kDims{Shape64::kDim, Shape128::kDim, Shape256::kDim};

// The smallest bucket that holds both; 0 if there is none.
Index find(const Problem& p) {
  const Index dim = std::max(p.query.extent.dim, p.value.extent.dim);
  for (const Index bucket : kDims)
    if (dim <= bucket && gpu::is_built(bucket)) return bucket;
  return 0;
}

std::string instance_of(DType dtype, const std::string& rest) {
  return std::string("decode_") + (dtype == DType::bf16 ? "bf16_" : "fp16_") + rest;
}
std::string instance_of(const Problem& p, Index dim, bool general) {
  return instance_of(p.query.dtype, std::to_string(dim) + (general ? "_general" : ""));
}

// A side of the wave's matrix product: the rows of a block, and the keys of a wave's tile.
Index side(const Device& device) { return device.wave / 2; }

// --- The cut ---------------------------------------------------------------------------------

struct Cut {
  Index group = 1, row_blocks = 0, tasks = 0, parts = 1;
  double rows = 0;  // in memory, times parts
};

Index longest_rows(const Problem& p) {
  return p.options.max_seq_q > 0 ? p.options.max_seq_q : p.query.extent.seq;
}

// Sizes come from problems that nobody has allocated yet: what counts nothing that fits in memory
// saturates.
constexpr Index kMostTasks = Index{1} << 53;
Index saturated(double x) {
  return x < static_cast<double>(kMostTasks) ? static_cast<Index>(x) : kMostTasks;
}

Cut cut(const Problem& p, const Device& device) {
  const Index head_k = std::max<Index>(p.key.extent.head, 1);
  const Index batch = p.packed ? p.packed->segments : p.query.extent.batch;
  const Index keys = p.options.max_seq_k > 0 ? p.options.max_seq_k : p.key.extent.seq;
  Cut c{.group = p.query.extent.head / head_k};
  c.row_blocks = kernel::count_blocks(
      saturated(static_cast<double>(longest_rows(p)) * static_cast<double>(c.group)), side(device));
  const double of_one = static_cast<double>(head_k) * static_cast<double>(c.row_blocks);
  c.tasks = saturated(static_cast<double>(batch) * of_one);
  const Index beside = p.options.batch_invariant ? saturated(of_one) : c.tasks;
  c.parts = kernel::split_keys(keys, kPartTile, beside).parts;
  c.rows = static_cast<double>(p.query.extent.batch) * static_cast<double>(p.query.extent.head) *
           static_cast<double>(p.query.extent.seq) * static_cast<double>(c.parts);
  return c;
}

// Offsets in bytes; without parts there is nothing.
struct Workspace {
  std::size_t state = 0, out = 0, size = 0;

  Workspace(const Problem& p, const Cut& c) {
    if (c.parts == 1) return;
    state = take(c.rows * sizeof(kernel::SoftmaxState<float>));
    out = take(c.rows * static_cast<double>(p.value.extent.dim) * sizeof(float));
  }

 private:
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

std::string reject(const Problem& p, const Device& device) {
  std::string reason = gpu::reject_dims(p);
  if (!reason.empty()) return reason;
  if (!gpu::is_16_bit(p.query.dtype)) return "it computes fp16 and bf16 only";
  const Index dim = find(p);
  if (dim == 0)
    return gpu::both_dims(p) + "it has no kernel for them in a build for " TESSERA_BUILD_HEAD_DIMS
                               ": both must be at most 256";
  const Index rows = longest_rows(p);
  if (rows > kMostRows)
    return "a sequence has up to " + std::to_string(rows) + " query rows; it takes at most " +
           std::to_string(kMostRows) + ": decode.matrix.rows is made for more";
  const Cut c = cut(p, device);
  // Work-groups of a launch have fewer than 2^32 threads together.
  constexpr Index kMostGroups = (Index{1} << 24) - 1;
  const Index each = c.parts == 1 ? 1 : std::max<Index>(c.parts, side(device));
  if (c.tasks > kMostGroups / each)
    return "rows are too many for one launch of it: decode.matrix.rows takes them";
  return reject_target(device.isa, instance_of(p, dim, gpu::general(p)));
}

}  // namespace

void append(const Problem& problem, const Device& device, std::vector<backend::Candidate>& all) {
  if (problem.operation != Operation::decode) return;
  backend::Candidate candidate;
  candidate.kernel = kName;
  if (!device.isa.empty()) candidate.rejected = reject(problem, device);
  if (!device.isa.empty() && candidate.rejected.empty()) {
    const Cut c = cut(problem, device);
    const Index dim = find(problem);
    candidate.id = static_cast<int>(dim);
    candidate.tile_q = candidate.tile_k = side(device);
    candidate.head_dim = candidate.head_dim_v = dim;
    candidate.splits = c.parts;
    candidate.workspace = Workspace(problem, c).size;
    candidate.why = "query heads of a key head share its keys; a wave has " +
                    std::to_string(side(device)) + " keys at a time, " + std::to_string(kWaves) +
                    " waves a work-group; " + (gpu::general(problem) ? "general" : "plain") +
                    " flavour";
  }
  all.push_back(std::move(candidate));
}

void launch(const Launch& launch) {
  const kernel::ForwardArguments& a = launch.arguments;
  const Problem& problem = launch.problem;
  const Cut c = cut(problem, launch.device);
  const auto tasks = static_cast<unsigned>(c.tasks), parts = static_cast<unsigned>(c.parts);
  if (tasks == 0) return;
  const Workspace at(problem, c);
  auto* const memory = static_cast<unsigned char*>(launch.workspace);
  Parameters parameters{.arguments = a,
                        .parts = static_cast<std::int32_t>(parts),
                        .row_blocks = static_cast<std::int32_t>(c.row_blocks),
                        .group = static_cast<std::int32_t>(c.group),
                        .fast_q = gpu::rows_aligned(problem.query),
                        .fast_k = is_fast(problem.key, side(launch.device)),
                        .fast_v = is_fast(problem.value, side(launch.device))};
  if (parts > 1) {
    parameters.state = reinterpret_cast<kernel::SoftmaxState<float>*>(memory + at.state);
    parameters.out = reinterpret_cast<float*>(memory + at.out);
  }
  const auto threads = static_cast<unsigned>(kWaves * launch.device.wave);
  // The plain flavour multiplies by the scale after it has looked for the largest score.
  const bool general = a.general() || !(a.scale > 0);
  queue(launch, instance_of(problem, launch.candidate.id, general), {tasks * parts, 1, 1}, threads,
        0, &parameters, sizeof parameters);
  if (parts > 1)
    queue(launch, instance_of(problem.query.dtype, "merge"),
          {tasks * static_cast<unsigned>(side(launch.device)), 1, 1}, threads, 0, &parameters,
          sizeof parameters);
}

}  // namespace tessera::hip::decode
