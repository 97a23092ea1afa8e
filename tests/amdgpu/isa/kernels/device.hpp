#pragma once
// The few attributes and ids that the test kernels need, without any vendor's header.

#define TEST_DEVICE __attribute__((device)) inline
#define TEST_KERNEL(threads) \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads)))
#define TEST_LDS __attribute__((shared))

TEST_DEVICE unsigned item_id() { return __builtin_amdgcn_workitem_id_x(); }
TEST_DEVICE unsigned group_id() { return __builtin_amdgcn_workgroup_id_x(); }

// A barrier that orders accesses to LDS.
TEST_DEVICE void workgroup_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}
