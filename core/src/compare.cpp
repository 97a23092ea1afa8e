#include "core/src/layout.hpp"
#include "core/src/operands.hpp"
#include "core/src/text.hpp"
#include "core/src/validate.hpp"

namespace tessera::detail {
namespace {

void check_number(const char* name, const char* field, std::int64_t is, std::int64_t planned) {
  if (is != planned) {
    refuse(concat(name, field), concat(is),
           concat("the plan was made for ", planned, ": plan again for other shapes"));
  }
}

void check_given(const char* name, bool is, bool planned) {
  if (is == planned) return;
  refuse(name, is ? "given" : "absent",
         concat("the plan was made ", planned ? "with" : "without",
                " it: plan again with describe(args, options)"));
}

void check_dtype(const char* name, DType is, DType planned) {
  if (is != planned) {
    refuse(concat(name, ".dtype"), to_string(is), concat("the plan was made for ", planned));
  }
}

void check_spec(const char* name, const void* data, const TensorSpec& is,
                const TensorSpec& planned) {
  check_dtype(name, is.dtype, planned.dtype);
  // Strides of wrong extents are wrong too, and say less.
  for (const Axis& axis : kAxes) {
    if (is.extent.*axis.extent != planned.extent.*axis.extent) {
      check_number(name, concat(".extent.", axis.name).c_str(), is.extent.*axis.extent,
                   planned.extent.*axis.extent);
    }
  }
  for (const Axis& axis : kAxes) {
    const bool used = is.extent.*axis.extent > 1;
    if (used && is.stride.*axis.stride != planned.stride.*axis.stride) {
      check_number(name, concat(".stride.", axis.name).c_str(), is.stride.*axis.stride,
                   planned.stride.*axis.stride);
    }
  }
  if (data != nullptr && address(data) % static_cast<std::uintptr_t>(planned.alignment) != 0) {
    refuse(concat(name, ".data"), to_text(data),
           concat("the plan was made for addresses that are multiples of ", planned.alignment,
                  ": align it, or plan with a lower TensorSpec::alignment"));
  }
}

void check_optional(const char* name, const void* data, const std::optional<TensorSpec>& is,
                    const std::optional<TensorSpec>& planned) {
  check_given(name, is.has_value(), planned.has_value());
  if (is) check_spec(name, data, *is, *planned);
}

}  // namespace

void validate_same(const Problem& planned, const Problem& posed, const Args& args) {
  for (const RequiredInput& input : kRequiredInputs) {
    check_spec(input.name, (args.*input.tensor).data, posed.*input.spec, planned.*input.spec);
  }
  for (const Result& result : kResults) {
    check_optional(result.name, (args.*result.tensor).data, posed.*result.spec,
                   planned.*result.spec);
  }
  for (const OptionalInput& input : kGradientInputs) {
    check_optional(input.name, (args.*input.tensor).data, posed.*input.spec, planned.*input.spec);
  }
  for (const Gradient& gradient : kGradients) {
    check_optional(gradient.name, (args.*gradient.tensor).data, posed.*gradient.spec,
                   planned.*gradient.spec);
  }
  for (const OptionalInput& input : kOptionalInputs) {
    check_optional(input.name, (args.*input.tensor).data, posed.*input.spec, planned.*input.spec);
  }
  for (const RangeVector& range : kRangeVectors) {
    check_given(range.name, posed.*range.given, planned.*range.given);
    const std::int64_t size = (args.*range.vector).size;
    if (posed.*range.given && size != planned.query.extent.batch) {
      refuse(concat(range.name, ".size"), concat(size),
             concat("must equal query.extent.batch (", planned.query.extent.batch, ")"));
    }
  }
  check_given("cu_seqlens_q", posed.packed.has_value(), planned.packed.has_value());
  if (posed.packed) {
    check_number("cu_seqlens_q", ".size", posed.packed->segments + 1, planned.packed->segments + 1);
    check_dtype("cu_seqlens_q", posed.packed->dtype_q, planned.packed->dtype_q);
    check_dtype("cu_seqlens_k", posed.packed->dtype_k, planned.packed->dtype_k);
  }
  check_given("softcap", posed.softcap, planned.softcap);
}

}  // namespace tessera::detail
