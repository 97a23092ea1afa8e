#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/src/layout.hpp"
#include "core/src/operands.hpp"
#include "core/src/text.hpp"
#include "core/src/validate.hpp"

namespace tessera::detail {
namespace {

constexpr std::uintptr_t kWorkspaceAlignment = 64;

void check_in_base2(const char* argument, float factor) {
  if (std::isfinite(factor * std::numbers::log2e_v<float>)) return;
  refuse(argument, concat(factor),
         "must be at most 2.358e38 in size: its product with log2(e) must be finite in fp32");
}

void check_aligned(const char* argument, const void* data, std::int64_t alignment,
                   std::string_view of_what) {
  if (address(data) % static_cast<std::uintptr_t>(alignment) != 0) {
    refuse(argument, to_text(data), concat("must be a multiple of ", alignment, ", ", of_what));
  }
}

bool has_elements(const Extents& e) { return e.batch > 0 && e.head > 0 && e.seq > 0 && e.dim > 0; }

// Null only if there is nothing to point to; an optional operand (default extents) may be absent.
void check_data(const char* name, const ConstTensor& t, bool optional) {
  const bool absent = t.data == nullptr && t.extent == Extents{};
  if (absent && optional) return;
  if (absent) refuse(name, "missing", "must be a tensor [batch, head, seq, dim]");
  if (t.data == nullptr && has_elements(t.extent)) {
    refuse(
        concat(name, ".data"), "null",
        concat("must point to the elements of ", t.extent,
               optional ? concat("; to go without ", name, ", leave it default-constructed") : ""));
  }
  if (t.data == nullptr) return;
  if (size_of(t.dtype) == 0) {
    refuse(concat(name, ".dtype"), concat(static_cast<int>(t.dtype)),
           "must be an enumerator of DType");
  }
  const std::int64_t size = size_of(t.dtype);
  if (address(t.data) % static_cast<std::uintptr_t>(size) != 0) {
    check_aligned(concat(name, ".data").c_str(), t.data, size, concat("the size of ", t.dtype));
  }
  const auto span = byte_span(t.dtype, t.extent, t.stride);
  if (span && *span > 0 &&
      static_cast<std::uintptr_t>(*span) >
          std::numeric_limits<std::uintptr_t>::max() - address(t.data)) {
    refuse(concat(name, ".data"), to_text(t.data),
           concat(*span, " bytes from there must not run past the end of memory"));
  }
}

enum class Indices : std::uint8_t { narrow, any };

void check_vector(const char* name, const ConstVector& v, Indices indices) {
  if (v.size < 0) refuse(concat(name, ".size"), concat(v.size), "must be at least 0");
  if (v.data == nullptr) {
    if (v.size > 0) {
      refuse(concat(name, ".data"), "null",
             concat("must point to ", v.size, " numbers; to go without ", name,
                    ", leave it default-constructed"));
    }
    return;
  }
  const bool narrow = indices == Indices::narrow;
  if (v.dtype != DType::int32 && (narrow || v.dtype != DType::int64)) {
    refuse(concat(name, ".dtype"), to_string(v.dtype),
           narrow ? "must be int32" : "must be int32 or int64");
  }
  if (address(v.data) % static_cast<std::uintptr_t>(size_of(v.dtype)) != 0) {
    check_aligned(concat(name, ".data").c_str(), v.data, size_of(v.dtype),
                  concat("the size of ", v.dtype));
  }
  if (v.size > std::numeric_limits<std::int64_t>::max() / 8) {
    refuse(concat(name, ".size"), concat(v.size), "numbers must take fewer than 2^63 bytes");
  }
}

void check_ranges(const Args& args) {
  for (const RangeVector& range : kRangeVectors)
    check_vector(range.name, args.*range.vector, Indices::narrow);
}

void check_cu_seqlens(const Args& args) {
  const ConstVector& q = args.cu_seqlens_q;
  const ConstVector& k = args.cu_seqlens_k;
  check_vector("cu_seqlens_q", q, Indices::any);
  check_vector("cu_seqlens_k", k, Indices::any);
  if (q.data == nullptr && k.data == nullptr) return;
  if (q.data == nullptr)
    refuse("cu_seqlens_q.data", "null", "must be given together with cu_seqlens_k");
  if (k.data == nullptr)
    refuse("cu_seqlens_k.data", "null", "must be given together with cu_seqlens_q");
  if (q.size < 1) refuse("cu_seqlens_q.size", concat(q.size), "must be at least 1: segments + 1");
  if (k.size != q.size) {
    refuse("cu_seqlens_k.size", concat(k.size),
           concat("must equal cu_seqlens_q.size (", q.size, ")"));
  }
}

// A region with the name of its argument.
struct Named {
  const char* name = nullptr;
  const void* data = nullptr;
  Region region{};
};

Named named(const char* name, const ConstTensor& t) {
  return {name, t.data, {address(t.data), t.dtype, t.extent, t.stride}};
}
Named block(const char* name, const void* data, std::int64_t count, DType dtype) {
  return {name, data, {address(data), dtype, {.dim = count}, {.dim = 1}}};
}

}  // namespace

void validate_pointers_and_values(const Args& args, Operation operation) {
  const bool backward = operation == Operation::backward;
  for (const RequiredInput& input : kRequiredInputs)
    check_data(input.name, args.*input.tensor, false);
  check_data("out", args.out, backward);
  check_data("lse", args.lse, true);
  for (const OptionalInput& input : kOptionalInputs)
    check_data(input.name, args.*input.tensor, true);
  if (backward) {
    check_data("dout", args.dout, false);
    check_data("dlse", args.dlse, true);
    for (const Gradient& gradient : kGradients)
      check_data(gradient.name, args.*gradient.tensor, !gradient.required);
  }
  check_ranges(args);
  check_cu_seqlens(args);
  if (args.scale && !std::isfinite(*args.scale))
    refuse("scale", concat(*args.scale), "must be finite");
  if (!(args.softcap >= 0) || std::isinf(args.softcap)) {
    refuse("softcap", concat(args.softcap), "must be finite and at least 0; 0 is off");
  }
  // Kernels compute in base 2, where these are factors, in fp32.
  check_in_base2("scale", args.scale.value_or(0));
  if (args.scale && std::fpclassify(*args.scale) == FP_SUBNORMAL) {
    refuse("scale", concat(*args.scale),
           "must be 0 or at least 1.1754944e-38 in size: fp32 has no precision below");
  }
  check_in_base2("softcap", args.softcap);
  check_aligned("seed_device", args.seed_device, 8, "the size of its 64-bit number");
  check_aligned("offset_device", args.offset_device, 8, "the size of its 64-bit number");
}

void validate_workspace(const Workspace& workspace, std::size_t needed) {
  if (workspace.data == nullptr) {
    if (workspace.size != 0) {
      refuse("workspace.data", "null",
             concat("must point to workspace.size (", workspace.size, ") bytes"));
    }
    return;
  }
  check_aligned("workspace.data", workspace.data, kWorkspaceAlignment, "a cache line");
  if (workspace.size < needed) {
    refuse("workspace.size", concat(workspace.size),
           concat("must be at least Plan::workspace_size() (", needed, ")"));
  }
  if (workspace.size > std::numeric_limits<std::uintptr_t>::max() / 2 ||
      workspace.size > std::numeric_limits<std::uintptr_t>::max() - address(workspace.data)) {
    refuse("workspace.size", concat(workspace.size), "bytes must not run past the end of memory");
  }
}

void validate_disjoint(const Args& args, Operation operation) {
  const bool backward = operation == Operation::backward;
  std::array<Named, 8> written{};
  std::size_t count = 0;
  if (backward) {
    for (const Gradient& gradient : kGradients)
      written[count++] = named(gradient.name, args.*gradient.tensor);
  } else {
    for (const Result& result : kResults)
      written[count++] = named(result.name, args.*result.tensor);
  }
  written[count++] = block("workspace", args.workspace.data,
                           static_cast<std::int64_t>(args.workspace.size), DType::uint8);
  const auto vector = [](const char* name, const ConstVector& v) {
    return block(name, v.data, v.size, v.dtype);
  };
  const ConstTensor absent{};
  const std::array<Named, 18> read{named("query", args.query),
                                   named("key", args.key),
                                   named("value", args.value),
                                   named("alibi_slopes", args.alibi_slopes),
                                   named("bias", args.bias),
                                   named("boolean_mask", args.boolean_mask),
                                   named("sinks", args.sinks),
                                   vector("key_begin", args.key_begin),
                                   vector("key_end", args.key_end),
                                   vector("query_end", args.query_end),
                                   vector("cu_seqlens_q", args.cu_seqlens_q),
                                   vector("cu_seqlens_k", args.cu_seqlens_k),
                                   named("out", backward ? args.out : absent),
                                   named("lse", backward ? args.lse : absent),
                                   named("dout", backward ? args.dout : absent),
                                   named("dlse", backward ? args.dlse : absent),
                                   block("seed_device", args.seed_device, 1, DType::int64),
                                   block("offset_device", args.offset_device, 1, DType::int64)};
  const auto check = [](const Named& output, const Named& other) {
    if (other.data == nullptr || !may_overlap(output.region, other.region)) return;
    refuse(output.name, concat("at ", output.data),
           concat("must not overlap ", other.name, ", which begins at ", other.data));
  };
  for (std::size_t i = 0; i < count; ++i) {
    if (written[i].data == nullptr) continue;
    for (const Named& input : read) check(written[i], input);
    for (std::size_t j = 0; j < i; ++j) check(written[i], written[j]);
  }
}

}  // namespace tessera::detail
