// s_load_* and s_buffer_load_*.

#include "tests/amdgpu/isa/memory.hpp"

namespace tessera::amdgpu {
namespace {

void copy_words(Wave& w, const Instruction& in, u64 address, int words, int present) {
  if (address % 4) address &= ~u64{3};  // the lowest bits are ignored
  u32 values[16] = {};
  if (present > 0) {
    const u8* from = host_memory(w, in, -1, address, 4 * present, false);
    std::memcpy(values, from, static_cast<std::size_t>(present) * 4);
  }
  if (in[0].kind == OperandKind::Null) return;
  for (int i = 0; i < words; ++i) w.scalar[in[0].index + i] = values[i];
  note_pending(w, scalar_counter(w), in[0].index, words, true);
}

u64 offset_of(const Wave& w, const Instruction& in, int at) {
  u64 offset = static_cast<u64>(static_cast<i64>(in.modifiers.offset));
  if (in.count <= at) return offset;
  const Operand& operand = in[at];
  return offset + (operand.kind == OperandKind::Constant
                       ? static_cast<u64>(static_cast<i64>(operand.value64))
                       : scalar_value(w, operand));
}

template <int kWords>
void load(Wave& w, const Instruction& in) {
  copy_words(w, in, w.pair(in[1].index) + offset_of(w, in, 2), kWords, kWords);
}

template <int kWords>
void buffer_load(Wave& w, const Instruction& in) {
  const u32* descriptor = &w.scalar[in[1].index];
  const u64 base = descriptor[0] | static_cast<u64>(descriptor[1] & 0xffff) << 32;
  const u32 stride = descriptor[1] >> 16 & 0x3fff;
  const u64 size = stride ? static_cast<u64>(stride) * descriptor[2] : descriptor[2];
  const u64 offset = offset_of(w, in, 2) & ~u64{3};
  const int present =
      offset >= size ? 0 : static_cast<int>(std::min<u64>(kWords, (size - offset) / 4));
  copy_words(w, in, base + offset, kWords, present);
}

}  // namespace

void register_scalar_memory(Opcodes& t) {
  t.add("s_load_dword", load<1>);
  t.add("s_load_dwordx2", load<2>);
  t.add("s_load_dwordx3", load<3>);
  t.add("s_load_dwordx4", load<4>);
  t.add("s_load_dwordx8", load<8>);
  t.add("s_load_dwordx16", load<16>);
  t.add("s_buffer_load_dword", buffer_load<1>);
  t.add("s_buffer_load_dwordx2", buffer_load<2>);
  t.add("s_buffer_load_dwordx3", buffer_load<3>);
  t.add("s_buffer_load_dwordx4", buffer_load<4>);
  t.add("s_buffer_load_dwordx8", buffer_load<8>);
  t.add("s_buffer_load_dwordx16", buffer_load<16>);
}

}  // namespace tessera::amdgpu
