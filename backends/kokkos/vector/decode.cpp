// Decode: cuts the keys of each key head into parts by its shape, hands them to threads and merges
// them in order.

#include <string>

#include "backends/kokkos/parallel.hpp"
#include "backends/kokkos/vector/units.hpp"
#include "backends/kokkos/vector/vector.hpp"
#include "core/kernel/split.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::kokkos::vector {
namespace {

using kernel::larger;
using kernel::smaller;

// Rows that a task computes from one reading of its keys.
constexpr Index kMostRows = 32;

// How a problem is cut: the rows of a key head's group into blocks, its keys into parts.
struct Cut {
  Index rows = 1;        // a block, at most
  Index row_blocks = 1;  // a key head
  Index parts = 1;
};

Cut cut(const Problem& p) {
  const Index group = p.query.extent.head / larger(1, p.key.extent.head);
  const Index rows = larger(1, group * most_rows(p));
  Cut c;
  c.row_blocks = kernel::count_blocks(rows, kMostRows);
  c.rows = kernel::count_blocks(rows, c.row_blocks);
  // As if the product could not overflow: beyond some tasks nothing is cut.
  const double tasks = static_cast<double>(sequences(p)) * static_cast<double>(p.key.extent.head) *
                       static_cast<double>(c.row_blocks);
  c.parts =
      kernel::split_keys(most_keys(p), kDecodeBlock, static_cast<Index>(tasks < 1e9 ? tasks : 1e9))
          .parts;
  return c;
}

struct Parts {
  std::size_t partial_stride = 0;  // bytes
  std::size_t scratch = 0;         // offset
  std::size_t scratch_stride = 0;
  std::size_t size = 0;
};

Parts parts_of(const Problem& p, const Cut& c) {
  const DecodeScratch layout = decode_layout(c.rows, p.query.extent.dim, p.value.extent.dim);
  Parts parts;
  parts.partial_stride = static_cast<std::size_t>(layout.partial) * sizeof(float);
  parts.scratch_stride = static_cast<std::size_t>(layout.scratch) * sizeof(float);
  const double partials = static_cast<double>(parts.partial_stride) *
                          static_cast<double>(sequences(p)) *
                          static_cast<double>(p.key.extent.head) *
                          static_cast<double>(c.row_blocks) * static_cast<double>(c.parts);
  constexpr double kMost = 9e15;  // more than memory holds: saturates
  parts.scratch = static_cast<std::size_t>(partials < kMost ? partials : kMost);
  parts.size = parts.scratch + parts.scratch_stride * static_cast<std::size_t>(threads());
  return parts;
}

std::string why(const Cut& c) {
  return std::to_string(c.rows) + (c.rows == 1 ? " row" : " rows") +
         " of a key head from one reading of its keys, lanes along the head dimension; " +
         std::to_string(c.parts) + (c.parts == 1 ? " part" : " parts") +
         " a key head, from the shape alone";
}

}  // namespace

void append_decode(const Problem& problem, std::vector<backend::Candidate>& candidates) {
  for (const Choice& choice : choices()) {
    if (choice.decode == nullptr) continue;
    backend::Candidate candidate;
    candidate.kernel = choice.decode_kernel;
    candidate.id = static_cast<int>(&choice - choices().data());
    candidate.rejected = reject(choice, problem);
    if (candidate.rejected.empty()) {
      const Cut c = cut(problem);
      candidate.tile_q = c.rows;
      candidate.tile_k = kDecodeBlock;
      candidate.head_dim = problem.query.extent.dim;
      candidate.head_dim_v = problem.value.extent.dim;
      candidate.splits = c.parts;
      candidate.workspace = parts_of(problem, c).size;
      candidate.why = why(c);
    }
    candidates.push_back(std::move(candidate));
  }
}

void launch_decode(const backend::Candidate& candidate, const Problem& problem,
                   const kernel::ForwardArguments& arguments, void* workspace,
                   const Stream& stream) {
  const DecodeUnit& unit = *choices()[static_cast<std::size_t>(candidate.id)].decode;
  const Cut c = cut(problem);
  const Parts parts = parts_of(problem, c);
  check_workspace(workspace, parts.size, candidate);
  auto* const memory = static_cast<std::byte*>(workspace ? workspace : arena(parts.size));
  const kernel::ForwardArguments& a = arguments;
  const Index group = a.head_q / a.head_k;
  const auto partial = [&](Index task) {
    return reinterpret_cast<float*>(memory + parts.partial_stride * static_cast<std::size_t>(task));
  };
  const int type = static_cast<int>(element(problem.query.dtype));
  const bool serial = tiny(2.0 * static_cast<double>(a.batch) * static_cast<double>(a.head_q) *
                           static_cast<double>(a.seq_q) * static_cast<double>(a.seq_k) *
                           static_cast<double>(a.dim + a.dim_v));
  // Task (sequence, key head, row block, part).
  run(a.batch * a.head_k * c.row_blocks * c.parts, serial, stream, [&](Index task, int thread) {
    const Index part = task % c.parts, block = task / c.parts % c.row_blocks;
    const Index head = task / c.parts / c.row_blocks;
    const kernel::Sequence s = kernel::sequence(a, head / a.head_k);
    const Index first = block * c.rows, last = smaller(first + c.rows, group * s.rows);
    if (first >= last) return;
    auto* const scratch = reinterpret_cast<float*>(
        memory + parts.scratch + parts.scratch_stride * static_cast<std::size_t>(thread));
    const kernel::KeySplit split{s.keys, kDecodeBlock, c.parts};
    unit.decode[type]({&a, &s, head / a.head_k, head % a.head_k, first, last, split.part(part),
                       partial(task), scratch});
  });
  // Row by row.
  const Index rows = group * a.seq_q;
  run(a.batch * a.head_k * rows, serial, stream, [&](Index task, int) {
    const Index row = task % rows, head = task / rows;
    const kernel::Sequence s = kernel::sequence(a, head / a.head_k);
    if (row >= group * s.rows) return;
    const Index block = row / c.rows, first = block * c.rows;
    unit.merge[type]({&a, &s, head % a.head_k, row, row - first,
                      smaller(c.rows, group * s.rows - first),
                      partial((head * c.row_blocks + block) * c.parts),
                      static_cast<Index>(parts.partial_stride / sizeof(float)), c.parts});
  });
}

}  // namespace tessera::kokkos::vector
