#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <tessera/info.hpp>
#include <tessera/plan.hpp>

#include "tools/command/subcommands.hpp"

namespace tessera::tools {
namespace {

constexpr const char* kNoKernel = ", which names no kernel of this build: nothing can be computed";

/// The smallest of problems that every kernel computes.
Problem plainest_problem(Operation operation) {
  const Extents extent{.batch = 1, .head = 1, .seq = 16, .dim = 64};
  const Tensor tensor = Tensor::bshd(nullptr, DType::fp32, extent);
  Args args{.query = tensor, .key = tensor, .value = tensor, .out = tensor};
  if (operation == Operation::backward) {
    args.lse = Tensor::lse(nullptr, extent.batch, extent.head, extent.seq);
    args.dout = args.dq = args.dk = args.dv = tensor;
  }
  return describe(args, {}, operation);
}

/// Whether TESSERA_KERNEL names a kernel of this build, of any operation. (What the machine cannot
/// run has a name too, and another reason.)
bool names_a_kernel() {
  for (const Operation operation : {Operation::forward, Operation::backward, Operation::decode}) {
    const Support support = supports(plainest_problem(operation));
    if (support.reason.find("names no kernel of ") == std::string::npos) return true;
  }
  return false;
}

}  // namespace

Report info() {
  const BuildInfo build = build_info();
  const std::string version = to_string(build.version);
  Report report;
  report.json = {{"command", "info"},
                 {"version", version},
                 {"commit", build.commit},
                 {"backend", build.backend},
                 {"toolkit", build.toolkit},
                 {"compiler", build.compiler},
                 {"build_type", build.build_type},
                 {"head_dims", build.head_dims},
                 {"devices", Json::array()}};
  report.line("tessera", fmt::format("{} (commit {})", version, build.commit));
  report.line("backend", fmt::format("{}, on {}", build.backend, build.toolkit));
  report.line("built", fmt::format("by {}, {}", build.compiler, build.build_type));
  std::string dims(build.head_dims);
  for (std::size_t at = 0; (at = dims.find(';', at)) != std::string::npos; ++at)
    dims.replace(at, 1, ", ");
  report.line("head_dim", fmt::format("multiples of 8; kernels are built for up to {}", dims));
  for (int i = 0; i < device_count(); ++i) {
    const DeviceInfo device = device_info(i);
    report.json["devices"].push_back({{"name", device.name},
                                      {"isa", device.isa},
                                      {"space", device.space},
                                      {"threads", device.threads},
                                      {"memory", device.memory}});
    report.line(fmt::format("device {}", i),
                fmt::format("{}: {}, {} with {}, {:.1f} GiB", device.name, device.isa, device.space,
                            counted(device.threads, "thread"),
                            static_cast<double>(device.memory) / (1 << 30)));
  }
  const char* kernel = std::getenv("TESSERA_KERNEL");
  if (kernel != nullptr && *kernel != '\0') {
    report.json["kernel_forced"] = kernel;
    const bool known = names_a_kernel();
    report.json["kernel_known"] = known;
    report.line("kernel", fmt::format("restricted to '{}' by TESSERA_KERNEL{}", kernel,
                                      known ? "" : kNoKernel));
  }
  return report;
}

}  // namespace tessera::tools
