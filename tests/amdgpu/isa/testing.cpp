#include "tests/amdgpu/isa/testing.hpp"

#include <fmt/core.h>

#include <fstream>
#include <iterator>

#include "tests/amdgpu/isa/cross_lane.hpp"

namespace tessera::amdgpu::testing {

OneWave::OneWave(std::string_view target, u32 lds_bytes) : wave_(std::make_unique<Wave>()) {
  program_.target = find_target(target);
  group_.target = program_.target;
  group_.program = &program_;
  group_.memory = &memory_;
  group_.lds.resize(lds_bytes);
  group_.lds_size = lds_bytes;
  group_.lds_checker.reset(lds_bytes);
  wave_->group = &group_;
  wave_->size = program_.target->wave_size;
  wave_->lanes = wave_->size == 64 ? ~u64{0} : 0xffffffffu;
  std::memset(wave_->vector, 0, sizeof wave_->vector);
  std::memset(wave_->scalar, 0, sizeof wave_->scalar);
  wave_->set_pair(kExec, wave_->lanes);
}

void OneWave::run(std::string_view text) {
  const Instruction in = decode(text, *program_.target);
  if (!in.problem.empty()) throw std::runtime_error(in.problem);
  wave_->active = wave_->exec();
  wave_->pc = 1;
  if (in.is_dpp) select_lanes(*wave_, in);
  in.handler(*wave_, in);
}

CompiledKernels::CompiledKernels(const std::string& name, const std::string& target,
                                 const std::string& options) {
  const std::string path =
      fmt::format("{}/{}.{}.{}.co", TESSERA_AMDGPU_TEST_KERNELS, name, options, target);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(fmt::format("can't read {}", path));
  const std::vector<u8> bytes{std::istreambuf_iterator<char>(file), {}};
  object_ = std::make_unique<CodeObject>(bytes);
  program_ = disassemble(*object_);
}

void CompiledKernels::replace(std::size_t at, std::string_view text) {
  Instruction& in = program_->instructions.at(at);
  const u64 pc = in.pc;
  in = decode(text, *program_->target);
  in.pc = pc;
}

std::vector<std::size_t> CompiledKernels::find(const std::string& kernel,
                                               const std::string& opcode) const {
  std::vector<std::size_t> found;
  for (std::size_t i = program_->index_at.at(object_->kernels().at(kernel).entry);
       i < program_->instructions.size(); ++i) {
    const Instruction& in = program_->instructions[i];
    if (in.opcode == opcode) found.push_back(i);
    if (in.opcode == "s_endpgm") break;
  }
  return found;
}

Statistics CompiledKernels::run(const std::string& kernel, u32 grid, u32 block,
                                const std::vector<u8>& arguments, const Settings& settings,
                                u32 dynamic_lds) const {
  const Kernel& found = object_->kernels().at(kernel);
  std::vector<u8> segment(arguments);
  segment.resize(std::max<std::size_t>(segment.size(), found.kernarg_bytes));
  return run_grid(*program_, found, *object_,
                  {.grid = {grid, 1, 1},
                   .block = {block, 1, 1},
                   .dynamic_lds = dynamic_lds,
                   .arguments = segment},
                  memory_, settings);
}

}  // namespace tessera::amdgpu::testing
