#pragma once
// The warpgroup that loads: one thread of its first warp brings queries, keys and values by TMA;
// its second warp cleans up behind it where they hold what is not the sequence's.

#include "backends/cuda/hopper/task.cuh"
#include "backends/cuda/hopper/tma.cuh"
#include "backends/cuda/hopper/wgmma.cuh"

namespace tessera::cuda::hopper {

template <class S>
class Loader {
 public:
  __device__ __forceinline__ Loader(Shared<S>& shared, const Parameters& p) : s_(shared), p_(p) {}

  // Last block of keys first, as consumers take them.
  __device__ __forceinline__ void run() {
    const int tasks = p_.order.prefix ? static_cast<int>(p_.order.size()) : p_.tasks;
    int index = static_cast<int>(blockIdx.x);
    for (; index < tasks; index = next(index)) {
      Task<S>& task = s_.task[slot_];
      describe(p_, index, task);
      const int head = static_cast<int>(kernel::key_head(p_.arguments, task.head));
      const int first = task.all.first, last = task.all.last;
      if (first < last) load_keys(task, head, last - 1);
      load_queries(task, first < last);
      for (int block = last - 2; block >= first; --block) {
        load_keys(task, head, block);
        load_values(task, head, block + 1);
      }
      if (first < last) load_values(task, head, first);
    }
    s_.task[slot_].all.last = -1;
    open();
    s_.q_full[q_.stage].arrive();
  }

 private:
  // As late as possible: a task goes to the block that is free first.
  __device__ __forceinline__ int next(int index) {
    const int step = static_cast<int>(gridDim.x);
    return p_.counter == nullptr ? index + step : step + atomicAdd(p_.counter, 1);
  }

  // Publishes the task to the cleaner once there is room for its rows.
  __device__ __forceinline__ void open() {
    s_.q_empty[q_.stage].wait(q_.phase ^ 1);
    s_.opened[q_.stage].arrive();
    if (++slot_ == Shared<S>::kTasks) slot_ = 0;
  }

  __device__ __forceinline__ void load_queries(const Task<S>& task, bool some) {
    open();
    const bool clean = p_.clean_rows && task.live < S::kRows;
    if (some) {
      Barrier& full = clean ? s_.q_landed[q_.stage] : s_.q_full[q_.stage];
      load<S::kPanels, S::kRows>(s_.query[q_.stage], p_.query, full,
                                 static_cast<int>(task.query + task.row_first), task.head,
                                 task.batch, stream_through_l2());
    } else {
      s_.q_full[q_.stage].arrive();
    }
    q_.advance();
  }

  __device__ __forceinline__ void load_keys(const Task<S>& task, int head, int block) {
    s_.k_empty[k_.stage].wait(k_.phase ^ 1);
    load<S::kPanels, S::kKeys>(s_.key[k_.stage], p_.key, s_.k_full[k_.stage],
                               static_cast<int>(task.key) + block * S::kKeys, head, task.batch,
                               keep_in_l2());
    k_.advance();
  }

  __device__ __forceinline__ void load_values(const Task<S>& task, int head, int block) {
    s_.v_empty[v_.stage].wait(v_.phase ^ 1);
    const bool clean = p_.clean_keys && task.sticks_out(block);
    Barrier& full = clean ? s_.v_landed[v_.stage] : s_.v_full[v_.stage];
    load<S::kPanelsV, S::kKeys>(s_.value[v_.stage], p_.value, full,
                                static_cast<int>(task.key) + block * S::kKeys, head, task.batch,
                                keep_in_l2());
    v_.advance();
  }

  template <int kPanels, int kRows>
  __device__ __forceinline__ void load(unsigned char* to, const Map& map, Barrier& full, int seq,
                                       int head, int batch, std::uint64_t policy) {
    full.arrive_expecting(kPanels * kRows * kPanelRowBytes);
    if (map.repeats_head) head = 0;
    if (map.repeats_batch) batch = 0;
    TESSERA_UNROLL
    for (int panel = 0; panel < kPanels; ++panel)
      load_box(to + panel * kRows * kPanelRowBytes, map.tensor, full, panel * kPanelColumns, seq,
               head, batch, policy);
  }

