#include "tests/amdgpu/isa/memory.hpp"

#include "tests/amdgpu/isa/apertures.hpp"

namespace tessera::amdgpu {
namespace {

u8* scratch_bytes(Wave& w, int lane, u32 offset, int bytes) {
  const u32 size = w.group->scratch_per_lane;
  if (offset + static_cast<u64>(bytes) > size)
    throw Finding(fmt::format("private memory: {} bytes at {}, of {}", bytes, offset, size), lane);
  return w.scratch.data() + static_cast<std::size_t>(lane) * size + offset;
}

bool aligned(u64 address, int bytes) { return address % static_cast<u64>(std::min(bytes, 4)) == 0; }

// The bytes of a lane, in whichever memory its address means.
u8* lane_bytes(Wave& w, const Instruction& in, int lane, u64 address, int bytes, bool write) {
  if (in_shared(address)) {
    const auto offset = static_cast<u32>(address);
    u8* at = lds_bytes(w, lane, offset, bytes);
    if (write)
      w.group->lds_checker.write(offset, static_cast<u32>(bytes), w.id, lane);
    else
      w.group->lds_checker.read(offset, static_cast<u32>(bytes), w.id, lane);
    return at;
  }
  if (in_private(address)) return scratch_bytes(w, lane, static_cast<u32>(address), bytes);
  return host_memory(w, in, lane, address, bytes, write);
}

u32 extended(u32 value, const Form& form) {
  return form.is_signed ? static_cast<u32>(sign_extend(value, form.bytes * 8)) : value;
}

u32 merged(u32 old, u32 value, Half16 half) {
  if (half == Half16::None) return value;
  return half == Half16::Low ? (old & 0xffff0000u) | (value & 0xffffu)
                             : (old & 0xffffu) | value << 16;
}

}  // namespace

u8* host_memory(const Wave& w, const Instruction& in, int lane, u64 address, int bytes,
                bool write) {
  if (!w.group->memory->find(address, static_cast<u64>(bytes), write))
    throw Finding(fmt::format("{} of {} bytes at {:#x}, outside every buffer",
                              write ? "write" : "read", bytes, address),
                  lane);
  static_cast<void>(in);
  return reinterpret_cast<u8*>(address);
}

u8* lds_bytes(const Wave& w, int lane, u32 address, int bytes) {
  if (static_cast<u64>(address) + static_cast<u64>(bytes) > w.group->lds_size)
    throw Finding(fmt::format("LDS: {} bytes at {}, of {}", bytes, address, w.group->lds_size),
                  lane);
  if (!aligned(address, bytes))
    throw Finding(fmt::format("misaligned: {} bytes at LDS byte {}", bytes, address), lane);
  return w.group->lds.data() + address;
}

void check_memory(const Wave& w, const Access& access, int bytes, bool write) {
  if (!access.lanes) return;
  u64 least = ~u64{0}, most = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (!(access.lanes >> l & 1)) continue;
    least = std::min(least, access.address[l]);
    most = std::max(most, access.address[l]);
  }
  if (!access.bounded &&
      w.group->memory->find(least, most - least + static_cast<u64>(bytes), write))
    return;
  for (int l = 0; l < kLanes; ++l) {
    const u64 address = access.address[l];
    const int room = access.bounded ? std::min(access.room[l], bytes) : bytes;
    if (!(access.lanes >> l & 1) || in_shared(address) || in_private(address) || room <= 0)
      continue;
    if (!w.group->memory->find(address, static_cast<u64>(room), write))
      throw Finding(fmt::format("{} of {} bytes at {:#x}, outside every buffer",
                                write ? "write" : "read", room, address),
                    l);
  }
}

void load_lanes(Wave& w, const Instruction& in, const Form& form, const Access& access,
                int destination) {
  check_memory(w, access, form.bytes, false);
  const int registers = form.registers();
  for (int l = 0; l < kLanes; ++l) {
    if (!(access.lanes >> l & 1)) continue;
    u32 words[4] = {};
    const int room = access.bounded ? std::clamp(access.room[l], 0, form.bytes) : form.bytes;
    const u64 address = access.address[l];
    if (room > 0) {
      const bool plain = !in_shared(address) && !in_private(address);
      const u8* from =
          plain ? reinterpret_cast<const u8*>(address) : lane_bytes(w, in, l, address, room, false);
      std::memcpy(words, from, static_cast<std::size_t>(room));
    }
    if (form.bytes < 4) {
      u32& to = w.vector[destination].lane[l];
      to = merged(to, extended(words[0], form), form.half);
    } else {
      for (int i = 0; i < registers; ++i) w.vector[destination + i].lane[l] = words[i];
    }
  }
}

