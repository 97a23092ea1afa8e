// Decode: cuts the keys of each key head into parts by its shape, hands them to threads and merges
// them in order.

#include <algorithm>
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
  Index row_blocks = 1;  // a key head, at most
  Index parts = 1;
};

Cut cut(const Problem& p) {
  const Index head_k = larger(1, p.key.extent.head), group = p.query.extent.head / head_k;
  const Index rows = larger(1, group * most_rows(p));
  Cut c;
  c.row_blocks = kernel::count_blocks(rows, kMostRows);
  c.rows = kernel::count_blocks(rows, c.row_blocks);
  // As if products could not overflow: beyond some tasks nothing is cut.
  const auto segments = static_cast<double>(sequences(p));
  double blocks = segments * static_cast<double>(c.row_blocks);
  if (p.packed) {  // segments may be much shorter than the longest
    const double all = static_cast<double>(group) * static_cast<double>(p.query.extent.seq);
    blocks = std::min(blocks, segments + all / static_cast<double>(c.rows));
  }
  const double tasks = blocks * static_cast<double>(p.key.extent.head);
  c.parts =
      kernel::split_keys(most_keys(p), kDecodeBlock, static_cast<Index>(tasks < 1e9 ? tasks : 1e9))
          .parts;
  return c;
}

// Workspace: block prefix sums of a packed batch, parts row by row, a scratch a thread; in bytes.
// Where keys are not cut there is nothing to wait for: a task's partial results stand in its
// thread's scratch then, and are written when it ends.
struct Workspace {
  std::size_t partial = 0;  // offset; of a single part, in a thread's scratch
  std::size_t row = 0;      // of a row of one part: a block of rows takes no more than as many
  std::size_t scratch = 0;  // offset
  std::size_t scratch_stride = 0;
  std::size_t size = 0;
};

Workspace workspace_of(const Problem& p, const Cut& c) {
  const Extents& query = p.query.extent;
  const Index dim_v = p.value.extent.dim;
  const DecodeScratch block = decode_layout(c.rows, query.dim, dim_v);
  Workspace w;
  w.scratch_stride = static_cast<std::size_t>(block.scratch) * sizeof(float);
  if (c.parts == 1) {
    w.partial = w.scratch_stride;
    w.scratch_stride += static_cast<std::size_t>(block.partial) * sizeof(float);
    w.scratch = prefix_bytes(p);
    w.size = w.scratch + w.scratch_stride * static_cast<std::size_t>(threads());
    return w;
  }
  w.partial = prefix_bytes(p);
  w.row = static_cast<std::size_t>(decode_layout(1, query.dim, dim_v).partial) * sizeof(float);
  const double partials = static_cast<double>(w.row) * static_cast<double>(query.batch) *
                          static_cast<double>(query.head) * static_cast<double>(query.seq) *
                          static_cast<double>(c.parts);
  constexpr double kMost = 9e15;  // more than memory holds: saturates
  w.scratch = w.partial + static_cast<std::size_t>(std::min(partials, kMost));
  w.size = w.scratch + w.scratch_stride * static_cast<std::size_t>(threads());
  return w;
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
      candidate.workspace = workspace_of(problem, c).size;
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
  const Workspace w = workspace_of(problem, c);
  check_workspace(workspace, w.size, candidate);
  auto* const memory = static_cast<std::byte*>(workspace ? workspace : arena(w.size));
  const kernel::ForwardArguments& a = arguments;
  const Index group = a.head_q / a.head_k;
  const int type = static_cast<int>(element(problem.query.dtype));
  const bool serial = tiny(2.0 * static_cast<double>(a.batch) * static_cast<double>(a.head_q) *
                           static_cast<double>(a.seq_q) * static_cast<double>(a.seq_k) *
                           static_cast<double>(a.dim + a.dim_v));

  auto* const prefix = a.packed() ? reinterpret_cast<Index*>(memory) : nullptr;
  if (prefix) kernel::build_block_prefix(a, c.rows, prefix, group);
  // Of blocks of a group's rows: key heads are all the heads there are.
  const kernel::WorkOrder order{a.batch, a.head_k, a.head_k, c.row_blocks, kernel::Heaviest::None,
                                prefix};
  struct Block {
    kernel::WorkItem item;
    kernel::Sequence s;
    Index first;  // rows [first, last) of the group
    Index last;
    float* partial;
    Index stride;  // of its parts, in floats
  };
  const auto block_of = [&](Index i) {
    Block b{};
    b.item = order.item(i);
    b.s = kernel::sequence(a, b.item.batch);
    b.first = b.item.block * c.rows;
    b.last = smaller(b.first + c.rows, group * b.s.rows);
    const Index row =
        ((b.s.batch * a.seq_q + b.s.query) * a.head_k + b.item.head * b.s.rows) * group + b.first;
    if (c.parts > 1) {
      b.partial = reinterpret_cast<float*>(memory + w.partial +
                                           w.row * static_cast<std::size_t>(row * c.parts));
    }
    b.stride = decode_layout(b.last - b.first, a.dim, a.dim_v).partial;
    return b;
  };
  const auto merge = [&](const Block& b) {
    for (Index row = b.first; row < b.last; ++row) {
      unit.merge[type]({&a, &b.s, b.item.head, row, row - b.first, b.last - b.first, b.partial,
                        b.stride, c.parts});
    }
  };

  run(order.size() * c.parts, serial, stream, [&](Index task, int thread) {
    const Index part = task % c.parts;
    Block b = block_of(task / c.parts);
    if (b.first >= b.last) return;
    std::byte* const own = memory + w.scratch + w.scratch_stride * static_cast<std::size_t>(thread);
    auto* const scratch = reinterpret_cast<float*>(own);
    if (c.parts == 1) b.partial = reinterpret_cast<float*>(own + w.partial);
    const kernel::KeySplit split{b.s.keys, kDecodeBlock, c.parts};
    unit.decode[type]({&a, &b.s, b.item.batch, b.item.head, b.first, b.last, split.part(part),
                       b.partial + part * b.stride, scratch});
    if (c.parts == 1) merge(b);
  });
  if (c.parts > 1)
    run(order.size(), serial, stream, [&](Index task, int) { merge(block_of(task)); });
}

}  // namespace tessera::kokkos::vector
