#include "core/src/c_api_structs.hpp"

#include <string>

namespace tessera::detail {
namespace {

// The numbers are the same on both sides.
static_assert(tessera_fp32 == static_cast<int>(DType::fp32) &&
              tessera_fp16 == static_cast<int>(DType::fp16) &&
              tessera_bf16 == static_cast<int>(DType::bf16) &&
              tessera_int32 == static_cast<int>(DType::int32) &&
              tessera_int64 == static_cast<int>(DType::int64) &&
              tessera_uint8 == static_cast<int>(DType::uint8));
static_assert(tessera_op_forward == static_cast<int>(Operation::forward) &&
              tessera_op_backward == static_cast<int>(Operation::backward) &&
              tessera_op_decode == static_cast<int>(Operation::decode));
static_assert(tessera_accumulate_fp32 == static_cast<int>(Accumulate::fp32) &&
              tessera_accumulate_fp16 == static_cast<int>(Accumulate::fp16));

constexpr std::size_t kLargestStruct = 1 << 16;

std::int32_t check_number(std::string_view name, std::int32_t value, std::int32_t last,
                          std::string_view allowed) {
  if (value < 0 || value > last) refuse(name, concat(value), allowed);
  return value;
}

void check_reserved(const std::string& name, std::int32_t reserved) {
  if (reserved != 0) refuse(concat(name, ".reserved"), concat(reserved), "must be 0");
}

bool to_flag(std::string_view name, std::int32_t value) {
  return check_number(name, value, 1, "must be 0 or 1") == 1;
}

DType to_dtype(const std::string& name, std::int32_t dtype) {
  check_number(concat(name, ".dtype"), dtype, tessera_uint8,
               "must be tessera_fp32, fp16, bf16, int32, int64 or uint8");
  return static_cast<DType>(dtype);
}

bool is_absent(const tessera_tensor& t) {
  const auto zero = [](std::int64_t x) { return x == 0; };
  return t.data == nullptr && t.dtype == 0 && std::all_of(t.extent, t.extent + 4, zero) &&
         std::all_of(t.stride, t.stride + 4, zero);
}

Tensor to_tensor(const std::string& name, const tessera_tensor& t) {
  check_reserved(name, t.reserved);
  if (is_absent(t)) return {};
  return {.data = t.data,
          .dtype = to_dtype(name, t.dtype),
          .extent = {t.extent[0], t.extent[1], t.extent[2], t.extent[3]},
          .stride = {t.stride[0], t.stride[1], t.stride[2], t.stride[3]}};
}

ConstVector to_vector(const std::string& name, const tessera_vector& v) {
  check_reserved(name, v.reserved);
  if (v.data == nullptr && v.dtype == 0 && v.count == 0) return {};
  return {.data = v.data, .dtype = to_dtype(name, v.dtype), .size = v.count};
}

struct NamedInput {
  const char* name;
  tessera_tensor tessera_args::* from;
  ConstTensor Args::* to;
};
constexpr NamedInput kInputs[] = {
    {"query", &tessera_args::query, &Args::query},
    {"key", &tessera_args::key, &Args::key},
    {"value", &tessera_args::value, &Args::value},
    {"dout", &tessera_args::dout, &Args::dout},
    {"dlse", &tessera_args::dlse, &Args::dlse},
    {"alibi_slopes", &tessera_args::alibi_slopes, &Args::alibi_slopes},
    {"bias", &tessera_args::bias, &Args::bias},
    {"boolean_mask", &tessera_args::boolean_mask, &Args::boolean_mask},
    {"sinks", &tessera_args::sinks, &Args::sinks}};

struct NamedOutput {
  const char* name;
  tessera_tensor tessera_args::* from;
  Tensor Args::* to;
};
constexpr NamedOutput kOutputs[] = {
    {"out", &tessera_args::out, &Args::out},      {"lse", &tessera_args::lse, &Args::lse},
    {"dq", &tessera_args::dq, &Args::dq},         {"dk", &tessera_args::dk, &Args::dk},
    {"dv", &tessera_args::dv, &Args::dv},         {"dbias", &tessera_args::dbias, &Args::dbias},
    {"dsink", &tessera_args::dsink, &Args::dsink}};

struct NamedVector {
  const char* name;
  tessera_vector tessera_args::* from;
  ConstVector Args::* to;
};
constexpr NamedVector kVectors[] = {
    {"key_begin", &tessera_args::key_begin, &Args::key_begin},
    {"key_end", &tessera_args::key_end, &Args::key_end},
    {"query_end", &tessera_args::query_end, &Args::query_end},
    {"cu_seqlens_q", &tessera_args::cu_seqlens_q, &Args::cu_seqlens_q},
    {"cu_seqlens_k", &tessera_args::cu_seqlens_k, &Args::cu_seqlens_k}};

Mask::Edge to_edge(std::string_view name, std::int64_t keys) {
  if (keys < tessera_unbounded) {
    refuse(name, concat(keys), "must be at least 0, or -1 (tessera_unbounded)");
  }
  return keys == tessera_unbounded ? Mask::Edge{} : Mask::Edge{keys};
}

Mask to_mask(const tessera_options& o) {
  check_number("options.mask", o.mask, tessera_mask_window,
               "must be tessera_mask_none, tessera_mask_causal or tessera_mask_window");
  check_number("options.alignment", o.alignment, tessera_bottom_right,
               "must be tessera_top_left or tessera_bottom_right");
  if (o.mask == tessera_mask_none && o.alignment != tessera_no_alignment) {
    refuse("options.alignment", concat(o.alignment),
           "must be 0 for tessera_mask_none, which has no diagonal");
  }
  if (o.mask != tessera_mask_none && o.alignment == tessera_no_alignment) {
    refuse("options.alignment", "0",
           "must be tessera_top_left or tessera_bottom_right: libraries differ, and there is no "
           "default");
  }
  if (o.mask != tessera_mask_window) {
    constexpr std::string_view kAllowed = "must be 0 unless options.mask is tessera_mask_window";
    if (o.window_left != 0) refuse("options.window_left", concat(o.window_left), kAllowed);
    if (o.window_right != 0) refuse("options.window_right", concat(o.window_right), kAllowed);
  }
  const Alignment alignment =
      o.alignment == tessera_top_left ? Alignment::TopLeft : Alignment::BottomRight;
  if (o.mask == tessera_mask_none) return Mask::none();
  if (o.mask == tessera_mask_causal) return Mask::causal(alignment);
  return Mask::window(to_edge("options.window_left", o.window_left),
                      to_edge("options.window_right", o.window_right), alignment);
}

}  // namespace

std::size_t checked_size(std::string_view name, const void* data, std::size_t alignment) {
  if (data == nullptr) refuse(name, "null", "must point to a struct");
  if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0)
    refuse(name, to_text(data), concat("must be a multiple of ", alignment));
  std::size_t size = 0;
  std::memcpy(&size, data, sizeof size);
  if (size < sizeof size || size > kLargestStruct || size % alignment != 0) {
    refuse(concat(name, ".size"), concat(size), "must be the struct's sizeof");
  }
  return size;
}