  Shared<S>& s_;
  const Parameters& p_;
  Ring<S::kStages> k_, v_;
  Ring<S::kQueryStages> q_;
  int slot_ = 0;
};

// Where a tile sticks out of a sequence it brings the neighbour's rows, or padding: any bits. A
// weight of 0 does not hide them, for 0 · NaN is NaN. So values outside become 0 before anyone
// multiplies with them; rows of queries too, because the rows of a warp decide together when to
// rescale, and a row's bits shall depend on its own sequence alone. (Keys outside need nothing:
// their scores are replaced.)
template <class S>
class Cleaner {
 public:
  __device__ __forceinline__ Cleaner(Shared<S>& shared, const Parameters& p, int lane)
      : s_(shared), p_(p), lane_(lane) {}

  __device__ __forceinline__ void run() {
    for (;;) {
      s_.opened[q_.stage].wait(q_.phase);
      const Task<S>& task = s_.task[slot_];
      const int first = task.all.first, last = task.all.last;
      if (last < 0) return;
      if (p_.clean_rows && first < last && task.live < S::kRows) clean_rows(task);
      if (p_.clean_keys) {
        for (int block = last - 1; block >= first; --block) {
          if (task.sticks_out(block)) clean_values(task, block);
          v_.advance();
        }
      }
      __syncwarp();
      if (lane_ == 0) s_.q_empty[q_.stage].arrive();
      q_.advance();
      if (++slot_ == Shared<S>::kTasks) slot_ = 0;
    }
  }

 private:
  __device__ __forceinline__ void clean_rows(const Task<S>& task) {
    s_.q_landed[q_.stage].wait(landed(q_landed_, q_.stage));
    zero<S::kPanels, S::kRows>(s_.query[q_.stage], task.live, S::kRows);
    announce(s_.q_full[q_.stage]);
  }
  __device__ __forceinline__ void clean_values(const Task<S>& task, int block) {
    s_.v_landed[v_.stage].wait(landed(v_landed_, v_.stage));
    zero<S::kPanelsV, S::kKeys>(s_.value[v_.stage], 0, task.slot_of(task.band.begin, block));
    zero<S::kPanelsV, S::kKeys>(s_.value[v_.stage], task.slot_of(task.band.end, block), S::kKeys);
    announce(s_.v_full[v_.stage]);
  }

  // These barriers have a phase for each tile that is cleaned alone: parities, a bit a stage.
  __device__ static __forceinline__ std::uint32_t landed(std::uint32_t& parities, int stage) {
    const std::uint32_t parity = parities >> stage & 1;
    parities ^= 1u << stage;
    return parity;
  }

  // Rows [from, to) of every panel: whole rows, so the swizzle inside them does not matter.
  // (Not unrolled: these warps have few registers.)
  template <int kPanels, int kRows>
  __device__ __forceinline__ void zero(unsigned char* tile, int from, int to) {
    const std::uint32_t begin = shared_address(tile) + from * kPanelRowBytes + lane_ * 16;
    const std::uint32_t end = shared_address(tile) + to * kPanelRowBytes;
#pragma unroll 1
    for (int panel = 0; panel < kPanels * kRows * kPanelRowBytes; panel += kRows * kPanelRowBytes)
#pragma unroll 1
      for (std::uint32_t at = begin; at < end; at += 32 * 16) store_zeros(at + panel);
  }

  __device__ __forceinline__ void announce(Barrier& full) {
    fence_proxy_async();
    __syncwarp();
    if (lane_ == 0) full.arrive();
  }

  Shared<S>& s_;
  const Parameters& p_;
  const int lane_;
  Ring<S::kStages> v_;
  Ring<S::kQueryStages> q_;
  std::uint32_t v_landed_ = 0, q_landed_ = 0;
  int slot_ = 0;
};

}  // namespace tessera::cuda::hopper
