#pragma once
// Checks of one operand, and of one against another: each throws InvalidArgument.

#include <cstddef>

#include <tessera/problem.hpp>

#include "core/src/layout.hpp"

namespace tessera::detail {

// Repeated: bias, boolean mask and dout, whose last stride may be 0.
enum class Access { Read, Repeated, Write };

// Axes, as kAxes counts them.
inline constexpr std::size_t kBatch = 0, kHead = 1, kSeq = 2, kDim = 3;

void check_extents(const char* name, const TensorSpec& spec);

// Once the extents are known to be right: strides of wrong extents are wrong too, and say less.
void check_strides(const char* name, const TensorSpec& spec, Access access);

void check_dtype(const char* name, DType is, DType must);
void check_dtype_as_query(const char* name, const Problem& p, const TensorSpec& spec);

// One axis against the same axis of another operand.
void check_equal(const char* name, const TensorSpec& spec, const char* other,
                 const TensorSpec& model, std::size_t axis);

// The same for two operands that must be given: one of a single number, beside a larger one, was
// forgotten.
void check_agree(const char* name, const TensorSpec& spec, const char* other,
                 const TensorSpec& model, std::size_t axis);

}  // namespace tessera::detail
