#pragma once
/// What the command can do. Each throws what main() turns into one line and an exit status.

#include <optional>
#include <string>

#include "tools/command/flags.hpp"
#include "tools/command/inputs.hpp"
#include "tools/command/report.hpp"

namespace tessera::tools {

/// This build, and the device it runs on.
Report info();

/// Attention on a file's tensors, written to `output`.
Report run(const AttentionFlags& flags, const std::string& output);

/// Attention on a file's tensors, compared with the float64 reference and with the answers that the
/// file holds.
Report check(const AttentionFlags& flags);

/// How fast attention is, and how much memory it takes. The JSON document goes to the file `output`
/// too, if there is one: X.json.
Report bench(const BenchFlags& flags, const std::optional<std::string>& output);

/// Fields that `run` and `check` share: file, shapes, options, kernel.
void describe_call(const Inputs& inputs, const std::string& kernel, Report& report);

}  // namespace tessera::tools
