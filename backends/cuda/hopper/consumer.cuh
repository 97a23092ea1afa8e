#pragma once
// A consumer warpgroup: 64 query rows; both products on wgmma, the softmax between them in
// registers. While the tensor cores multiply weights of one block of keys by values, scores of the
// next are computed too, and then weighed:
//
//     tensor cores   QK(j)  PV(j+1)                   QK(j−1)  PV(j) …
//     softmax                        mask, max(j)  2^x(j)
//
// A block of keys that a warpgroup does not see is passed on in turn.

#include "backends/cuda/common/fragment.cuh"
#include "backends/cuda/hopper/scores.cuh"
#include "backends/cuda/hopper/task.cuh"
#include "backends/cuda/hopper/wgmma.cuh"

namespace tessera::cuda::hopper {

template <class Element, class S, bool kGeneral>
class Consumer {
  static constexpr int kScores = S::kKeys / 2;  // a thread
  static constexpr int kOutputs = S::kDimV / 2;
  using Scores = float[kScores];
  using Outputs = float[kOutputs];
  using Weights = std::uint32_t[kScores / 2];

 public:
  __device__ __forceinline__ Consumer(Shared<S>& shared, const Parameters& p, int warpgroup)
      : s_(shared),
        p_(p),
        warpgroup_(warpgroup),
        row_(64 * warpgroup + static_cast<int>(threadIdx.x) % 128 / 32 * 16 + own_row()) {}

  __device__ __forceinline__ void run() {
    if (warpgroup_ == S::kWarpgroups - 1) end_turn();  // the first one's turn
    for (;;) {
      s_.q_full[q_.stage].wait(q_.phase);
      const Task<S>& task = s_.task[slot_];
      const KeyBlocks all = uniform(task.all);
      if (all.last < 0) return;
      Outputs out;
      has_out_ = 0;
      Rows rows;
      const ScoreState<Element, S, kGeneral> state(p_, task);
      const KeyBlocks own = uniform(task.own[warpgroup_]);
      if (own.first < own.last) {
        walk(out, rows, state, task, own, all);
      } else {
        for (int block = all.last - 1; block >= all.first; --block) pass_on(block > all.first);
        TESSERA_UNROLL
        for (int i = 0; i < kOutputs; ++i) out[i] = 0;
        leave_queries();
      }
      store(out, rows, state, task);
      if (++slot_ == Shared<S>::kTasks) slot_ = 0;
    }
  }

 private:
  __device__ static __forceinline__ KeyBlocks uniform(const KeyBlocks& blocks) {
    return {hopper::uniform(blocks.first), hopper::uniform(blocks.whole_first),
            hopper::uniform(blocks.whole_last), hopper::uniform(blocks.last)};
  }

  // --- Turns at the tensor cores: as many a task for every warpgroup ---------------------------

  __device__ __forceinline__ void await_turn() {
    if constexpr (S::kTurns == Turns::RoundRobin) bar_sync(1 + warpgroup_, 256);
  }
  __device__ __forceinline__ void end_turn() {
    if constexpr (S::kTurns == Turns::RoundRobin)
      bar_arrive(1 + (warpgroup_ + 1 == S::kWarpgroups ? 0 : warpgroup_ + 1), 256);
  }

  // --- Buffers ---------------------------------------------------------------------------------

  // Every warp for itself: nothing else holds the warps of a warpgroup together where it passes a
  // block on, and one that lags would miss a phase of the barriers it waits for.
  __device__ __forceinline__ void leave(Barrier& empty) {
    __syncwarp();
    if (lane() == 0) empty.arrive();
  }
  __device__ __forceinline__ void await_keys() { s_.k_full[k_.stage].wait(k_.phase); }
  __device__ __forceinline__ void await_values() { s_.v_full[v_.stage].wait(v_.phase); }
  __device__ __forceinline__ void leave_keys() {
    leave(s_.k_empty[k_.stage]);
    k_.advance();
  }
  __device__ __forceinline__ void leave_values() {
    leave(s_.v_empty[v_.stage]);
    v_.advance();
  }
  __device__ __forceinline__ void leave_queries() {
    leave(s_.q_empty[q_.stage]);
    q_.advance();
  }

  // --- Products --------------------------------------------------------------------------------

  // Scores of the next block of keys, which is there.
  __device__ __forceinline__ void issue_scores(Scores& score) {
    constexpr int kSteps = S::kDim / 16;
    const std::uint64_t query =
        descriptor::of_rows(shared_address(s_.query[q_.stage]) + warpgroup_ * 64 * kPanelRowBytes);
    const std::uint64_t key = descriptor::of_rows(shared_address(s_.key[k_.stage]));
    wgmma_fence();
    TESSERA_UNROLL
    for (int k = 0; k < kSteps; ++k)
      Wgmma<Element::kHalf, S::kKeys>::shared(
          score, query + descriptor::row_depth_step(k, S::kRows),
          key + descriptor::row_depth_step(k, S::kKeys), k != 0);
    wgmma_commit();
  }