void store_lanes(Wave& w, const Instruction& in, const Form& form, const Access& access,
                 int source) {
  check_memory(w, access, form.bytes, true);
  const int registers = form.registers();
  for (int l = 0; l < kLanes; ++l) {
    if (!(access.lanes >> l & 1)) continue;
    u32 words[4] = {};
    for (int i = 0; i < registers; ++i) words[i] = w.vector[source + i].lane[l];
    if (form.half == Half16::High) words[0] >>= 16;
    const int room = access.bounded ? std::clamp(access.room[l], 0, form.bytes) : form.bytes;
    const u64 address = access.address[l];
    if (room <= 0) continue;
    const bool plain = !in_shared(address) && !in_private(address);
    u8* to = plain ? reinterpret_cast<u8*>(address) : lane_bytes(w, in, l, address, room, true);
    std::memcpy(to, words, static_cast<std::size_t>(room));
  }
}

void load_to_lds(Wave& w, const Instruction& in, const Form& form, const Access& access) {
  check_memory(w, access, form.bytes, false);
  const u32 size = static_cast<u32>(std::max(form.bytes, 4));
  const u32 first = (w.scalar[kM0] & (w.group->lds_size > 65536 ? 0x3ffffu : 0xffffu)) +
                    static_cast<u32>(in.modifiers.offset);
  const DirectRange range{first, size, w.id, access.lanes};
  LdsChecker& checker = w.group->lds_checker;
  for (int l = 0; l < kLanes; ++l) {
    if (!(access.lanes >> l & 1)) continue;
    const u32 to = first + static_cast<u32>(l) * size;
    u8* lds = lds_bytes(w, l, to, static_cast<int>(size));
    checker.write_direct(to, size, w.id, l);
    u32 words[4] = {};
    const int room = access.bounded ? std::clamp(access.room[l], 0, form.bytes) : form.bytes;
    if (room > 0)
      std::memcpy(words, host_memory(w, in, l, access.address[l], room, false),
                  static_cast<std::size_t>(room));
    if (form.bytes < 4) words[0] = extended(words[0], form);
    std::memcpy(lds, words, size);
  }
  checker.begin_direct(range);
  note_pending(w, Counter::VectorLoads, 0, 0, false, range);
}

Access global_addresses(Wave& w, const Instruction& in, int address, int base) {
  Access access;
  access.lanes = w.active;
  const i64 offset = in.modifiers.offset;
  const Operand& vector = in[address];
  u64 scalar = 0;
  const bool has_base = base >= 0 && in[base].kind == OperandKind::Scalar;
  if (has_base) scalar = w.pair(in[base].index);
  if (vector.kind == OperandKind::Vector && vector.count == 2) {
    const u32* low = w.vector[vector.index].lane;
    const u32* high = w.vector[vector.index + 1].lane;
    for (int l = 0; l < kLanes; ++l)
      access.address[l] = (low[l] | static_cast<u64>(high[l]) << 32) + static_cast<u64>(offset);
  } else if (vector.kind == OperandKind::Vector && has_base) {
    const u32* low = w.vector[vector.index].lane;
    for (int l = 0; l < kLanes; ++l) access.address[l] = scalar + low[l] + static_cast<u64>(offset);
  } else {
    refuse(in, "this form of an address");
  }
  return access;
}

void note_pending(Wave& w, Counter counter, int first, int registers, bool scalar,
                  const DirectRange& direct) {
  PendingEntry entry;
  entry.direct = direct;
  entry.unordered = scalar;
  entry.has_registers = registers > 0;
  entry.instruction = w.pc - 1;
  if (scalar && registers)
    entry.registers.add_scalar(first, registers);
  else if (registers)
    entry.registers.add_vector(first, registers);
  w.pending.add(counter, entry);
  if (counter == Counter::Lds) w.group->lds_checker.issue(w.id);
}

Counter store_counter(const Wave& w) {
  return w.group->target->generation == Generation::Gfx9 ? Counter::VectorLoads
                                                         : Counter::VectorStores;
}
Counter scalar_counter(const Wave& w) {
  return w.group->target->generation == Generation::Gfx12 ? Counter::Scalar : Counter::Lds;
}

}  // namespace tessera::amdgpu
