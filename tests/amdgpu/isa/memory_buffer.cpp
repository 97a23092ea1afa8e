// buffer_* loads and stores: addresses and bounds come from a descriptor in four scalar registers.

#include "tests/amdgpu/isa/apertures.hpp"
#include "tests/amdgpu/isa/memory.hpp"

namespace tessera::amdgpu {
namespace {

struct Descriptor {
  u64 base = 0;
  u32 stride = 0, records = 0, word3 = 0;
  bool swizzled = false;
};

Descriptor read_descriptor(const Wave& w, const Instruction& in, int at) {
  if (in[at].kind != OperandKind::Scalar || in[at].count != 4)
    refuse(in, "a descriptor that is not four registers");
  const u32* words = &w.scalar[in[at].index];
  Descriptor d;
  d.base = words[0] | static_cast<u64>(words[1] & 0xffff) << 32;
  d.stride = words[1] >> 16 & 0x3fff;
  d.records = words[2];
  d.word3 = words[3];
  const bool gfx9 = w.group->target->generation == Generation::Gfx9;
  d.swizzled = gfx9 ? (words[1] >> 31 & 1) || (words[3] >> 23 & 1) : (words[1] >> 30 & 3) != 0;
  return d;
}

// Bytes that the buffer has from the lane's offset on; none if its index is out of range.
i64 room_at(const Wave& w, const Descriptor& d, u64 index, u64 offset, u64 scalar, bool indexed) {
  const bool gfx9 = w.group->target->generation == Generation::Gfx9;
  if (d.stride && indexed)  // structured: as many records as `records` says
    return index < d.records ? 1 << 20 : 0;
  if (!gfx9) {
    const u32 select = d.word3 >> 28 & 3;
    if (select == 2) return d.records ? 1 << 20 : 0;
    return static_cast<i64>(d.records) - static_cast<i64>(offset) - static_cast<i64>(scalar);
  }
  return static_cast<i64>(d.records) - static_cast<i64>(offset) - static_cast<i64>(scalar);
}

template <Form kForm>
void load(Wave& w, const Instruction& in) {
  if (in.modifiers.lds) {
    // "v0, s[0:3], 0 offen lds" or "off, s[0:3], 0 lds"
    const Access access = buffer_addresses(w, in, 0, kForm.bytes);
    return load_to_lds(w, in, kForm, access);
  }
  const Access access = buffer_addresses(w, in, 1, kForm.bytes);
  load_lanes(w, in, kForm, access, in[0].index);
  note_pending(w, Counter::VectorLoads, in[0].index, kForm.registers());
}

template <Form kForm>
void store(Wave& w, const Instruction& in) {
  const Access access = buffer_addresses(w, in, 1, kForm.bytes);
  store_lanes(w, in, kForm, access, in[0].index);
  note_pending(w, store_counter(w), 0, 0);
}

}  // namespace

Access buffer_addresses(Wave& w, const Instruction& in, int first, int bytes) {
  const Modifiers& m = in.modifiers;
  const Descriptor d = read_descriptor(w, in, first + 1);
  const bool is_private = d.swizzled && d.base == 0 && (d.word3 >> 23 & 1);
  if (d.swizzled && !is_private) refuse(in, "a swizzled buffer");
  const u64 scalar = scalar_value(w, in[first + 2]);
  Row zero{};
  const Operand& vector = in[first];
  const u32* index = m.idxen ? w.vector[vector.index].lane : zero.lane;
  const u32* offset = m.offen ? w.vector[vector.index + (m.idxen ? 1 : 0)].lane : zero.lane;
  Access access;
  access.lanes = w.active;
  if (is_private) {  // gfx90a's private memory; the scalar offset counts all lanes
    for (int l = 0; l < kLanes; ++l)
      access.address[l] = kPrivateBase | static_cast<u32>(offset[l] + static_cast<u32>(m.offset) +
                                                          static_cast<u32>(scalar) / w.size);
    return access;
  }
  access.bounded = true;
  bool all = true;
  for (int l = 0; l < kLanes; ++l) {
    const u64 inner = static_cast<u64>(offset[l]) + static_cast<u32>(m.offset);
    const i64 room =
        room_at(w, d, index[l], inner + static_cast<u64>(index[l]) * d.stride, scalar, m.idxen);
    access.room[l] =
        static_cast<int>(std::clamp<i64>(room / 4 * 4 + (bytes < 4 ? room % 4 : 0), 0, 1 << 20));
    if (bytes < 4 && access.room[l] < bytes) access.room[l] = 0;
    access.address[l] = d.base + scalar + static_cast<u64>(index[l]) * d.stride + inner;
    all = all && (access.room[l] >= bytes || !(access.lanes >> l & 1));
  }
  access.bounded = !all;
  return access;
}

void register_buffer(Opcodes& t) {
  const auto loads = [&](const std::string& name, Handler handler) {
    t.add("buffer_load_" + name, handler);
  };
  loads("dword", load<Form{4}>);
  loads("dwordx2", load<Form{8}>);
  loads("dwordx3", load<Form{12}>);
  loads("dwordx4", load<Form{16}>);
  loads("ubyte", load<Form{1}>);
  loads("sbyte", load<Form{1, true}>);
  loads("ushort", load<Form{2}>);
  loads("sshort", load<Form{2, true}>);
  loads("ubyte_d16", load<Form{1, false, Half16::Low}>);
  loads("ubyte_d16_hi", load<Form{1, false, Half16::High}>);
  loads("sbyte_d16", load<Form{1, true, Half16::Low}>);
  loads("sbyte_d16_hi", load<Form{1, true, Half16::High}>);
  loads("short_d16", load<Form{2, false, Half16::Low}>);
  loads("short_d16_hi", load<Form{2, false, Half16::High}>);
  const auto stores = [&](const std::string& name, Handler handler) {
    t.add("buffer_store_" + name, handler);
  };
  stores("dword", store<Form{4}>);
  stores("dwordx2", store<Form{8}>);
  stores("dwordx3", store<Form{12}>);
  stores("dwordx4", store<Form{16}>);
  stores("byte", store<Form{1}>);
  stores("short", store<Form{2}>);
  stores("byte_d16_hi", store<Form{1, false, Half16::High}>);
  stores("short_d16_hi", store<Form{2, false, Half16::High}>);
}

}  // namespace tessera::amdgpu
