// The C interface: each function translates its arguments, calls the C++ one and makes a status of
// what it throws.

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include <tessera/tessera.h>
#include <tessera/tessera.hpp>

#include "core/src/c_api_structs.hpp"
#include "core/src/text.hpp"
#include "core/src/validate.hpp"

// The texts are made with the plan, so that asking for them cannot fail.
struct tessera_plan {
  tessera::Plan plan;
  std::string kernel{plan.kernel()};
  std::string description = plan.describe();
};

struct tessera_buffer {
  tessera::Buffer buffer;
};

namespace {

using namespace tessera;

// What the C++ interface's texts call things, and this one.
struct Word {
  std::string_view cpp;
  std::string_view c;
};
constexpr Word kWords[] = {{"key_begin.size", "key_begin.count"},
                           {"key_end.size", "key_end.count"},
                           {"query_end.size", "query_end.count"},
                           {"cu_seqlens_q.size", "cu_seqlens_q.count"},
                           {"cu_seqlens_k.size", "cu_seqlens_k.count"},
                           {"workspace.data", "workspace"},
                           {"workspace.size", "workspace_size"},
                           {"Plan::workspace_size()", "tessera_plan_workspace_size"},
                           {"Plan::workspace_size", "tessera_plan_workspace_size"},
                           {"Args::workspace", "args.workspace"},
                           {"leave it default-constructed", "leave it all zero"},
                           {"Alignment::TopLeft", "tessera_top_left"},
                           {"Alignment::BottomRight", "tessera_bottom_right"},
                           {"Accumulate::fp32", "tessera_accumulate_fp32"},
                           {"Accumulate::fp16", "tessera_accumulate_fp16"},
                           {"an enumerator of DType", "a tessera_dtype"},
                           {"plan with a lower TensorSpec::alignment", "plan with such a pointer"}};

// Room for a text in this interface's words, cut between two characters of UTF-8 where it is too
// long. Constant initialised and without destructor: setting it cannot fail, and it outlives
// whatever else a thread has.
template <std::size_t Size>
struct Text {
  std::array<char, Size> characters{};

  void set(std::string_view text) noexcept {
    std::size_t size = 0;
    while (!text.empty()) {
      const auto* const word = std::find_if(std::begin(kWords), std::end(kWords),
                                            [&](const Word& w) { return text.starts_with(w.cpp); });
      const bool found = word != std::end(kWords);
      const std::string_view piece = found ? word->c : text.substr(0, 1);
      if (size + piece.size() > Size - 1) break;
      piece.copy(characters.data() + size, piece.size());
      size += piece.size();
      text.remove_prefix(found ? word->cpp.size() : 1);
    }
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
    for (char next = text.empty() ? '\0' : text.front(); size > 0 && continues(next);)
      next = characters[--size];
    characters[size] = '\0';
  }
};

struct LastError {
  Text<4096> text;
  Text<128> argument;
};
constinit thread_local LastError last_error;

tessera_status fail(tessera_status status, std::string_view text,
                    std::string_view argument = {}) noexcept {
  last_error.text.set(text);
  last_error.argument.set(argument);
  return status;
}

template <class Function>
tessera_status guarded(const Function& function) noexcept {
  try {
    function();
    return tessera_ok;
  } catch (const InvalidArgument& error) {
    return fail(tessera_invalid_argument, error.what(), error.argument());
  } catch (const Unsupported& error) {
    return fail(tessera_unsupported, error.what());
  } catch (const DeviceError& error) {
    return fail(tessera_device_error, error.what());
  } catch (const std::bad_alloc&) {
    return fail(tessera_out_of_memory, "the host has no memory left");
  } catch (const std::exception& error) {
    return fail(tessera_internal_error, error.what());
  } catch (...) {
    return fail(tessera_internal_error, "an exception that is not a std::exception");
  }
}

template <class Pointer>
void require(std::string_view name, Pointer pointer) {
  if (pointer == nullptr) detail::refuse(name, "null", "must not be");
}

Problem to_problem(tessera_operation operation, const tessera_args* args,
                   const tessera_options* options) {
  const Operation to = detail::to_operation(operation);
  const Args arguments = detail::to_args(args);
  const Options choices = detail::to_options(options);
  detail::validate_pointers_and_values(arguments, to);  // a Problem would not tell what is missing
  return describe(arguments, choices, to);
}

Extents to_extents(const int64_t* extent) { return {extent[0], extent[1], extent[2], extent[3]}; }

tessera_tensor dense(void* data, tessera_dtype dtype, const int64_t* extent,
                     const Strides& stride) {
  tessera_tensor tensor{};
  tensor.data = data;
  tensor.dtype = dtype;
  std::copy_n(extent, 4, tensor.extent);
  tensor.stride[0] = stride.batch;
  tensor.stride[1] = stride.head;
  tensor.stride[2] = stride.seq;
  tensor.stride[3] = stride.dim;
  return tensor;
}

// With a null character at their ends, which a string_view need not have.
struct BuildTexts {
  std::string backend, toolkit, compiler, build_type, head_dims, commit;
};

const BuildTexts& build_texts() {
  static const BuildTexts texts = [] {
    const BuildInfo info = build_info();
    return BuildTexts{.backend = std::string(info.backend),
                      .toolkit = std::string(info.toolkit),
                      .compiler = std::string(info.compiler),
                      .build_type = std::string(info.build_type),
                      .head_dims = std::string(info.head_dims),
                      .commit = std::string(info.commit)};
  }();
  return texts;
}

template <std::size_t Size>
void copy_text(std::string_view text, char (&to)[Size]) {
  Text<Size> cut;
  cut.set(text);
  std::copy_n(cut.characters.data(), Size, to);
}

}  // namespace

