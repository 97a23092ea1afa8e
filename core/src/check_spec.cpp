#include "core/src/check_spec.hpp"

#include <bit>

#include "core/src/text.hpp"

namespace tessera::detail {

void check_extents(const char* name, const TensorSpec& spec) {
  for (const Axis& axis : kAxes) {
    const std::int64_t extent = spec.extent.*axis.extent;
    if (extent < 0)
      refuse(concat(name, ".extent.", axis.name), concat(extent), "must be at least 0");
  }
  if (!element_count(spec.extent)) {
    refuse(concat(name, ".extent"), concat(spec.extent), "must hold fewer than 2^63 elements");
  }
}

void check_strides(const char* name, const TensorSpec& spec, Access access) {
  for (const Axis& axis : kAxes) {
    const std::int64_t stride = spec.stride.*axis.stride;
    if (spec.extent.*axis.extent > 1 && stride < 0) {
      refuse(concat(name, ".stride.", axis.name), concat(stride),
             "must be at least 0: reversed axes are not supported");
    }
  }
  if (spec.extent.dim > 1 && spec.stride.dim != 1 &&
      !(access == Access::Repeated && spec.stride.dim == 0)) {
    refuse(concat(name, ".stride.dim"), concat(spec.stride.dim),
           access == Access::Repeated ? "must be 1, or 0 to broadcast"
                                      : "must be 1: elements of a row are neighbours");
  }
  if (!byte_span(spec.dtype, spec.extent, spec.stride)) {
    refuse(
        concat(name, ".stride"), concat(spec.stride),
        concat("must keep the last element of ", spec.extent, " within 2^63 bytes of the first"));
  }
  if (access == Access::Write && may_overlap_itself(spec.extent, spec.stride)) {
    refuse(
        concat(name, ".stride"), concat(spec.stride),
        concat("must give every element of ", spec.extent,
               " its own place: each stride at least the span of the axes with smaller strides"));
  }
  const std::int64_t size = size_of(spec.dtype);
  if (spec.alignment < size || spec.alignment > 128 ||
      !std::has_single_bit(static_cast<std::uint64_t>(spec.alignment))) {
    refuse(concat(name, ".alignment"), concat(spec.alignment),
           concat("must be a power of two from ", size, ", the size of ", spec.dtype, ", to 128"));
  }
}

void check_dtype(const char* name, DType is, DType must) {
  if (is != must) refuse(concat(name, ".dtype"), to_string(is), concat("must be ", must));
}

void check_dtype_as_query(const char* name, const Problem& p, const TensorSpec& spec) {
  if (spec.dtype != p.query.dtype) {
    refuse(concat(name, ".dtype"), to_string(spec.dtype),
           concat("must equal query.dtype (", p.query.dtype, ")"));
  }
}

void check_equal(const char* name, const TensorSpec& spec, const char* other,
                 const TensorSpec& model, std::size_t axis) {
  const Axis& a = kAxes[axis];
  if (spec.extent.*a.extent != model.extent.*a.extent) {
    refuse(concat(name, ".extent.", a.name), concat(spec.extent.*a.extent),
           concat("must equal ", other, ".extent.", a.name, " (", model.extent.*a.extent, ")"));
  }
}
void check_agree(const char* name, const TensorSpec& spec, const char* other,
                 const TensorSpec& model, std::size_t axis) {
  const Axis& a = kAxes[axis];
  if (spec.extent.*a.extent == model.extent.*a.extent) return;
  const auto refuse_missing = [](const char* missing, const char* beside, const Extents& extent) {
    refuse(concat(missing, ".extent"), concat(Extents{}, ", as if ", missing, " were missing"),
           concat("must fit ", beside, ".extent (", extent, ")"));
  };
  if (spec.extent == Extents{}) refuse_missing(name, other, model.extent);
  if (model.extent == Extents{}) refuse_missing(other, name, spec.extent);
  check_equal(name, spec, other, model, axis);
}

}  // namespace tessera::detail
