// global_*, flat_* and scratch_* loads and stores.

#include "tests/amdgpu/isa/apertures.hpp"
#include "tests/amdgpu/isa/memory.hpp"

namespace tessera::amdgpu {
namespace {

// Of scratch_* instructions: the lane's offset in its private memory, as a flat address.
Access scratch_addresses(Wave& w, const Instruction& in, int address, int base) {
  Access access;
  access.lanes = w.active;
  const u32 scalar = in[base].kind == OperandKind::Scalar ? w.scalar[in[base].index] : 0;
  Row zero{};
  const u32* vector =
      in[address].kind == OperandKind::Vector ? w.vector[in[address].index].lane : zero.lane;
  for (int l = 0; l < kLanes; ++l)
    access.address[l] =
        kPrivateBase | static_cast<u32>(vector[l] + scalar + static_cast<u32>(in.modifiers.offset));
  return access;
}

enum class Kind { Global, Flat, Scratch };

template <Kind kKind>
Access addresses(Wave& w, const Instruction& in, int address, int base) {
  if (kKind == Kind::Scratch) return scratch_addresses(w, in, address, base);
  const Access access = global_addresses(w, in, address, base);
  if (kKind == Kind::Global)
    for (int l = 0; l < kLanes; ++l)
      if ((access.lanes >> l & 1) &&
          (in_shared(access.address[l]) || in_private(access.address[l])))
        throw Finding(
            fmt::format("a global access to {:#x}, which is LDS or private", access.address[l]), l);
  return access;
}

template <Kind kKind, Form kForm>
void load(Wave& w, const Instruction& in) {
  const int base = kKind == Kind::Flat ? (in.count > 2 ? 2 : -1) : 2;
  const Access access = addresses<kKind>(w, in, 1, base);
  load_lanes(w, in, kForm, access, in[0].index);
  note_pending(w, Counter::VectorLoads, in[0].index, kForm.registers());
  if (kKind == Kind::Flat) note_pending(w, Counter::Lds, in[0].index, kForm.registers());
}

template <Kind kKind, Form kForm>
void store(Wave& w, const Instruction& in) {
  const int base = kKind == Kind::Flat ? (in.count > 2 ? 2 : -1) : 2;
  const Access access = addresses<kKind>(w, in, 0, base);
  if (in[1].kind != OperandKind::Vector) refuse(in, "its data");
  store_lanes(w, in, kForm, access, in[1].index);
  note_pending(w, store_counter(w), 0, 0);
  if (kKind == Kind::Flat) note_pending(w, Counter::Lds, 0, 0);
}

template <Form kForm>
void load_lds(Wave& w, const Instruction& in) {
  const Access access = global_addresses(w, in, 0, 1);
  load_to_lds(w, in, kForm, access);
}

template <Kind kKind>
void register_kind(Opcodes& t, const std::string& kind) {
  const auto loads = [&](const char* name, Handler handler) {
    t.add(kind + "_load_" + name, handler);
  };
  loads("dword", load<kKind, Form{4}>);
  loads("dwordx2", load<kKind, Form{8}>);
  loads("dwordx3", load<kKind, Form{12}>);
  loads("dwordx4", load<kKind, Form{16}>);
  loads("ubyte", load<kKind, Form{1}>);
  loads("sbyte", load<kKind, Form{1, true}>);
  loads("ushort", load<kKind, Form{2}>);
  loads("sshort", load<kKind, Form{2, true}>);
  loads("ubyte_d16", load<kKind, Form{1, false, Half16::Low}>);
  loads("ubyte_d16_hi", load<kKind, Form{1, false, Half16::High}>);
  loads("sbyte_d16", load<kKind, Form{1, true, Half16::Low}>);
  loads("sbyte_d16_hi", load<kKind, Form{1, true, Half16::High}>);
  loads("short_d16", load<kKind, Form{2, false, Half16::Low}>);
  loads("short_d16_hi", load<kKind, Form{2, false, Half16::High}>);
  const auto stores = [&](const char* name, Handler handler) {
    t.add(kind + "_store_" + name, handler);
  };
  stores("dword", store<kKind, Form{4}>);
  stores("dwordx2", store<kKind, Form{8}>);
  stores("dwordx3", store<kKind, Form{12}>);
  stores("dwordx4", store<kKind, Form{16}>);
  stores("byte", store<kKind, Form{1}>);
  stores("short", store<kKind, Form{2}>);
  stores("byte_d16_hi", store<kKind, Form{1, false, Half16::High}>);
  stores("short_d16_hi", store<kKind, Form{2, false, Half16::High}>);
}

}  // namespace

void register_global(Opcodes& t) {
  register_kind<Kind::Global>(t, "global");
  register_kind<Kind::Flat>(t, "flat");
  register_kind<Kind::Scratch>(t, "scratch");
  t.add("global_load_lds_dword", load_lds<Form{4}>);
  t.add("global_load_lds_dwordx3", load_lds<Form{12}>);
  t.add("global_load_lds_dwordx4", load_lds<Form{16}>);
  t.add("global_load_lds_ushort", load_lds<Form{2}>);
  t.add("global_load_lds_sshort", load_lds<Form{2, true}>);
  t.add("global_load_lds_ubyte", load_lds<Form{1}>);
  t.add("global_load_lds_sbyte", load_lds<Form{1, true}>);
}

}  // namespace tessera::amdgpu
