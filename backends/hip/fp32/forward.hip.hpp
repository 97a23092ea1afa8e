#pragma once
// FlashAttention forward (Dao 2023, arXiv:2307.08691) of fp32 numbers, which stay fp32 throughout.
// As in backends/hip/matrix everything is computed transposed: a lane owns one query. Keys and
// values take turns in LDS:
//
//     barrier    nobody reads values any more        keys to LDS
//     barrier    Sᵀ = K·Qᵀ, softmax                  values on their way to registers
//     barrier    nobody reads keys any more          values to LDS
//     barrier    Oᵀ += Vᵀ·Pᵀ                         the next keys on their way
//
// RDNA has no registers for what is on its way: it loads where it needs it, and other work-groups
// fill the time.

#include "backends/hip/common/fragment.hip.hpp"
#include "backends/hip/common/lds.hip.hpp"
#include "backends/hip/common/opaque.hip.hpp"
#include "backends/hip/common/parameters.hpp"
#include "backends/hip/fp32/config.hpp"
#include "backends/hip/fp32/product.hip.hpp"
#include "backends/hip/fp32/tile.hip.hpp"

namespace tessera::hip::fp32 {

// Where a task's rows are.
template <class S, bool kGeneral>
struct Place {
  static constexpr int kColumns = columns_of(S::kDimV, kWave, kGeneral);
  static constexpr int kTasks = S::kDimV / kColumns;  // that share rows

  kernel::WorkItem item;
  kernel::Sequence s;
  Index row_first;   // of the sequence
  int column_first;  // of the output

  TESSERA_DEVICE Place(const ForwardParameters& p, Index task)
      : item(uniform(p.item(task / kTasks))),
        s(uniform(kernel::sequence(p.arguments, item.batch))),
        row_first(item.block * S::kRows),
        column_first(static_cast<int>(task % kTasks) * kColumns) {}

  // Packed: a segment may be shorter than the longest.
  TESSERA_DEVICE bool is_empty(const kernel::ForwardArguments& a) const {
    return row_first >= s.rows || (kTasks > 1 && column_first >= a.dim_v);
  }
};

// What a step needs to know of the task to mask and modify scores: in LDS for want of scalar
// registers.
struct Task {
  kernel::Band band;
  Index batch, head, row_first, diagonal;
};

template <class S>
struct Shared {
  alignas(16) float tile[S::kNumbers];
  Task task;
};

template <class S, bool kGeneral>
class Forward {
 public:
  TESSERA_DEVICE Forward(Index index, Shared<S>& shared) : index_(index), shared_(shared) {}

  TESSERA_DEVICE void run() {
    const ForwardParameters& p = argument();
    const kernel::ForwardArguments& a = p.arguments;
    const Place<S, kGeneral> place(p, p.task(index_));
    if (place.is_empty(a)) return;
    open(a, place);
    Row state;
    Sums out[kBlocks];
    TESSERA_UNROLL
    for (int m = 0; m < kBlocks; ++m) out[m] = 0;
    const kernel::LoopSplit loop =
        kernel::split_loop(place.s.band, place.row_first, place.row_first + live_, S::kKeys);
    if (loop.last > loop.first) {
      load_queries(p, place);
      walk(loop, state, out);
    }
    store(state, out);
  }

 private:
  static constexpr int kRowsOfAWave = S::kRows / (kThreads / kWave);
  static_assert(kRowsOfAWave == kQueries && S::kKeys == kBlock);
  static constexpr int kColumns = Place<S, kGeneral>::kColumns;
  static constexpr int kBlocks = kColumns / kBlock;  // of the output's columns
  static constexpr int kRun = kBlocks % 2 == 0 ? 2 : 1;
  static_assert(4 * kRun <= kBytesAtOnce);
  using Keys = Tile<S::kKeys, S::kDim, S::kKeyPitch>;
  using Values = Tile<S::kKeys, kColumns, kColumns>;

  // The lane's row of the tile.
  TESSERA_DEVICE static int row() { return wave() * kRowsOfAWave + Matrix::column(); }
  // Of scores, to base 2.
  TESSERA_DEVICE static float scale(const kernel::ForwardArguments& a) {
    return kGeneral ? 1.0f : a.scale * kernel::kLog2E;
  }

  TESSERA_DEVICE static const ForwardParameters& argument() {
    return argument_anew<ForwardParameters>();
  }

