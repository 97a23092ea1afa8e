#pragma once
// The table of implemented instructions.

#include <string>
#include <string_view>
#include <unordered_map>

#include "tests/amdgpu/isa/instruction.hpp"
#include "tests/amdgpu/isa/target.hpp"

namespace tessera::amdgpu {

class Opcodes {
 public:
  void add(std::string name, Handler handler) { handlers_[std::move(name)] = handler; }
  Handler find(const std::string& name) const {
    const auto at = handlers_.find(name);
    return at == handlers_.end() ? nullptr : at->second;
  }

 private:
  std::unordered_map<std::string, Handler> handlers_{};
};

const Opcodes& opcodes();

// The name under which an instruction stands in the table: without the suffix of its encoding, and
// what gfx11 and gfx12 renamed under its older name.
std::string canonical_name(std::string_view mnemonic, Generation generation);

void register_scalar(Opcodes& table);
void register_scalar_memory(Opcodes& table);
void register_control(Opcodes& table);
void register_vector_integer(Opcodes& table);
void register_vector_float(Opcodes& table);
void register_vector_half(Opcodes& table);
void register_vector_packed(Opcodes& table);
void register_vector_convert(Opcodes& table);
void register_vector_compare(Opcodes& table);
void register_vector_wide(Opcodes& table);
void register_division(Opcodes& table);
void register_lanes(Opcodes& table);
void register_matrix(Opcodes& table);
void register_global(Opcodes& table);
void register_buffer(Opcodes& table);
void register_atomics(Opcodes& table);
void register_lds(Opcodes& table);

}  // namespace tessera::amdgpu
