#include "tools/command/call.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <tessera/error.hpp>

#include "tools/command/failure.hpp"
#include "tools/command/memory.hpp"
#include "tools/command/progress.hpp"

namespace tessera::tools {
namespace {

/// Work that takes some 0.2 s on a fast core: parts smaller than this would cost more than they
/// tell.
constexpr double kWorkOfAPart = 2e10;
constexpr double kMostParts = 100;

std::size_t bytes_of(const Inputs& inputs, const std::vector<std::int64_t>& shape,
                     io::Element element) {
  const std::optional<std::int64_t> bytes = io::byte_size(shape, element);
  if (!bytes)
    throw BadInput(
        fmt::format("{}: an output of shape {} overflows", inputs.name, io::to_string(shape)));
  return static_cast<std::size_t>(*bytes);
}

/// The library's arguments under the names that tensors have in files: "mask.extent.dim".
std::string with_names_of_tensors(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames{
      {{"query.", "q."}, {"key.", "k."}, {"value.", "v."}, {"boolean_mask.", "mask."}}};
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (const auto& [argument, tensor] : kNames) {
    for (std::size_t at = 0; (at = text.find(argument, at)) != std::string::npos; ++at) {
      const std::size_t end = at + argument.size();
      const bool begins = at == 0 || (!in_word(text[at - 1]) && text[at - 1] != '_');
      if (begins && end < text.size() && in_word(text[end]))
        text.replace(at, argument.size(), tensor);
    }
  }
  return text;
}

/// What the user has to change: no file, if it is the environment.
template <class Error>
[[noreturn]] void rethrow(const Inputs& inputs, const std::exception& error) {
  const std::string_view text = error.what();
  if (text.starts_with("TESSERA_")) throw Error(std::string(text));
  throw Error(fmt::format("{}: {}", inputs.file_of(text), with_names_of_tensors(error.what())));
}

/// What `body` gives, with the name of the file that is meant in front of whatever the library
/// says.
template <class Body>
auto naming_the_file(const Inputs& inputs, const Body& body) {
  try {
    return body();
  } catch (const InvalidArgument& error) {
    rethrow<BadInput>(inputs, error);
  } catch (const Unsupported& error) {
    rethrow<Unsupported>(inputs, error);
  }
}

Plan plan_for(const Inputs& inputs, const Args& args) {
  return naming_the_file(inputs, [&] { return tessera::plan(describe(args, inputs.options)); });
}

/// Before anything is allocated, so that wrong shapes cost nothing.
Plan plan_on_host(const Inputs& inputs) {
  Args args = inputs.args;
  args.out = inputs.out(nullptr);
  return plan_for(inputs, args);
}

}  // namespace

DeviceCall::DeviceCall(const Inputs& inputs, double more_bytes)
    : inputs_(inputs), args_(inputs.args), plan_(plan_on_host(inputs)) {
  upload(inputs, more_bytes);
  plan_ = plan_for(inputs, args_);
}

void DeviceCall::upload(const Inputs& inputs, double more_bytes) {
  double bytes = 0;
  for (const auto& [name, array] : inputs.arrays) bytes += static_cast<double>(array.bytes.size());
  const io::Element element = element_of(args_.query.dtype);
  const std::size_t out_bytes = bytes_of(inputs, inputs.out_shape(), element);
  const std::size_t lse_bytes = bytes_of(inputs, inputs.lse_shape(), io::Element::f32);
  // A copy of the inputs and two of the outputs are still to come.
  require_memory(inputs.name, bytes + 2 * static_cast<double>(out_bytes + lse_bytes) + more_bytes);

  std::map<const void*, const void*> on_device{{nullptr, nullptr}};
  for (const auto& [name, array] : inputs.arrays) {
    Buffer& buffer = buffers_.emplace_back(array.bytes.size());
    copy(buffer.data(), array.bytes.data(), array.bytes.size());
    on_device[array.bytes.data()] = buffer.data();
  }
  for (ConstTensor Args::* tensor : {&Args::query, &Args::key, &Args::value, &Args::alibi_slopes,
                                     &Args::bias, &Args::boolean_mask, &Args::sinks}) {
    (args_.*tensor).data = on_device.at((args_.*tensor).data);
  }
  for (ConstVector Args::* vector : {&Args::key_begin, &Args::key_end, &Args::query_end,
                                     &Args::cu_seqlens_q, &Args::cu_seqlens_k}) {
    (args_.*vector).data = on_device.at((args_.*vector).data);
  }
  args_.out = inputs.out(buffers_.emplace_back(out_bytes).data());
  args_.lse = inputs.lse(buffers_.emplace_back(lse_bytes).data());
  if (inputs.rows() < args_.query.extent.seq) {  // rows of no segment, which nothing writes
    const std::vector<std::byte> zeros(out_bytes);
    const std::vector<float> nothing(lse_bytes / sizeof(float), -HUGE_VALF);
    copy(args_.out.data, zeros.data(), out_bytes);
    copy(args_.lse.data, nothing.data(), lse_bytes);
    Stream{}.synchronize();
  }
}

void DeviceCall::compute(std::int64_t parts, Progress& progress) {
  if (Progress::visible() && parts > 1) {
    execute_in_slices(plan_, args_, slices_of(args_, inputs_.options, parts), [&](double done) {
      Stream{}.synchronize();
      progress.set(done);
    });
  } else {
    execute(plan_, args_);
  }
  Stream{}.synchronize();
}

double DeviceCall::run() {
  using Clock = std::chrono::steady_clock;
  const auto parts = static_cast<std::int64_t>(std::min(work_of(args_) / kWorkOfAPart, kMostParts));
  const auto start = Clock::now();
  {
    Progress progress("attention");
    naming_the_file(inputs_, [&] { compute(parts, progress); });
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

io::Array DeviceCall::out() const {
  io::Array array{element_of(args_.out.dtype), inputs_.out_shape(), {}};
  array.bytes.resize(bytes_of(inputs_, array.shape, array.element));
  copy(array.bytes.data(), args_.out.data, array.bytes.size());
  Stream{}.synchronize();
  return array;
}

io::Array DeviceCall::lse() const {
  io::Array array{io::Element::f32, inputs_.lse_shape(), {}};
  array.bytes.resize(bytes_of(inputs_, array.shape, array.element));
  copy(array.bytes.data(), args_.lse.data, array.bytes.size());
  Stream{}.synchronize();
  return array;
}

}  // namespace tessera::tools
