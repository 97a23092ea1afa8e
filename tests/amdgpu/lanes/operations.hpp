#pragma once
// What the instructions that kernels name do, of a whole wave and of one lane.

#include <cstdint>
#include <cstring>

#include "tests/amdgpu/lanes/work_group.hpp"

namespace tessera::amdgpu::lanes {

// --- Between lanes -------------------------------------------------------------------------------

extern const Operation kFirstLane;  // takes and gives a 32-bit number
extern const Operation kBallot;     // takes a bool, gives 64 bits
struct Permute {
  std::int32_t byte;  // four times the lane to read
  std::uint32_t word;
};
extern const Operation kPermute;  // gives the lane's word
struct FromLane {
  int lane;  // of the 16 that it is among
  float value;
};
extern const Operation kShareInRow;      // gives the lane's value
extern const Operation kReadTransposed;  // takes and gives four 16-bit numbers

// --- Matrix instructions: sums += A·B ------------------------------------------------------------

struct Factors {
  const void* a;  // the lane's numbers
  const void* b;
  const float* sums;
};
extern const Operation kMfma32x32x8Half, kMfma32x32x8Bfloat, kMfma32x32x16Half, kMfma32x32x16Bfloat,
    kMfma32x32x2Single, kWmma11Half, kWmma11Bfloat, kWmma12Half, kWmma12Bfloat;

// --- Of one lane ---------------------------------------------------------------------------------

// Bytes chosen from a (4 … 7) and b (0 … 3).
std::uint32_t permute_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t selector);

struct Buffer {
  const char* data;
  std::uint32_t size;  // bytes
};
// `count` words from byte `offset` + `further` on: 0 for those that are not whole in the buffer.
void load_buffer(const Buffer& buffer, std::uint32_t offset, std::uint32_t further, int count,
                 std::uint32_t* words);

}  // namespace tessera::amdgpu::lanes