  TESSERA_DEVICE void open(const kernel::ForwardArguments& a, const Place<S, kGeneral>& place) {
    const kernel::Sequence& s = place.s;
    const Index batch = place.item.batch, head = place.item.head;
    const Index key_head = kernel::key_head(a, head);
    // Nobody reads that of the task before any more: its last step was beyond its third barrier.
    if (anew(thread()) == 0) shared_.task = {s.band, batch, head, place.row_first, s.diagonal};
    live_ = static_cast<int>(kernel::clamp_index(s.query_end - place.row_first, 0, S::kRows));
    column_first_ = place.column_first;
    key_ = static_cast<const float*>(a.key.data) + s.batch * a.key.batch + key_head * a.key.head +
           s.key * a.key.seq;
    value_ = static_cast<const float*>(a.value.data) + s.batch * a.value.batch +
             key_head * a.value.head + s.key * a.value.seq + column_first_;
  }

  TESSERA_DEVICE void walk(const kernel::LoopSplit& loop, Row& state, Sums (&out)[kBlocks]) {
    barrier();  // shared_.task is there
    Index tile = loop.last - 1;
    if (kAhead) load_keys(tile);
    for (; tile >= loop.first; --tile)
      step(tile, loop.first, kGeneral || tile < loop.whole_first || tile >= loop.whole_last, state,
           out);
  }

  TESSERA_DEVICE void load_queries(const ForwardParameters& p, const Place<S, kGeneral>& place) {
    const kernel::ForwardArguments& a = p.arguments;
    const auto* const query = static_cast<const float*>(a.query.data) +
                              place.s.batch * a.query.batch + place.item.head * a.query.head +
                              (place.s.query + place.row_first) * a.query.seq;
    const Source from{query, a.query.seq, 0, live_, static_cast<int>(a.dim), p.fast_q != 0};
    if (from.fast) {
      load_queries(Buffer(from));
    } else {
      load_queries(Scattered(from));
    }
  }
  template <class From>
  TESSERA_DEVICE void load_queries(const From& from) {
    const int row = anew(this->row()), first = anew(4 * half());
    TESSERA_UNROLL
    for (int j = 0; j < S::kDim / kFours; ++j) {
      query_[j] = __builtin_bit_cast(Float4, from.load4(row, kFours * j + first));
      keep_order();
    }
  }

  TESSERA_DEVICE Source slots(const float* from, Index stride, Index tile, Index columns,
                              bool fast) const {
    const Index first = uniform_anew(tile) * S::kKeys;
    const kernel::Interval<Index> keys{uniform(shared_.task.band.begin),
                                       uniform(shared_.task.band.end)};
    const kernel::Interval<Index> there = kernel::within(keys, first, S::kKeys);
    return {from + first * stride,         stride,
            static_cast<int>(there.begin), static_cast<int>(there.end),
            static_cast<int>(columns),     fast};
  }
  template <class T>
  TESSERA_DEVICE static void load(typename T::Registers& to, const Source& from) {
    if (from.fast) {
      T::load(to, Buffer(from));
    } else {
      T::load(to, Scattered(from));
    }
  }
  TESSERA_DEVICE void load_keys(Index tile) {
    const ForwardParameters& p = argument();
    load<Keys>(next_keys_, slots(key_, p.arguments.key.seq, tile, p.arguments.dim, p.fast_k != 0));
  }
  TESSERA_DEVICE void load_values(Index tile) {
    const ForwardParameters& p = argument();
    load<Values>(next_values_, slots(value_, p.arguments.value.seq, tile,
                                     p.arguments.dim_v - column_first_, p.fast_v != 0));
  }

  TESSERA_DEVICE void step(Index tile, Index first, bool masked, Row& state, Sums (&out)[kBlocks]) {
    if (!kAhead) load_keys(tile);
    barrier();
    Keys::store(next_keys_, shared_.tile);
    barrier();
    if (kAhead) load_values(tile);
    float score[kSums];
    products<S::kDim, S::kKeyPitch>(shared_.tile, query_, score);
    weights(tile, masked, score, state, out);
    keep_order();
    if (!kAhead) load_values(tile);
    barrier();
    Values::store(next_values_, shared_.tile);
    barrier();
    if (kAhead && tile > first) load_keys(tile - 1);
    accumulate<kColumns, kRun>(shared_.tile, score, out);
  }

