// Shows what a code object consists of, as the simulated devices see it.
//
//   isa_run FILE [--kernel NAME]    kernels, and how often each opcode stands in the code
//   isa_run --check-opcodes FILE    status 1 if any instruction has no implementation
//   isa_run --bench FILE --kernel NAME --grid 64 --block 256 [--bytes N]
//                                   runs the kernel with buffers for its pointers and prints the
//                                   speed

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/amdgpu/isa/machine.hpp"

namespace tessera::amdgpu {
namespace {

struct Options {
  std::string file{}, kernel{};
  bool check = false, bench = false;
  u32 grid = 1, block = 256;
  u64 bytes = u64{1} << 22;
  int integer = 256;
};

std::vector<u8> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("can't read {}", path));
  return {std::istreambuf_iterator<char>(file), {}};
}

// Code ends where padding begins: nothing executes it.
bool is_padding(const Instruction& in) { return in.opcode == "s_code_end"; }

int check_opcodes(const Program& program, const std::string& file) {
  std::map<std::string, u64> unknown;
  for (const Instruction& in : program.instructions)
    if (!in.problem.empty() && !is_padding(in)) ++unknown[in.problem];
  for (const auto& [problem, count] : unknown)
    fmt::print("{}: {} times: {}\n", file, count, problem);
  if (unknown.empty())
    fmt::print("{}: all of {} instructions are implemented\n", file, program.instructions.size());
  return unknown.empty() ? 0 : 1;
}

// Indices of a kernel's instructions: from its entry to the next one's.
std::pair<u64, u64> range_of(const CodeObject& object, const std::string& name) {
  const auto at = object.kernels().find(name);
  if (at == object.kernels().end())
    throw std::runtime_error(fmt::format("{} is no kernel of the file", name));
  u64 end = ~u64{0};
  for (const auto& [other, kernel] : object.kernels())
    if (kernel.entry > at->second.entry) end = std::min(end, kernel.entry);
  return {at->second.entry, end};
}

void show(const CodeObject& object, const Program& program, const Options& options) {
  fmt::print("target {}\n", program.target->name);
  for (const auto& [name, kernel] : object.kernels())
    fmt::print(
        "kernel {}: {} vector registers, {} accumulators, {} scalar registers, {} bytes of LDS, {} "
        "private\n",
        name, kernel.vector_registers, kernel.accumulators, kernel.scalar_registers,
        kernel.lds_bytes, kernel.private_bytes);
  std::pair<u64, u64> range{0, ~u64{0}};
  if (!options.kernel.empty()) range = range_of(object, options.kernel);
  std::map<std::string, u64> counts;
  for (const Instruction& in : program.instructions)
    if (in.pc >= range.first && in.pc < range.second && !is_padding(in))
      ++counts[in.problem.empty() ? in.opcode : in.opcode + " (not implemented)"];
  for (const auto& [opcode, count] : counts) fmt::print("{:6} {}\n", count, opcode);
}

int bench(const CodeObject& object, const Program& program, const Options& options) {
  const auto at = object.kernels().find(options.kernel);
  if (at == object.kernels().end())
    throw std::runtime_error(
        fmt::format("--kernel is '{}'; must be one of the file's", options.kernel));
  const Kernel& kernel = at->second;
  std::vector<u8> arguments(kernel.kernarg_bytes);
  std::vector<std::vector<u8>> buffers;
  MemoryMap memory;
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind == "global_buffer") {
      buffers.emplace_back(options.bytes);
      const u64 address = reinterpret_cast<u64>(buffers.back().data());
      memory.add(address, options.bytes, true);
      std::memcpy(arguments.data() + argument.offset, &address, sizeof address);
    } else if (argument.kind == "by_value" && argument.size == 4) {
      std::memcpy(arguments.data() + argument.offset, &options.integer, 4);
    }
  }
  Settings settings = settings_from_environment();
  settings.threads = 1;
  const Launch launch{
      .grid = {options.grid, 1, 1}, .block = {options.block, 1, 1}, .arguments = arguments};
  const auto begin = std::chrono::steady_clock::now();
  const Statistics statistics = run_grid(program, kernel, object, launch, memory, settings);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("{} on {}: {} wave-instructions in {:.3f} s, {:.2f} million a second on one core\n",
             options.kernel, program.target->name, statistics.wave_instructions, seconds.count(),
             static_cast<double>(statistics.wave_instructions) / seconds.count() / 1e6);
  return 0;
}

int run(const Options& options) {
  const CodeObject object(read_file(options.file));
  const auto program = disassemble(object);
  if (options.check) return check_opcodes(*program, options.file);
  if (options.bench) return bench(object, *program, options);
  show(object, *program, options);
  return 0;
}

}  // namespace
}  // namespace tessera::amdgpu

int main(int argc, char** argv) {
  tessera::amdgpu::Options options;
  CLI::App app("Shows a code object as the simulated AMD devices see it");
  app.add_option("file", options.file, "a code object")->required();
  app.add_option("--kernel", options.kernel, "only this kernel");
  app.add_flag("--check-opcodes", options.check, "fail if an instruction has no implementation");
  app.add_flag("--bench", options.bench, "run the kernel and print the speed");
  app.add_option("--grid", options.grid, "workgroups");
  app.add_option("--block", options.block, "work-items a workgroup");
  app.add_option("--bytes", options.bytes, "of the buffer that each pointer gets, zeros");
  app.add_option("--integer", options.integer, "every argument of four bytes");
  CLI11_PARSE(app, argc, argv);
  try {
    return tessera::amdgpu::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
