#include "backends/cuda/hopper/tensor_map.hpp"

#include <cuda.h>
#include <cuda_runtime.h>

#include <tessera/error.hpp>

#include "backends/cuda/host.hpp"

namespace tessera::cuda::hopper {
namespace {

constexpr Index kElement = 2;  // bytes
constexpr Index kAlignment = 16;
constexpr Index kMostStride = Index{1} << 40;  // bytes, exclusive
constexpr Index kMostExtent = Index{1} << 29;  // exclusive: positions, see kernel::kOpen

// The driver's function; libcuda is not linked.
using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                            CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill);

Encode find_encode() {
  constexpr unsigned kSince = 12000;  // CUDA 12.0
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSince,
                                         cudaEnableDefault, &found),
        "looking for the driver's cuTensorMapEncodeTiled");
  if (found != cudaDriverEntryPointSuccess || function == nullptr)
    throw DeviceError("the driver has no cuTensorMapEncodeTiled: it must be of CUDA 12.0 or newer");
  return reinterpret_cast<Encode>(function);
}

Encode encode() {
  static const Encode function = find_encode();
  return function;
}

std::string reject_axis(const std::string& name, const char* axis, Index extent, Index stride,
                        bool may_repeat) {
  if (extent <= 1) return {};
  const auto text = [&](const char* what, Index value, const std::string& rule) {
    return name + "." + what + "." + axis + " is " + std::to_string(value) + "; " + rule +
           ": forward.mma takes it";
  };
  if (extent >= kMostExtent)
    return text("extent", extent, "it reads fewer than 536870912 elements along an axis");
  if (stride * kElement % kAlignment != 0)
    return text("stride", stride, "TMA needs multiples of 8 elements (16 bytes)");
  if (stride >= kMostStride / kElement)
    return text("stride", stride, "TMA reads strides below 549755813888 elements");
  if (stride == 0 && !may_repeat) return text("stride", stride, "TMA does not repeat a row");
  return {};
}

}  // namespace

std::string reject_operand(const char* name, const TensorSpec& spec) {
  const Extents& e = spec.extent;
  if (e.batch == 0 || e.head == 0 || e.seq == 0) return {};  // never read
  if (spec.alignment < kAlignment) {
    return std::string(name) + ".alignment is " + std::to_string(spec.alignment) +
           "; TMA needs addresses that are multiples of 16 bytes: forward.mma takes it";
  }
  std::string reason = reject_axis(name, "seq", e.seq, spec.stride.seq, false);
  if (reason.empty()) reason = reject_axis(name, "head", e.head, spec.stride.head, true);
  if (reason.empty()) reason = reject_axis(name, "batch", e.batch, spec.stride.batch, true);
  return reason;
}

Map make_map(const kernel::Operand<const void>& operand, DType dtype, Index batch, Index heads,
             Index seq, Index dim, int rows) {
  // Where there is one element, or one is repeated, the stride does not matter, but must be legal.
  const auto size = [](Index extent, Index stride) -> cuuint64_t {
    return stride == 0 ? 1 : static_cast<cuuint64_t>(extent);
  };
  const auto bytes = [dim](Index stride) {
    return static_cast<cuuint64_t>((stride == 0 ? dim : stride) * kElement);
  };
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(dim), size(seq, operand.seq),
                                size(heads, operand.head), size(batch, operand.batch)};
  const cuuint64_t strides[] = {bytes(operand.seq), bytes(operand.head), bytes(operand.batch)};
  const cuuint32_t box[] = {64, static_cast<cuuint32_t>(rows), 1, 1};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  Map map{};
  map.repeats_head = operand.head == 0;
  map.repeats_batch = operand.batch == 0;
  const CUresult result = encode()(
      &map.tensor,
      dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4,
      const_cast<void*>(operand.data), extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw DeviceError("cuTensorMapEncodeTiled failed with error " + std::to_string(result));
  return map;
}

}  // namespace tessera::cuda::hopper
