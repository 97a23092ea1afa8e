#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <tessera/info.hpp>

#include "reference/number.hpp"
#include "tools/command/call.hpp"
#include "tools/command/failure.hpp"
#include "tools/command/subcommands.hpp"
#include "tools/io/error.hpp"
#include "tools/io/npy.hpp"
#include "tools/io/safetensors.hpp"
#include "tools/io/signals.hpp"

namespace tessera::tools {
namespace {

namespace fs = std::filesystem;

/// Where the results go: one .safetensors with both, or X.npy with out and X.lse.npy beside it.
struct Destination {
  fs::path out;
  fs::path lse;  ///< empty for .safetensors

  explicit Destination(const std::string& output) : out(output) {
    if (out.extension() == ".npy") {
      lse = out;
      lse.replace_extension(".lse.npy");
    } else if (out.extension() != ".safetensors") {
      throw BadInput(fmt::format("--output: is '{}'; must end in .safetensors or .npy", output));
    }
  }

  std::vector<fs::path> files() const {
    return lse.empty() ? std::vector{out} : std::vector{out, lse};
  }
};

/// What can be known to fail is refused before the work.
void check_destination(const Destination& destination, const AttentionFlags& flags) {
  for (const fs::path& file : destination.files()) {
    for (const std::string& input : flags.inputs) {
      if (io::same_file(file, input))
        throw BadInput(fmt::format("{}: is an input; is not overwritten", file.string()));
    }
    io::check_writable(file);
  }
}

io::Metadata metadata_of(const Inputs& inputs, std::string_view kernel) {
  const BuildInfo build = build_info();
  return {{"made_by", "tessera " + to_string(build.version) + " run"},
          {"input", fs::path(inputs.name).filename().string()},
          {"layout", std::string(to_string(inputs.layout))},
          {"shape", describe_shape(inputs)},
          {"computes", describe_options(inputs)},
          {"backend", std::string(build.backend)},
          {"kernel", std::string(kernel)}};
}

void write(const Destination& destination, const io::Array& out, const io::Array& lse,
           const io::Metadata& metadata) {
  if (destination.lse.empty()) {
    io::write_safetensors(destination.out, {{"out", out}, {"lse", lse}}, metadata);
    return;
  }
  io::AtomicFile out_file(destination.out);
  io::AtomicFile lse_file(destination.lse);
  io::write_npy(out_file, out);
  io::write_npy(lse_file, lse);
  out_file.flush();
  lse_file.flush();
  const io::SignalsWait until_both_are_there;
  lse_file.commit();
  out_file.commit();
}

std::int64_t count_nan(const io::Array& array, DType dtype) {
  const auto count = static_cast<std::int64_t>(array.bytes.size()) / size_of(dtype);
  std::int64_t nan = 0;
  for (std::int64_t i = 0; i < count; ++i)
    nan += std::isnan(reference::load(dtype, array.bytes.data(), i)) ? 1 : 0;
  return nan;
}

}  // namespace

void describe_call(const Inputs& inputs, const std::string& kernel, Report& report) {
  const Extents& q = inputs.args.query.extent;
  const Extents& k = inputs.args.key.extent;
  const DeviceInfo device = device_info();
  report.json["input"] = inputs.name;
  report.json["shape"] = {{"batch", q.batch},
                          {"head_q", q.head},
                          {"head_k", k.head},
                          {"seq_q", q.seq},
                          {"seq_k", k.seq},
                          {"head_dim", q.dim},
                          {"head_dim_v", inputs.args.value.extent.dim}};
  if (inputs.packed()) report.json["shape"]["segments"] = inputs.args.cu_seqlens_q.size - 1;
  report.json["dtype"] = tessera::to_string(inputs.args.query.dtype);
  report.json["layout"] = to_string(inputs.layout);
  report.json["computes"] = describe_options(inputs);
  report.json["kernel"] = kernel;
  report.json["threads"] = device.threads;
  report.line("input", inputs.name);
  report.line("shape", describe_shape(inputs));
  report.line("computes", describe_options(inputs));
  report.line("kernel",
              fmt::format("{} on {}, {}", kernel, device.space, counted(device.threads, "thread")));
  if (!inputs.unused.empty()) {
    std::string names;
    for (const std::string& name : inputs.unused)
      names += (names.empty() ? "" : ", ") + io::printable(name);
    report.json["unused"] = inputs.unused;
    report.line("unused", fmt::format("{}: no part of attention's input", names));
  }
}

Report run(const AttentionFlags& flags, const std::string& output) {
  const Destination destination(output);
  check_destination(destination, flags);
  const Inputs inputs = read_inputs(flags);
  if (!destination.lse.empty() && io::descr_of(element_of(inputs.args.query.dtype)).empty()) {
    throw BadInput(
        fmt::format("{}: .npy cannot hold bf16; write .safetensors, or convert with --dtype fp32",
                    destination.out.string()));
  }
  DeviceCall call(inputs);
  const double seconds = call.run();
  const std::string kernel(call.plan().kernel());
  const io::Array out = call.out();
  const io::Array lse = call.lse();
  write(destination, out, lse, metadata_of(inputs, kernel));

  Report report;
  report.json["command"] = "run";
  describe_call(inputs, kernel, report);
  report.json["milliseconds"] = seconds * 1e3;
  report.json["output"] = destination.out.string();
  if (!destination.lse.empty()) report.json["output_lse"] = destination.lse.string();
  if (const std::int64_t nan = count_nan(out, inputs.args.query.dtype); nan > 0) {
    report.json["nan"] = nan;
    report.line("note", fmt::format("{} of out {} NaN: is there NaN in the input, or --scale too "
                                    "large for float32?",
                                    counted(nan, "number"), nan == 1 ? "is" : "are"));
  }
  report.line("took", fmt::format("{:.3f} ms", seconds * 1e3));
  const auto shape = [](const io::Array& a) {
    return fmt::format("{} {}", io::name_of(a.element), io::to_string(a.shape));
  };
  if (destination.lse.empty()) {
    report.line("wrote", fmt::format("{}: out {}, lse {}", destination.out.string(), shape(out),
                                     shape(lse)));
  } else {
    report.line("wrote", fmt::format("{}: out {}", destination.out.string(), shape(out)));
    report.line("wrote", fmt::format("{}: lse {}", destination.lse.string(), shape(lse)));
  }
  return report;
}

}  // namespace tessera::tools
