#include "tests/amdgpu/isa/disassembly.hpp"

#include <fmt/core.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/amdgpu/isa/opcodes.hpp"
#include "tests/amdgpu/isa/parse.hpp"

#ifndef TESSERA_AMDGPU_OBJDUMP
#define TESSERA_AMDGPU_OBJDUMP "llvm-objdump-22"
#endif

namespace tessera::amdgpu {
namespace {

void unimplemented(Wave&, const Instruction& in) {
  throw std::runtime_error(fmt::format("not implemented: {}", in.problem));
}

std::string disassembler() {
  const char* named = std::getenv("TESSERA_AMDGPU_OBJDUMP");
  return named && *named ? named : TESSERA_AMDGPU_OBJDUMP;
}

// A file that is gone with its owner.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::vector<u8>& bytes)
      : path_(std::filesystem::temp_directory_path() / "tessera_code_object_XXXXXX") {
    const int file = ::mkstemp(path_.data());
    if (file < 0) throw std::runtime_error(fmt::format("can't make a file {}", path_));
    const auto written = ::write(file, bytes.data(), bytes.size());
    ::close(file);
    if (written != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error(fmt::format("can't write {}", path_));
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string run_disassembler(const std::vector<u8>& file) {
  const TemporaryFile temporary(file);
  const std::string command = fmt::format("{} -d {}", disassembler(), temporary.path());
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error(fmt::format("can't run {}", command));
  std::string text;
  std::array<char, 65536> buffer;
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    text.append(buffer.data(), got);
  if (::pclose(pipe) != 0)
    throw std::runtime_error(
        fmt::format("{} failed; TESSERA_AMDGPU_OBJDUMP names the llvm-objdump to use", command));
  return text;
}

// The counts of "vmcnt(0) lgkmcnt(1)", or of the number that gfx12's instructions have.
void read_wait(std::string_view rest, Generation generation, Instruction& into) {
  WaitCounts& wait = into.wait;
  const std::string& name = into.opcode;
  if (name == "s_waitcnt") {
    if (rest == "0" || rest == "0x0") {
      wait.vector_loads = wait.lds = 0;
      return;
    }
    for (const auto part : split(rest, ' ')) {
      const auto open = part.find('(');
      if (open == part.npos || part.back() != ')')
        throw Unknown(fmt::format("'{}' is no counter", part));
      const int count =
          static_cast<int>(parse_integer(part.substr(open + 1, part.size() - open - 2)));
      const auto counter = part.substr(0, open);
      if (counter == "vmcnt")
        wait.vector_loads = count;
      else if (counter == "lgkmcnt")
        wait.lds = count;
      else if (counter != "expcnt")
        throw Unknown(fmt::format("the counter '{}' is unknown", counter));
    }
    return;
  }
  const auto comma = rest.rfind(' ');  // "null, 0x0"
  const int count =
      static_cast<int>(parse_integer(comma == rest.npos ? rest : rest.substr(comma + 1)));
  if (name == "s_waitcnt_vscnt" || name == "s_wait_storecnt") wait.vector_stores = count;
  if (name == "s_waitcnt_vmcnt" || name == "s_wait_loadcnt") wait.vector_loads = count;
  if (name == "s_waitcnt_lgkmcnt" || name == "s_wait_dscnt") wait.lds = count;
  if (name == "s_wait_kmcnt") wait.scalar = count;
  if (name == "s_wait_loadcnt_dscnt") wait.vector_loads = count >> 8, wait.lds = count & 63;
  if (name == "s_wait_storecnt_dscnt") wait.vector_stores = count >> 8, wait.lds = count & 63;
  static_cast<void>(generation);
}

void note_registers(const Operand& operand, RegisterSet& set) {
  if (operand.kind == OperandKind::Vector) set.add_vector(operand.index, operand.count);
  if (operand.kind == OperandKind::Scalar) set.add_scalar(operand.index, operand.count);
}

// Operands that no text shows.
void note_implicit(Instruction& in) {
  if (in.opcode.starts_with("v_div_fmas") || in.opcode.find("vccz") != std::string::npos ||
      in.opcode.find("vccnz") != std::string::npos)
    in.touched.add_scalar(kVcc, 2);
}

bool takes_no_operands(std::string_view name) {
  return name.starts_with("s_waitcnt") || name.starts_with("s_wait_") || name == "s_delay_alu" ||
         name == "s_clause" || name == "s_sendmsg" || name == "s_set_gpr_idx_mode";
}

// Instructions with operands that are neither registers nor numbers: "hwreg(HW_REG_MODE)".
bool names_something_else(std::string_view name) {
  return name.starts_with("s_getreg") || name.starts_with("s_setreg") ||
         name.starts_with("s_sendmsg");
}

void read_operands(std::string_view rest, Instruction& in) {
  auto parts = split(rest, ',');
  std::vector<std::string_view> modifiers;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto words = split(trimmed(parts[i]), ' ');
    if (words.empty()) continue;
    if (in.count == in.operands.size()) throw Unknown("too many operands");
    std::size_t first = 0;
    Operand operand = parse_operand(words[0]);
    const bool only_modifiers = i == 0 && parts.size() == 1 && operand.kind == OperandKind::Text &&
                                !names_something_else(in.opcode);
    if (!only_modifiers && operand.kind == OperandKind::Text && !names_something_else(in.opcode))
      throw Unknown(fmt::format("the operand '{}' is not implemented", words[0]));
    if (!only_modifiers) {
      in.operands[in.count++] = std::move(operand);
      first = 1;
    }
    modifiers.insert(modifiers.end(), words.begin() + static_cast<std::ptrdiff_t>(first),
                     words.end());
  }
  for (const auto modifier : modifiers) parse_modifier(modifier, in);
}

Instruction decode_one(std::string_view text, const Target& target) {
  Instruction in;
  in.text = text;
  try {
    const auto space = text.find(' ');
    const auto mnemonic = text.substr(0, space);
    const auto rest = space == text.npos ? std::string_view{} : trimmed(text.substr(space));
    in.opcode = canonical_name(mnemonic, target.generation);
    in.is_load = in.opcode.find("_load_") != std::string::npos ||
                 in.opcode.starts_with("ds_read") || in.opcode.starts_with("ds_bpermute") ||
                 in.opcode.starts_with("ds_permute") || in.opcode.starts_with("ds_swizzle");
    in.handler = opcodes().find(in.opcode);
    if (!in.handler) throw Unknown(fmt::format("the opcode {}", in.opcode));
    if (takes_no_operands(in.opcode)) {
      if (in.opcode.starts_with("s_wait") && in.opcode != "s_wait_alu" &&
          in.opcode != "s_waitcnt_depctr" && in.opcode != "s_wait_idle" &&
          in.opcode != "s_wait_event")
        read_wait(rest, target.generation, in);
    } else {
      read_operands(rest, in);
    }
    in.is_dpp = in.dpp.kind != DppKind::None;
    in.modifiers.returns = in.modifiers.glc || in.modifiers.sc0;
  } catch (const Unknown& unknown) {
    in.handler = unimplemented;
    in.problem = fmt::format("{} (in: {})", unknown.what(), text);
  }
  for (int i = 0; i < in.count; ++i) note_registers(in[i], in.touched);
  if (in.count) note_registers(in[0], in.written);
  note_implicit(in);
  return in;
}

std::string_view without_comment(std::string_view line, u64& pc) {
  const auto comment = line.find("// ");
  if (comment == line.npos) return {};
  const auto colon = line.find(':', comment);
  pc = std::stoull(std::string(line.substr(comment + 3, colon - comment - 3)), nullptr, 16);
  return trimmed(line.substr(0, comment));
}

void resolve_branches(Program& program) {
  for (Instruction& in : program.instructions) {
    const bool jumps =
        (in.opcode == "s_branch" || in.opcode.starts_with("s_cbranch_")) && in.count == 1;
    if (!jumps || in[0].kind != OperandKind::Constant) continue;
    const auto at = program.index_at.find(
        in.pc + 4 + static_cast<u64>(static_cast<i64>(sign_extend(in[0].value, 16)) * 4));
    if (at != program.index_at.end()) {
      in.target = at->second;
    } else {
      in.handler = unimplemented;
      in.problem = fmt::format("a branch to no instruction (in: {})", in.text);
    }
  }
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  const auto take = [&](std::size_t end) {
    const auto part = text.substr(begin, end - begin);
    if (!trimmed(part).empty()) parts.push_back(part);
    begin = end + 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if (text[i] == ']' || text[i] == ')') --depth;
    if (text[i] == at && depth == 0) take(i);
  }
  take(text.size());
  return parts;
}

Instruction decode(std::string_view text, const Target& target) {
  const auto both = text.find(" :: ");
  if (both == text.npos) return decode_one(text, target);
  Instruction first = decode_one(trimmed(text.substr(0, both)), target);
  const Instruction second = decode_one(trimmed(text.substr(both + 4)), target);
  first.text = text;
  if (!second.problem.empty() && first.problem.empty()) {
    first.problem = second.problem;
    first.handler = unimplemented;
  }
  for (int i = 0; i < second.count; ++i) note_registers(second[i], first.touched);
  first.second.push_back(second);
  return first;
}

std::unique_ptr<Program> disassemble(const CodeObject& object) {
  if (!object.target())
    throw std::runtime_error(
        fmt::format("the code object is for machine {:#x}, which is none of {}", object.machine(),
                    target_names()));
  auto program = std::make_unique<Program>();
  program->target = object.target();
  program->base = reinterpret_cast<u64>(object.image());
  const std::string text = run_disassembler(object.file());
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const auto line = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    if (!line.starts_with('\t')) continue;
    u64 pc = 0;
    const auto instruction = without_comment(line, pc);
    if (instruction.empty()) continue;
    program->index_at[pc] = static_cast<u32>(program->instructions.size());
    program->instructions.push_back(decode(instruction, *program->target));
    program->instructions.back().pc = pc;
  }
  resolve_branches(*program);
  return program;
}

}  // namespace tessera::amdgpu
