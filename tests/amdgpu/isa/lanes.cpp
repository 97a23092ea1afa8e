#include "tests/amdgpu/isa/lanes.hpp"

#include "tests/amdgpu/isa/apertures.hpp"

namespace tessera::amdgpu {

u64 special_value64(const Wave& w, Special special) {
  switch (special) {
    case Special::Scc:
      return w.scc;
    case Special::Vccz:
      return w.mask(kVcc) == 0;
    case Special::Execz:
      return w.exec() == 0;
    case Special::SharedBase:
      return kSharedBase;
    case Special::SharedLimit:
      return kSharedBase + 0xffffffffu;
    case Special::PrivateBase:
      return kPrivateBase;
    case Special::PrivateLimit:
      return kPrivateBase + 0xffffffffu;
  }
  throw std::logic_error("a special operand without a value");
}

// Of an aperture a 32-bit operand reads the half that tells it from others.
u32 special_value(const Wave& w, Special special) {
  const u64 value = special_value64(w, special);
  return special <= Special::Execz ? static_cast<u32>(value) : static_cast<u32>(value >> 32);
}

u32 part_of(u32 value, Part part, bool extend) {
  if (part == Part::Dword) return value;
  const bool word = part >= Part::Word0;
  const int shift = word ? 16 * (static_cast<int>(part) - static_cast<int>(Part::Word0))
                         : 8 * static_cast<int>(part);
  const int bits = word ? 16 : 8;
  const u32 field = value >> shift & ((1u << bits) - 1);
  return extend ? static_cast<u32>(sign_extend(field, bits)) : field;
}

void select_parts(const Instruction& in, int at, const u32* from, Row& to) {
  const Part part = in.sdwa.source[at - 1];
  for (int l = 0; l < kLanes; ++l) to.lane[l] = part_of(from[l], part, in[at].extend);
}

void lanes64(Wave& w, const Instruction& in, int at, bool is_float, WideRow& out) {
  const Operand& operand = in[at];
  if (operand.kind == OperandKind::Vector) {
    if (in.is_dpp && at == 1) refuse(in, "dpp on 64 bits");
    const u32* low = w.vector[operand.index].lane;
    const u32* high = operand.count > 1 ? w.vector[operand.index + 1].lane : nullptr;
    for (int l = 0; l < kLanes; ++l)
      out.lane[l] = low[l] | (high ? static_cast<u64>(high[l]) << 32 : 0);
  } else {
    u64 value = scalar_value64(w, operand);
    const bool literal =
        operand.kind == OperandKind::Constant && !operand.is_float && operand.number != 0;
    if (is_float && literal) value <<= 32;
    for (u64& lane : out.lane) lane = value;
  }
  const u64 sign = u64{1} << 63;
  if (operand.absolute)
    for (u64& lane : out.lane) lane &= ~sign;
  if (operand.negate)
    for (u64& lane : out.lane) lane ^= sign;
}

void store_sdwa(Wave& w, const Instruction& in, Row& values) {
  const Sdwa& sdwa = in.sdwa;
  if (sdwa.destination != Part::Dword) {
    const bool word = sdwa.destination >= Part::Word0;
    const int shift =
        word ? 16 * (static_cast<int>(sdwa.destination) - static_cast<int>(Part::Word0))
             : 8 * static_cast<int>(sdwa.destination);
    const int bits = word ? 16 : 8;
    const u32 field = (1u << bits) - 1;
    const u32* old = w.vector[in[0].index].lane;
    for (int l = 0; l < kLanes; ++l) {
      const u32 part = values.lane[l] & field;
      if (sdwa.unused == Unused::Preserve)
        values.lane[l] = (old[l] & ~(field << shift)) | part << shift;
      else if (sdwa.unused == Unused::Extend)
        values.lane[l] = static_cast<u32>(sign_extend(part, bits)) << shift;
      else
        values.lane[l] = part << shift;
    }
  }
  store_row(w, in[0].index, values.lane);
}

void store16(Wave& w, const Instruction& in, int sources, bool keeps, Row& values) {
  if (in[0].kind != OperandKind::Vector) refuse(in, "a result that is no vector register");
  if (in.sdwa.used) return store_sdwa(w, in, values);
  const bool high = in[0].high || (in.modifiers.op_sel >> sources & 1);
  const bool gfx9 = w.group->target->generation == Generation::Gfx9;
  if (high || !gfx9 || (keeps && in.modifiers.op_sel)) {
    const u32* old = w.vector[in[0].index].lane;
    for (int l = 0; l < kLanes; ++l)
      values.lane[l] = high ? (old[l] & 0xffffu) | values.lane[l] << 16
                            : (old[l] & 0xffff0000u) | values.lane[l];
  }
  store_row(w, in[0].index, values.lane);
}

void store64(Wave& w, const Instruction& in, const WideRow& values) {
  if (in[0].kind != OperandKind::Vector) refuse(in, "a result that is no vector register");
  Row low, high;
  for (int l = 0; l < kLanes; ++l) {
    low.lane[l] = static_cast<u32>(values.lane[l]);
    high.lane[l] = static_cast<u32>(values.lane[l] >> 32);
  }
  store_row(w, in[0].index, low.lane);
  store_row(w, in[0].index + 1, high.lane);
}

}  // namespace tessera::amdgpu
