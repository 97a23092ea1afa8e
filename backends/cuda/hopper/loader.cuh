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
    const Task<S>* before = nullptr;  // whose first block's values are still to be loaded
    for (;;) {
      Task<S>& task = s_.task[slot_];
      describe_next(index, tasks, task);  // before room for those values is waited for
      if (before != nullptr) load_values(*before, before->head / p_.group, before->all.first);
      if (index >= tasks) break;
      const int head = task.head / p_.group;
      const int first = task.all.first, last = task.all.last;
      if (first < last) load_keys(task, head, last - 1);
      describe_own(task);  // while the first keys are on their way
      load_queries(task, first < last);
      for (int block = last - 2; block >= first; --block) {
        load_keys(task, head, block);
        load_values(task, head, block + 1);
      }
      before = first < last ? &task : nullptr;
      index = next(index);
    }
    open();
    s_.q_full[q_.stage].arrive();
  }

 private:
  // As late as possible: a task goes to the block that is free first.
  __device__ __forceinline__ int next(int index) {
    const int step = static_cast<int>(gridDim.x);
    return p_.counter == nullptr ? index + step : step + atomicAdd(p_.counter, 1);
  }

  __device__ __forceinline__ void describe_next(int index, int tasks, Task<S>& task) {
    if (index < tasks) {
      describe(p_, index, task);
    } else {
      task.all.last = -1;  // that was the last one
    }
  }

  // Publishes the task to the cleaner once there is room for its rows.
  __device__ __forceinline__ void open() {
    s_.q_empty[q_.stage].wait(q_.phase ^ 1);
    s_.opened[q_.stage].arrive();
    if (++slot_ == Shared<S>::kTasks) slot_ = 0;
  }

  __device__ __forceinline__ void load_queries(const Task<S>& task, bool some) {
    open();
    if (some) {
      load<S::kPanels, S::kRows>(s_.query[q_.stage], p_.query, s_.q_full[q_.stage],
                                 task.query + task.row_first, task.head, task.batch,
                                 stream_through_l2());
    } else {
      s_.q_full[q_.stage].arrive();
    }
    q_.advance();
  }

  __device__ __forceinline__ void load_keys(const Task<S>& task, int head, int block) {
    s_.k_empty[k_.stage].wait(k_.phase ^ 1);
    load<S::kPanels, S::kKeys>(s_.key[k_.stage], p_.key, s_.k_full[k_.stage],
                               task.key + block * S::kKeys, head, task.batch, keep_in_l2());
    k_.advance();
  }

  __device__ __forceinline__ void load_values(const Task<S>& task, int head, int block) {
    s_.v_empty[v_.stage].wait(v_.phase ^ 1);
    const bool clean = p_.clean_keys && task.sticks_out(block);
    Barrier& full = clean ? s_.v_landed[v_.stage] : s_.v_full[v_.stage];
    load<S::kPanelsV, S::kKeys>(s_.value[v_.stage], p_.value, full, task.key + block * S::kKeys,
                                head, task.batch, keep_in_l2());
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
// weight of 0 does not hide them, for 0 · NaN is NaN: values outside become 0 before anyone
// multiplies with them. (Keys outside need nothing, their scores are replaced; nor do queries, for
// rows have nothing to do with one another.)
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
      for (int block = last - 1; block >= first; --block) {
        if (task.sticks_out(block)) clean_values(task, block);
        v_.advance();
      }
      __syncwarp();
      if (lane_ == 0) s_.q_empty[q_.stage].arrive();
      q_.advance();
      if (++slot_ == Shared<S>::kTasks) slot_ = 0;
    }
  }

 private:
  __device__ __forceinline__ void clean_values(const Task<S>& task, int block) {
    // This barrier has a phase for each tile that is cleaned alone: parities, a bit a stage.
    s_.v_landed[v_.stage].wait(v_landed_ >> v_.stage & 1);
    v_landed_ ^= 1u << v_.stage;
    zero(s_.value[v_.stage], 0, task.slot_of(task.band.begin, block));
    zero(s_.value[v_.stage], task.slot_of(task.band.end, block), S::kKeys);
    fence_proxy_async();
    __syncwarp();
    if (lane_ == 0) s_.v_full[v_.stage].arrive();
  }

  // Keys [from, to) of every panel: whole rows, so the swizzle inside them does not matter.
  // (Not unrolled: these warps have few registers.)
  __device__ __forceinline__ void zero(unsigned char* tile, int from, int to) {
    const std::uint32_t begin = shared_address(tile) + from * kPanelRowBytes + lane_ * 16;
    const std::uint32_t end = shared_address(tile) + to * kPanelRowBytes;
#pragma unroll 1
    for (int panel = 0; panel < S::kValueBytes; panel += S::kPanelBytes)
#pragma unroll 1
      for (std::uint32_t at = begin; at < end; at += 32 * 16) store_zeros(at + panel);
  }

  Shared<S>& s_;
  const Parameters& p_;
  const int lane_;
  Ring<S::kStages> v_;
  Ring<S::kQueryStages> q_;
  std::uint32_t v_landed_ = 0;
  int slot_ = 0;
};

}  // namespace tessera::cuda::hopper