void check_tail(std::string_view name, const void* data, std::size_t begin, std::size_t end) {
  const auto* const bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = begin; i < end; ++i) {
    if (bytes[i] == 0) continue;
    decline(concat(name, " sets byte ", i, " of its ", end, ", beyond the ", begin,
                   " that this version knows: a field of a later version"));
  }
}

Operation to_operation(std::int32_t operation) {
  check_number("operation", operation, tessera_op_decode,
               "must be tessera_op_forward, tessera_op_backward or tessera_op_decode");
  return static_cast<Operation>(operation);
}

Args to_args(const tessera_args* args) {
  const tessera_args c = read_struct("args", args);
  Args result;
  for (const NamedInput& input : kInputs) result.*input.to = to_tensor(input.name, c.*input.from);
  for (const NamedOutput& output : kOutputs)
    result.*output.to = to_tensor(output.name, c.*output.from);
  for (const NamedVector& vector : kVectors)
    result.*vector.to = to_vector(vector.name, c.*vector.from);
  check_reserved("args", c.reserved);
  if (to_flag("has_scale", c.has_scale)) {
    result.scale = c.scale;
  } else if (!(c.scale == 0)) {  // NaN too
    refuse("scale", concat(c.scale), "must be 0 if has_scale is 0; set has_scale to 1 to use it");
  }
  result.softcap = c.softcap;
  result.seed = c.seed;
  result.offset = c.offset;
  result.seed_device = c.seed_device;
  result.offset_device = c.offset_device;
  result.workspace = {.data = c.workspace, .size = c.workspace_size};
  return result;
}

Options to_options(const tessera_options* options) {
  if (options == nullptr) return {};
  const tessera_options c = read_struct("options", options);
  check_reserved("options", c.reserved);
  check_number("options.accumulate", c.accumulate, tessera_accumulate_fp16,
               "must be tessera_accumulate_fp32 or tessera_accumulate_fp16");
  return {.mask = to_mask(c),
          .dropout = c.dropout,
          .accumulate = static_cast<Accumulate>(c.accumulate),
          .deterministic = to_flag("options.deterministic", c.deterministic),
          .batch_invariant = to_flag("options.batch_invariant", c.batch_invariant),
          .max_seq_q = c.max_seq_q,
          .max_seq_k = c.max_seq_k};
}

Stream to_stream(const tessera_stream* stream) {
  if (stream == nullptr) return {};
  const tessera_stream c = read_struct("stream", stream);
  check_reserved("stream", c.reserved);
  return Stream::from_native(c.native, c.device);
}

}  // namespace tessera::detail
