#pragma once
// The pieces of an instruction's text.

#include <string_view>
#include <vector>

#include "tests/amdgpu/isa/instruction.hpp"

namespace tessera::amdgpu {

struct Unknown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "a, b c:[d,e] f" parted at commas or at spaces that no bracket encloses.
std::vector<std::string_view> split(std::string_view text, char at);
std::string_view trimmed(std::string_view text);

// Throw Unknown.
Operand parse_operand(std::string_view text);
void parse_modifier(std::string_view text, Instruction& into);
i64 parse_integer(std::string_view text);

}  // namespace tessera::amdgpu
