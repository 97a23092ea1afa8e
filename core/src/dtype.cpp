#include <tessera/dtype.hpp>

namespace tessera {

std::string_view to_string(DType type) noexcept {
  switch (type) {
    case DType::fp32:
      return "fp32";
    case DType::fp16:
      return "fp16";
    case DType::bf16:
      return "bf16";
    case DType::int32:
      return "int32";
    case DType::int64:
      return "int64";
    case DType::uint8:
      return "uint8";
  }
  return "unknown";
}

}  // namespace tessera