  // Products to weights.
  TESSERA_DEVICE void weights(Index tile, bool masked, float (&score)[kSums], Row& state,
                              Sums (&out)[kBlocks]) const {
    const kernel::ForwardArguments& a = argument().arguments;
    const Index key_first = uniform_anew(tile) * S::kKeys;
    if constexpr (kGeneral) {
      const Task task = uniform(shared_.task);
      modify<Fp32>(score, uniform(kernel::score_modifiers(a, task.batch, task.head)),
                   kernel::distance_to(task.diagonal, task.row_first, key_first),
                   score_data<Fp32>(a, task.batch, task.head, task.row_first + row(), key_first,
                                    task.band.end - key_first, row() < live_),
                   row());
    }
    if (masked) {
      const Task task = uniform(shared_.task);
      hide(score, kernel::relative_to(task.band, task.row_first, key_first), row());
    }
    float factor;
    if (advance<Fp32>(score, state, scale(a), factor)) {
      TESSERA_UNROLL
      for (int m = 0; m < kBlocks; ++m) out[m] *= factor;
    }
    weigh(score, state, scale(a));
    if constexpr (kGeneral) {
      keep_order();
      if (a.dropout.threshold != 0) {
        const Task task = uniform(shared_.task);
        drop(score, uniform(kernel::dropout_stream(a.dropout, a.head_q, task.batch, task.head)),
             task.row_first, row(), key_first);
      }
    }
  }

  // The lane's columns of the output, kRun at a time, and its lse.
  TESSERA_DEVICE void store(const Row& state, const Sums (&out)[kBlocks]) const {
    const ForwardParameters& p = argument();
    const kernel::ForwardArguments& a = p.arguments;
    const Place<S, kGeneral> place(p, p.task(uniform_anew(index_)));
    const kernel::Sequence& s = place.s;
    const Index head = place.item.head, at = place.row_first + row(), seq = s.query + at;
    const float sink = kGeneral && a.sinks ? a.sinks[head * a.sinks_head] : kernel::kMinusInfinity;
    const Finished f = finish(state, scale(a), row() < live_, sink, a.dropout);
    if (at >= s.rows) return;
    if (a.lse.data != nullptr && anew(half()) == 0 && column_first_ == 0)
      a.lse.data[s.batch * a.lse.batch + head * a.lse.head + seq * a.lse.seq] = f.lse;
    auto* const line = static_cast<float*>(a.out.data) + s.batch * a.out.batch + head * a.out.head +
                       seq * a.out.seq + column_first_;
    const bool aligned = p.aligned_out != 0;
    const int columns = static_cast<int>(a.dim_v) - column_first_, own = anew(own_row());
    TESSERA_UNROLL
    for (int m = 0; m < kBlocks; m += kRun) {
      TESSERA_UNROLL
      for (int r = 0; r < kSums; ++r) {
        const int column = kBlock * m + kRun * (row_of(r) + own);
        Run<kRun> run;
        TESSERA_UNROLL
        for (int c = 0; c < kRun; ++c) run.column[c] = f.seen ? out[m + c][r] * f.factor : 0.0f;
        if (column < columns) put(line + column, run, aligned);
        keep_order();
      }
    }
  }
  TESSERA_DEVICE static void put(float* to, const Run<kRun>& run, bool aligned) {
    if (aligned) {
      *reinterpret_cast<Run<kRun>*>(to) = run;
    } else {
      TESSERA_UNROLL
      for (int c = 0; c < kRun; ++c) to[c] = run.column[c];
    }
  }

  const Index index_;             // of a task, before dies are dealt with
  Shared<S>& shared_;             // in LDS
  int live_ = 0;                  // the tile's rows before it may see something
  int column_first_ = 0;          // of the output
  const float* key_ = nullptr;    // slot 0 of the sequence
  const float* value_ = nullptr;  // likewise, from column_first_ on
  Float4 query_[S::kDim / kFours];
  typename Keys::Registers next_keys_;
  typename Values::Registers next_values_;
};

// Waves that a SIMD unit holds at once, which share its 512 registers (CDNA; RDNA's waves have 256
// each).
template <class S, bool kGeneral>
constexpr int waves() {
  return S::kDim <= 128 ? 2 : 1;
}

template <class S, bool kGeneral>
TESSERA_DEVICE void forward() {
  using Bytes = unsigned char[sizeof(Shared<S>)];
  TESSERA_HIP_LDS(Bytes, memory, 16);
  auto& shared = *reinterpret_cast<Shared<S>*>(memory);
  const auto p = []() -> const ForwardParameters& { return argument_anew<ForwardParameters>(); };
  for (Index i = group(); i < p().tasks; i += p().groups) Forward<S, kGeneral>(i, shared).run();
}

}  // namespace tessera::hip::fp32