extern "C" {

const char* tessera_last_error() { return last_error.text.characters.data(); }
const char* tessera_last_error_argument() { return last_error.argument.characters.data(); }

const char* tessera_status_text(tessera_status status) {
  switch (status) {
    case tessera_ok:
      return "ok";
    case tessera_invalid_argument:
      return "invalid argument";
    case tessera_unsupported:
      return "unsupported";
    case tessera_device_error:
      return "device error";
    case tessera_out_of_memory:
      return "out of memory";
    case tessera_internal_error:
      return "internal error";
    default:
      return "unknown status";
  }
}

tessera_tensor tessera_bhsd(void* data, tessera_dtype dtype, const int64_t* extent) {
  return dense(data, dtype, extent, bhsd_strides(to_extents(extent)));
}

tessera_tensor tessera_bshd(void* data, tessera_dtype dtype, const int64_t* extent) {
  return dense(data, dtype, extent, bshd_strides(to_extents(extent)));
}

size_t tessera_size_of(tessera_dtype dtype) {
  if (dtype < 0 || dtype > tessera_uint8) return 0;
  return static_cast<size_t>(size_of(static_cast<DType>(dtype)));
}

tessera_status tessera_forward(const tessera_args* args, const tessera_options* options,
                               const tessera_stream* stream) {
  return guarded([&] {
    forward(detail::to_args(args), detail::to_options(options), detail::to_stream(stream));
  });
}

tessera_status tessera_backward(const tessera_args* args, const tessera_options* options,
                                const tessera_stream* stream) {
  return guarded([&] {
    backward(detail::to_args(args), detail::to_options(options), detail::to_stream(stream));
  });
}

tessera_status tessera_decode(const tessera_args* args, const tessera_options* options,
                              const tessera_stream* stream) {
  return guarded([&] {
    decode(detail::to_args(args), detail::to_options(options), detail::to_stream(stream));
  });
}

tessera_status tessera_supports(tessera_operation operation, const tessera_args* args,
                                const tessera_options* options) {
  return guarded([&] { static_cast<void>(plan(to_problem(operation, args, options))); });
}

tessera_status tessera_plan_create(tessera_plan** plan, tessera_operation operation,
                                   const tessera_args* args, const tessera_options* options) {
  return guarded([&] {
    require("plan", plan);
    *plan = nullptr;
    *plan = new tessera_plan{tessera::plan(to_problem(operation, args, options))};
  });
}

void tessera_plan_destroy(tessera_plan* plan) { delete plan; }

tessera_status tessera_plan_execute(const tessera_plan* plan, const tessera_args* args,
                                    const tessera_stream* stream) {
  return guarded([&] {
    require("plan", plan);
    execute(plan->plan, detail::to_args(args), detail::to_stream(stream));
  });
}

size_t tessera_plan_workspace_size(const tessera_plan* plan) {
  return plan != nullptr ? plan->plan.workspace_size() : 0;
}

int64_t tessera_plan_splits(const tessera_plan* plan) {
  return plan != nullptr ? plan->plan.splits() : 0;
}

double tessera_plan_realised_dropout(const tessera_plan* plan) {
  return plan != nullptr ? plan->plan.realised_dropout() : 0;
}

const char* tessera_plan_kernel(const tessera_plan* plan) {
  return plan != nullptr ? plan->kernel.c_str() : "";
}

const char* tessera_plan_describe(const tessera_plan* plan) {
  return plan != nullptr ? plan->description.c_str() : "";
}

tessera_status tessera_buffer_create(tessera_buffer** buffer, size_t bytes, int32_t device) {
  return guarded([&] {
    require("buffer", buffer);
    *buffer = nullptr;
    *buffer = new tessera_buffer{Buffer(bytes, device)};
  });
}

void tessera_buffer_destroy(tessera_buffer* buffer) { delete buffer; }

void* tessera_buffer_data(tessera_buffer* buffer) {
  return buffer != nullptr ? buffer->buffer.data() : nullptr;
}

size_t tessera_buffer_size(const tessera_buffer* buffer) {
  return buffer != nullptr ? buffer->buffer.size() : 0;
}

tessera_status tessera_copy(void* destination, const void* source, size_t bytes,
                            const tessera_stream* stream) {
  return guarded([&] { copy(destination, source, bytes, detail::to_stream(stream)); });
}

tessera_status tessera_synchronize(const tessera_stream* stream) {
  return guarded([&] { detail::to_stream(stream).synchronize(); });
}

const char* tessera_version() {
#define TESSERA_TEXT_OF(number) #number
#define TESSERA_TEXT(number) TESSERA_TEXT_OF(number)
  return TESSERA_TEXT(TESSERA_VERSION_MAJOR) "." TESSERA_TEXT(
      TESSERA_VERSION_MINOR) "." TESSERA_TEXT(TESSERA_VERSION_PATCH);
}

tessera_status tessera_build_info(tessera_build* build) {
  return guarded([&] {
    const BuildTexts& texts = build_texts();
    detail::write_struct<tessera_build>("build",
                                        {.size = 0,
                                         .version = tessera_version(),
                                         .backend = texts.backend.c_str(),
                                         .toolkit = texts.toolkit.c_str(),
                                         .compiler = texts.compiler.c_str(),
                                         .build_type = texts.build_type.c_str(),
                                         .head_dims = texts.head_dims.c_str(),
                                         .commit = texts.commit.c_str()},
                                        build);
  });
}

tessera_status tessera_device_count(int32_t* count) {
  return guarded([&] {
    require("count", count);
    *count = device_count();
  });
}

tessera_status tessera_device_info(int32_t device, tessera_device* info) {
  return guarded([&] {
    const DeviceInfo found = device_info(device);
    tessera_device result{};
    copy_text(found.name, result.name);
    copy_text(found.isa, result.isa);
    copy_text(found.space, result.space);
    result.threads = found.threads;
    result.memory = found.memory;
    detail::write_struct("info", result, info);
  });
}

}  // extern "C"
