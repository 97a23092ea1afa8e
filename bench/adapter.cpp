#include "bench/adapter.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include <dlfcn.h>

#include <tessera/error.hpp>

namespace tessera::bench {
namespace {

tessera_tensor to_c(const ConstTensor& t) noexcept {
  if (t.data == nullptr && t.extent == Extents{}) return {};  // absent
  tessera_tensor result{};
  result.data = const_cast<void*>(t.data);  // of inputs an adapter only reads
  result.dtype = static_cast<tessera_dtype>(t.dtype);
  result.extent[0] = t.extent.batch;
  result.extent[1] = t.extent.head;
  result.extent[2] = t.extent.seq;
  result.extent[3] = t.extent.dim;
  result.stride[0] = t.stride.batch;
  result.stride[1] = t.stride.head;
  result.stride[2] = t.stride.seq;
  result.stride[3] = t.stride.dim;
  return result;
}

tessera_vector to_c(const ConstVector& v) noexcept {
  if (v.data == nullptr && v.size == 0) return {};
  tessera_vector result{};
  result.data = v.data;
  result.dtype = static_cast<tessera_dtype>(v.dtype);
  result.count = v.size;
  return result;
}

tessera_stream to_c(const Stream& stream) noexcept {
  tessera_stream result{};
  result.size = sizeof result;
  result.native = stream.native();
  result.device = stream.device();
  return result;
}

using Function = tessera_status (*)(const tessera_args*, const tessera_options*,
                                    const tessera_stream*);

Function function_of(const tessera_adapter& table, Operation operation) noexcept {
  switch (operation) {
    case Operation::forward:
      return table.forward;
    case Operation::backward:
      return table.backward;
    case Operation::decode:
      return table.decode;
  }
  return nullptr;
}

std::string reason(const tessera_adapter& table, tessera_status status) {
  std::string text(table.name);
  text += ": ";
  const char* const said = table.last_error != nullptr ? table.last_error() : nullptr;
  if (said != nullptr && *said != '\0') return text + said;
  return text + "status " + std::to_string(status);
}

[[noreturn]] void fail(const tessera_adapter& table, tessera_status status) {
  const std::string text = reason(table, status);
  switch (status) {
    case tessera_invalid_argument:
      throw InvalidArgument("adapter", text);
    case tessera_unsupported:
      throw Unsupported(text);
    default:
      throw DeviceError(text);
  }
}

// As <tessera/adapter.h> wants it: it becomes part of the names of kernels, cases and files.
bool is_file_name(std::string_view name) noexcept {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
  return !name.empty() && name.find_first_not_of(kAllowed) == std::string_view::npos &&
         name != "." && name != "..";
}

// In a message, whatever bytes it has.
std::string printable(std::string text) {
  for (char& c : text) c = c >= ' ' && c <= '~' ? c : '?';
  return text;
}

}  // namespace

tessera_args to_c(const Args& args) noexcept {
  tessera_args c{};
  c.size = sizeof c;
  c.query = to_c(args.query);
  c.key = to_c(args.key);
  c.value = to_c(args.value);
  c.out = to_c(ConstTensor(args.out));
  c.lse = to_c(ConstTensor(args.lse));
  c.dout = to_c(args.dout);
  c.dlse = to_c(args.dlse);
  c.dq = to_c(ConstTensor(args.dq));
  c.dk = to_c(ConstTensor(args.dk));
  c.dv = to_c(ConstTensor(args.dv));
  c.dbias = to_c(ConstTensor(args.dbias));
  c.dsink = to_c(ConstTensor(args.dsink));
  c.has_scale = args.scale.has_value() ? 1 : 0;
  c.scale = args.scale.value_or(0);
  c.softcap = args.softcap;
  c.alibi_slopes = to_c(args.alibi_slopes);
  c.bias = to_c(args.bias);
  c.boolean_mask = to_c(args.boolean_mask);
  c.sinks = to_c(args.sinks);
  c.key_begin = to_c(args.key_begin);
  c.key_end = to_c(args.key_end);
  c.query_end = to_c(args.query_end);
  c.cu_seqlens_q = to_c(args.cu_seqlens_q);
  c.cu_seqlens_k = to_c(args.cu_seqlens_k);
  c.seed = args.seed;
  c.offset = args.offset;
  c.seed_device = args.seed_device;
  c.offset_device = args.offset_device;
  c.workspace = args.workspace.data;
  c.workspace_size = args.workspace.size;
  return c;
}

tessera_options to_c(const Options& options) noexcept {
  tessera_options c{};
  c.size = sizeof c;
  const Mask& mask = options.mask;
  if (mask.alignment()) {
    c.alignment = *mask.alignment() == Alignment::TopLeft ? tessera_top_left : tessera_bottom_right;
    const bool causal = !mask.left() && mask.right() == 0;
    c.mask = causal ? tessera_mask_causal : tessera_mask_window;
    if (!causal) {
      c.window_left = mask.left().value_or(tessera_unbounded);
      c.window_right = mask.right().value_or(tessera_unbounded);
    }
  }
  c.dropout = options.dropout;
  c.accumulate = static_cast<tessera_accumulate>(options.accumulate);
  c.deterministic = options.deterministic ? 1 : 0;
  c.batch_invariant = options.batch_invariant ? 1 : 0;
  c.max_seq_q = options.max_seq_q;
  c.max_seq_k = options.max_seq_k;
  return c;
}

Adapter::Adapter(const std::string& path) {
  // With a slash, so that the loader looks nowhere else.
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  const auto refuse = [&](const std::string& text) {
    throw std::runtime_error("adapter " + (path.empty() ? "''" : path) + ": " + text);
  };
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse(::dlerror());
  void* const symbol = ::dlsym(library, "tessera_adapter_table");
  if (symbol == nullptr) refuse("exports no tessera_adapter_table");
  const auto* const table = reinterpret_cast<decltype(&tessera_adapter_table)>(symbol)();
  if (table == nullptr || table->size < offsetof(tessera_adapter, forward))
    refuse("its table is null or shorter than any");
  std::memcpy(&table_, table, std::min(table->size, sizeof table_));
  if (table_.name == nullptr || table_.supports == nullptr) refuse("has no name or no supports");
  name_ = table_.name;
  if (!is_file_name(name_)) {
    refuse("its name is '" + printable(name_) +
           "'; must be a file name of letters, digits, '-', '_' and '.'");
  }
}

bool Adapter::has(Operation operation) const noexcept {
  return function_of(table_, operation) != nullptr;
}

Support Adapter::supports(Operation operation, const Args& args, const Options& options) const {
  if (function_of(table_, operation) == nullptr)
    return {Support::Status::Unsupported, name_ + " has no such function"};
  const tessera_args c_args = to_c(args);
  const tessera_options c_options = to_c(options);
  const tessera_status status =
      table_.supports(static_cast<tessera_operation>(operation), &c_args, &c_options);
  if (status == tessera_ok) return {};
  return {Support::Status::Unsupported, reason(table_, status)};
}

void Adapter::call(Operation operation, const Args& args, const Options& options,
                   const Stream& stream) const {
  const Function function = function_of(table_, operation);
  if (function == nullptr) throw Unsupported(name_ + " has no such function");
  const tessera_args c_args = to_c(args);
  const tessera_options c_options = to_c(options);
  const tessera_stream c_stream = to_c(stream);
  const tessera_status status = function(&c_args, &c_options, &c_stream);
  if (status != tessera_ok) fail(table_, status);
}

}  // namespace tessera::bench
