// A kernel that is given fewer registers than it has live values.

struct Parameters {
  const float* in;
  float* out;
};

extern "C" __attribute__((global, amdgpu_num_vgpr(16))) void tessera_spilling(Parameters p) {
  constexpr int kLive = 96;
  float live[kLive];
#pragma unroll
  for (int i = 0; i < kLive; ++i) live[i] = p.in[i * 1024 + __builtin_amdgcn_workitem_id_x()];
  __builtin_amdgcn_s_barrier();
#pragma unroll
  for (int i = 0; i < kLive; ++i)
    p.out[i * 1024 + __builtin_amdgcn_workitem_id_x()] = live[i] * live[kLive - 1 - i];
}