  // Weights times the next block of values, onto `out`. (A task's first product begins it: zeros
  // need not be written.)
  __device__ __forceinline__ void issue_out(Outputs& out, const Weights& weight) {
    const std::uint64_t value =
        descriptor::of_columns(shared_address(s_.value[v_.stage]), S::kKeys);
    wgmma_fence();
    TESSERA_UNROLL
    for (int k = 0; k < S::kKeys / 16; ++k)
      Wgmma<Element::kHalf, S::kDimV>::registers(
          out, weight + 4 * k, value + descriptor::column_depth_step(k), k == 0 ? has_out_ : 1);
    wgmma_commit();
    has_out_ = 1;
  }

  __device__ __forceinline__ void await_out(Outputs& out) {
    wgmma_wait<0>();
    pin(out);
    leave_values();
  }

  // --- Blocks of keys --------------------------------------------------------------------------

  using State = ScoreState<Element, S, kGeneral>;

  __device__ __forceinline__ void pass_on(bool in_turn) {
    await_keys();
    leave_keys();
    if (in_turn) {
      await_turn();
      end_turn();
    }
    await_values();
    leave_values();
  }

  // The first block of a task that the warpgroup sees.
  __device__ __forceinline__ void start(Weights& weight, Rows& rows, const State& state,
                                        const Task<S>& task, int block, bool more, bool whole) {
    Scores score;
    await_keys();
    issue_scores(score);
    wgmma_wait<0>();
    pin(score);
    leave_keys();
    if (!more) leave_queries();
    if (kGeneral || !whole) state.template prepare<true>(score, task, block, row_);
    float factor[2];
    advance<Element>(score, rows, state.scale(), factor);  // there is no O yet
    weigh(score, rows, state.scale());
    state.drop(score, task, block, row_);
    pack<Element>(score, weight);
  }

  // Scores of the next block, which is there, beside O of the block before. kMasked: some of its
  // rows do not see all of it.
  template <bool kMasked>
  __device__ __forceinline__ void step(Outputs& out, Weights& weight, Rows& rows,
                                       const State& state, const Task<S>& task, int block,
                                       bool more) {
    Scores score;
    await_turn();
    issue_scores(score);
    await_values();
    issue_out(out, weight);
    end_turn();
    wgmma_wait<1>();
    pin(score);
    leave_keys();
    if (!more) leave_queries();
    state.template prepare<kMasked>(score, task, block, row_);
    float factor[2];
    const bool rescale = advance<Element>(score, rows, state.scale(), factor);
    await_out(out);
    if (rescale) scale_rows(out, factor);
    weigh(score, rows, state.scale());
    state.drop(score, task, block, row_);
    pack<Element>(score, weight);
    if (more) await_keys();
  }

  // All blocks of a task, last to first, of which the warpgroup sees its own.
  __device__ __forceinline__ void walk(Outputs& out, Rows& rows, const State& state,
                                       const Task<S>& task, const KeyBlocks& own,
                                       const KeyBlocks& all) {
    Weights weight;
    int block = all.last - 1;
    for (; block >= own.last; --block) pass_on(true);
    start(weight, rows, state, task, block, block > own.first,
          own.whole_first <= block && block < own.whole_last);
    --block;
    if (block >= own.first) await_keys();
    // (The general flavour has so much code a step that one copy must do.)
    for (int end = kGeneral ? own.first : own.whole_last;; end = own.first) {
      for (; block >= end; --block)
        step<true>(out, weight, rows, state, task, block, block > own.first);
      if (end == own.first) break;
      for (; block >= own.whole_first; --block)
        step<false>(out, weight, rows, state, task, block, block > own.first);
    }
    await_values();
    issue_out(out, weight);
    await_out(out);
    for (; block >= all.first; --block) pass_on(true);
  }

  // --- The end ---------------------------------------------------------------------------------

  __device__ __forceinline__ void store(const Outputs& out, const Rows& rows, const State& state,
                                        const Task<S>& task) {
    const kernel::ForwardArguments& a = p_.arguments;
    const bool live[2] = {row_ < task.live, row_ + 8 < task.live};
    const Finished f = state.finish(rows, task, live);
    const Index batch = task.batch, head = task.head, seq = task.query + task.row_first;
    OutRows to;
    to.out = static_cast<typename Element::Type*>(a.out.data) + batch * a.out.batch +
             head * a.out.head + seq * a.out.seq;
    to.stride = a.out.seq;
    to.lse = a.lse.data == nullptr
                 ? nullptr
                 : a.lse.data + batch * a.lse.batch + head * a.lse.head + seq * a.lse.seq;
    to.lse_stride = a.lse.seq;
    to.rows = task.rows;
    to.columns = static_cast<int>(a.dim_v);
    store_out<Element>(out, f, to, row_);
    store_lse(f, to, row_);
  }

  Shared<S>& s_;
  const Parameters& p_;
  const int warpgroup_;
  const int row_;  // the thread's first, of the task's
  Ring<S::kStages> k_, v_;
  Ring<S::kQueryStages> q_;
  int slot_ = 0;
  int has_out_ = 0;  // does `out` belong to the task?
};

}  // namespace tessera::cuda::hopper
