// What an Inputs tells of itself: shapes, outputs of its layout, descriptions.

#include "tools/command/inputs.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "tools/command/report.hpp"

namespace tessera::tools {
namespace {

using io::Element;

std::string both(std::int64_t a, std::int64_t b) {
  return a == b ? fmt::format("{}", a) : fmt::format("{} / {}", a, b);
}

}  // namespace

Element element_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::fp16:
      return Element::f16;
    case DType::bf16:
      return Element::bf16;
    case DType::int32:
      return Element::i32;
    case DType::int64:
      return Element::i64;
    case DType::uint8:
      return Element::u8;
    case DType::fp32:
      break;
  }
  return Element::f32;
}

std::optional<DType> dtype_of(Element element) noexcept {
  for (const DType dtype :
       {DType::fp32, DType::fp16, DType::bf16, DType::int32, DType::int64, DType::uint8}) {
    if (element_of(dtype) == element) return dtype;
  }
  return std::nullopt;
}

const std::string& Inputs::file_of(std::string_view text) const {
  constexpr std::array<std::pair<const char*, std::string_view>, 3> kOperands{
      {{"q", "query."}, {"k", "key."}, {"v", "value."}}};
  for (const auto& [tensor, argument] : kOperands) {
    const auto found = files.find(tensor);
    if (found != files.end() && (text == tensor || text.starts_with(argument)))
      return found->second;
  }
  return name;
}

std::int64_t Inputs::rows() const noexcept {
  const ConstVector& sums = args.cu_seqlens_q;
  if (!packed()) return args.query.extent.seq;
  if (sums.dtype == DType::int32) return static_cast<const std::int32_t*>(sums.data)[sums.size - 1];
  return static_cast<const std::int64_t*>(sums.data)[sums.size - 1];
}

Extents Inputs::out_extent() const noexcept {
  Extents extent = args.query.extent;
  extent.dim = args.value.extent.dim;
  return extent;
}

Tensor Inputs::out(void* data) const noexcept {
  const DType dtype = args.query.dtype;
  return heads_first(layout) ? Tensor::bhsd(data, dtype, out_extent())
                             : Tensor::bshd(data, dtype, out_extent());
}

Tensor Inputs::lse(void* data) const noexcept {
  const Extents& e = args.query.extent;
  return Tensor::lse(static_cast<float*>(data), e.batch, e.head, e.seq);
}

std::vector<std::int64_t> Inputs::out_shape() const {
  const Extents e = out_extent();
  std::vector<std::int64_t> shape{e.batch, e.seq, e.head, e.dim};
  if (heads_first(layout)) std::swap(shape[1], shape[2]);
  if (!has_batch(layout)) shape.erase(shape.begin());
  return shape;
}

std::vector<std::int64_t> Inputs::lse_shape() const {
  const Extents& e = args.query.extent;
  if (!has_batch(layout)) return {e.head, e.seq};
  return {e.batch, e.head, e.seq};
}

std::string describe_shape(const Inputs& inputs) {
  const Extents& q = inputs.args.query.extent;
  const Extents& k = inputs.args.key.extent;
  const std::int64_t dim_v = inputs.args.value.extent.dim;
  const std::string sequences =
      inputs.packed() ? fmt::format("{}, {} tokens",
                                    counted(inputs.args.cu_seqlens_q.size - 1, "packed segment"),
                                    both(q.seq, k.seq))
                      : fmt::format("batch {}, seq {}", q.batch, both(q.seq, k.seq));
  return fmt::format("{}, heads {}, head_dim {}, {}, layout {}", sequences, both(q.head, k.head),
                     both(q.dim, dim_v), tessera::to_string(inputs.args.query.dtype),
                     to_string(inputs.layout));
}

std::string describe_options(const Inputs& inputs) {
  const Args& args = inputs.args;
  const Mask& mask = inputs.options.mask;
  std::string text = fmt::format("mask {}", to_string(inputs.mask));
  const auto side = [](const std::optional<std::int64_t>& x) {
    return x ? fmt::format("{}", *x) : "unbounded";
  };
  if (inputs.mask == MaskKind::Window)
    text += fmt::format(" (left {}, right {})", side(mask.left()), side(mask.right()));
  if (mask.alignment()) text += fmt::format(" {}", to_string(*mask.alignment()));
  if (args.scale) {
    text += fmt::format(", scale {}", *args.scale);
  } else {
    text += ", scale 1/sqrt(head_dim)";
  }
  if (args.softcap > 0) text += fmt::format(", softcap {}", args.softcap);
  if (inputs.options.dropout > 0) {
    text += fmt::format(", dropout {} (seed {}, offset {})", inputs.options.dropout, args.seed,
                        args.offset);
  }
  for (const char* name : kOptionalTensors) {
    if (inputs.arrays.contains(name)) text += fmt::format(", {}", name);
  }
  return text;
}

}  // namespace tessera::tools
