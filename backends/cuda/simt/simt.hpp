#pragma once
// The kernel that computes every problem with ordinary fp32 arithmetic: what launch.cu and the
// instances know of each other.

#include "core/kernel/arguments.hpp"
#include "core/kernel/softmax.hpp"
#include "core/kernel/work_order.hpp"

namespace tessera::cuda {
struct Fp16;
struct Bf16;
}  // namespace tessera::cuda

namespace tessera::cuda::simt {

using kernel::Index;

struct Fp32;

// The rows of a thread block, its lines: of one query head, or, where there are few, of all query
// heads that read the same keys, one head after another.
enum class Lines { OfHead, OfGroup };

// Keys of a step; a multiple of 8, so that dropout's groups of columns fit.
inline constexpr int kKeys = 64;
// Steps of a stretch. Sums of fp32 are made in steps, stretches and rows, so that their error does
// not grow with the number of keys where these weigh alike.
inline constexpr int kStretch = 32;

// Lines of a block; `dim` is an instance's.
constexpr int rows_of(int dim, Lines lines) {
  return lines == Lines::OfGroup ? 16 : dim <= 128 ? 64 : 32;
}

// Split-KV: what each part of the keys leaves of each row, for merge.
struct Partials {
  Index parts = 1;                                // 1: none
  kernel::SoftmaxState<float>* states = nullptr;  // [batch][total_q][head_q][parts]
  float* out = nullptr;                           // [batch][total_q][head_q][parts][dim_v]
};

// Can four neighbouring elements be moved at once?
struct Aligned {
  bool query = false;
  bool key = false;
  bool value = false;
  bool out = false;
};

struct Work {
  kernel::ForwardArguments arguments;
  kernel::WorkOrder order;  // Lines::OfGroup: of key heads and blocks of their lines
  Partials partials;
  Aligned aligned;
};

// Queues it; `tasks`: about as many as the order holds, which for packed input only the device
// knows. kDim holds the head dimensions of query and value. Throws DeviceError, which names `name`.
template <class Element, int kDim, Lines kLines>
void run(const Work& work, Index tasks, const char* name, void* stream);

}  // namespace tessera::cuda::simt
