#pragma once
// From a code object to decoded instructions, by way of the text that llvm-objdump prints.

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/amdgpu/isa/code_object.hpp"
#include "tests/amdgpu/isa/instruction.hpp"

namespace tessera::amdgpu {

struct Program {
  const Target* target = nullptr;
  u64 base = 0;  // host address of the image
  std::vector<Instruction> instructions{};
  std::unordered_map<u64, u32> index_at{};  // offset in the image -> index
};

// Decodes every instruction of the file. One that is not understood carries its problem and throws
// when executed.
std::unique_ptr<Program> disassemble(const CodeObject& object);

// One line's instruction without its address: "v_add_f32_e32 v0, 1.0, v1".
Instruction decode(std::string_view text, const Target& target);

}  // namespace tessera::amdgpu
