#pragma once
// The kernels that a test program holds, of one target, and what it is called.

#include <string_view>

#include "backends/hip/common/parameters.hpp"
#include "backends/hip/decode/parameters.hpp"
#include "backends/hip/gradient/parameters.hpp"

extern "C" {
extern const char* const tessera_lanes_target;

void tessera_forward_fp16_64(tessera::hip::ForwardParameters);
void tessera_forward_bf16_64(tessera::hip::ForwardParameters);
void tessera_forward_fp16_64_general(tessera::hip::ForwardParameters);
void tessera_forward_bf16_64_general(tessera::hip::ForwardParameters);
void tessera_forward_fp32_64(tessera::hip::ForwardParameters);
void tessera_forward_fp32_64_general(tessera::hip::ForwardParameters);

void tessera_decode_fp16_64(tessera::hip::decode::Parameters);
void tessera_decode_bf16_64(tessera::hip::decode::Parameters);
void tessera_decode_fp16_64_general(tessera::hip::decode::Parameters);
void tessera_decode_bf16_64_general(tessera::hip::decode::Parameters);
void tessera_decode_fp16_merge(tessera::hip::decode::Parameters);
void tessera_decode_bf16_merge(tessera::hip::decode::Parameters);

void tessera_backward_fp16_rows(tessera::hip::gradient::Parameters);
void tessera_backward_bf16_rows(tessera::hip::gradient::Parameters);
void tessera_backward_fp16_64_dq(tessera::hip::gradient::Parameters);
void tessera_backward_bf16_64_dq_general(tessera::hip::gradient::Parameters);
void tessera_backward_fp16_64_dkv(tessera::hip::gradient::Parameters);
void tessera_backward_bf16_64_dkv_general(tessera::hip::gradient::Parameters);
void tessera_backward_dsink(tessera::hip::gradient::Parameters);
}

namespace tessera::amdgpu::lanes {

inline bool is_cdna() { return std::string_view(tessera_lanes_target).starts_with("gfx9"); }
inline int wave_of_target() { return is_cdna() ? 64 : 32; }

}  // namespace tessera::amdgpu::lanes
