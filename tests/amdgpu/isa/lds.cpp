// ds_* instructions.

#include "tests/amdgpu/isa/memory.hpp"

namespace tessera::amdgpu {
namespace {

u32 address_of(const Wave& w, const Instruction& in, int at, int lane, u32 offset) {
  return w.vector[in[at].index].lane[lane] + offset;
}

const u8* read_bytes(Wave& w, int lane, u32 address, int bytes) {
  const u8* from = lds_bytes(w, lane, address, bytes);
  w.group->lds_checker.read(address, static_cast<u32>(bytes), w.id, lane);
  return from;
}
u8* write_bytes(Wave& w, int lane, u32 address, int bytes) {
  u8* to = lds_bytes(w, lane, address, bytes);
  w.group->lds_checker.write(address, static_cast<u32>(bytes), w.id, lane);
  return to;
}

template <class F>
void for_active(const Wave& w, F each) {
  for (u64 rest = w.active; rest; rest &= rest - 1) each(std::countr_zero(rest));
}

template <Form kForm>
void read(Wave& w, const Instruction& in) {
  const Row addresses = w.vector[in[1].index];  // the result may be written over them
  const int to = in[0].index;
  for_active(w, [&](int l) {
    u32 words[4] = {};
    std::memcpy(
        words,
        read_bytes(w, l, addresses.lane[l] + static_cast<u32>(in.modifiers.offset), kForm.bytes),
        kForm.bytes);
    if constexpr (kForm.bytes < 4) {
      const u32 value =
          kForm.is_signed ? static_cast<u32>(sign_extend(words[0], kForm.bytes * 8)) : words[0];
      u32& old = w.vector[to].lane[l];
      const bool high = kForm.half == Half16::High || in[0].high;
      if (high)
        old = (old & 0xffffu) | value << 16;
      else if (kForm.half == Half16::Low)
        old = (old & 0xffff0000u) | (value & 0xffffu);
      else
        old = value;
    } else {
      for (int i = 0; i < kForm.registers(); ++i) w.vector[to + i].lane[l] = words[i];
    }
  });
  note_pending(w, Counter::Lds, to, kForm.registers());
}

template <Form kForm>
void write(Wave& w, const Instruction& in) {
  const int from = in[1].index;
  for_active(w, [&](int l) {
    u32 words[4] = {};
    for (int i = 0; i < kForm.registers(); ++i) words[i] = w.vector[from + i].lane[l];
    if (kForm.half == Half16::High || in[1].high) words[0] >>= 16;
    std::memcpy(write_bytes(w, l, address_of(w, in, 0, l, static_cast<u32>(in.modifiers.offset)),
                            kForm.bytes),
                words, kForm.bytes);
  });
  note_pending(w, Counter::Lds, 0, 0);
}

// Two elements, whose offsets count elements, or 64 of them.
template <int kBytes, int kUnit>
void read_two(Wave& w, const Instruction& in) {
  const Row addresses = w.vector[in[1].index];
  const int to = in[0].index, words = kBytes / 4;
  for_active(w, [&](int l) {
    for (int part = 0; part < 2; ++part) {
      const auto offset =
          static_cast<u32>((part ? in.modifiers.offset1 : in.modifiers.offset0) * kBytes * kUnit);
      u32 value[2];
      std::memcpy(value, read_bytes(w, l, addresses.lane[l] + offset, kBytes), kBytes);
      for (int i = 0; i < words; ++i) w.vector[to + part * words + i].lane[l] = value[i];
    }
  });
  note_pending(w, Counter::Lds, to, 2 * words);
}

template <int kBytes, int kUnit>
void write_two(Wave& w, const Instruction& in) {
  const int words = kBytes / 4;
  for_active(w, [&](int l) {
    for (int part = 0; part < 2; ++part) {
      const auto offset =
          static_cast<u32>((part ? in.modifiers.offset1 : in.modifiers.offset0) * kBytes * kUnit);
      u32 value[2];
      for (int i = 0; i < words; ++i) value[i] = w.vector[in[1 + part].index + i].lane[l];
      std::memcpy(write_bytes(w, l, address_of(w, in, 0, l, offset), kBytes), value, kBytes);
    }
  });
  note_pending(w, Counter::Lds, 0, 0);
}

// Of each 16 lanes, lane p fetches four halves; lane l gets halves l % 4 of lanes 4 j + l / 4.
void read_transposed(Wave& w, const Instruction& in) {
  if (w.active != w.lanes) throw Finding("a transposing read with lanes switched off");
  u16 fetched[kLanes][4];
  const Row addresses = w.vector[in[1].index];
  for_active(w, [&](int l) {
    const u32 address = addresses.lane[l] + static_cast<u32>(in.modifiers.offset);
    if (address % 8)
      throw Finding(fmt::format("misaligned: a transposing read at LDS byte {}", address), l);
    std::memcpy(fetched[l], read_bytes(w, l, address, 8), 8);
  });
  for (int l = 0; l < kLanes; ++l) {
    u32 halves[4];
    for (int j = 0; j < 4; ++j) halves[j] = fetched[(l & ~15) + 4 * j + (l & 15) / 4][l % 4];
    w.vector[in[0].index].lane[l] = halves[0] | halves[1] << 16;
    w.vector[in[0].index + 1].lane[l] = halves[2] | halves[3] << 16;
  }
  note_pending(w, Counter::Lds, in[0].index, 2);
}

// Each lane reads the register of the lane that its own index names; one switched off gives 0.
void backward_permute(Wave& w, const Instruction& in) {
  const Row index = w.vector[in[1].index], data = w.vector[in[2].index];
  Row result;
  for (int l = 0; l < kLanes; ++l) {
    const u32 source = (index.lane[l] + static_cast<u32>(in.modifiers.offset)) / 4 & (w.size - 1);
    result.lane[l] = w.active >> source & 1 ? data.lane[source] : 0;
  }
  store_row(w, in[0].index, result.lane);
  note_pending(w, Counter::Lds, in[0].index, 1);
}

void forward_permute(Wave& w, const Instruction& in) {
  const Row index = w.vector[in[1].index], data = w.vector[in[2].index];
  Row result{};
  for_active(w, [&](int l) {
    result.lane[(index.lane[l] + static_cast<u32>(in.modifiers.offset)) / 4 & (w.size - 1)] =
        data.lane[l];
  });
  store_row(w, in[0].index, result.lane);
  note_pending(w, Counter::Lds, in[0].index, 1);
}

void swizzle(Wave& w, const Instruction& in) {
  const auto code = static_cast<u32>(in.modifiers.offset);
  const Row data = w.vector[in[1].index];
  if ((code & 0xc000) == 0xc000) refuse(in, "this swizzle");
  Row result;
  for (int l = 0; l < kLanes; ++l) {
    const auto lane = static_cast<u32>(l);
    const u32 source =
        code & 0x8000 ? (lane & ~3u) + (code >> (2 * (lane & 3)) & 3)
                      : (lane & ~31u) |
                            ((((lane & 31) & (code & 31)) | (code >> 5 & 31)) ^ (code >> 10 & 31));
    result.lane[l] = w.active >> source & 1 ? data.lane[source] : 0;
  }
  store_row(w, in[0].index, result.lane);
  note_pending(w, Counter::Lds, in[0].index, 1);
}

template <class T>
T data_of(const Wave& w, int index, int lane) {
  if constexpr (sizeof(T) == 4)
    return w.vector[index].lane[lane];
  else
    return w.vector[index].lane[lane] | static_cast<u64>(w.vector[index + 1].lane[lane]) << 32;
}

// Lanes take their turns, lowest first.
template <class T, bool kReturns, class F>
void atomic(Wave& w, const Instruction& in) {
  const int address = kReturns ? 1 : 0;
  const Row addresses = w.vector[in[address].index];
  for_active(w, [&](int l) {
    const u32 at = addresses.lane[l] + static_cast<u32>(in.modifiers.offset);
    u8* memory = lds_bytes(w, l, at, sizeof(T));
    if (at % sizeof(T)) throw Finding(fmt::format("misaligned: an atomic at LDS byte {}", at), l);
    w.group->lds_checker.atomic(at, sizeof(T), w.id, l);
    T before;
    std::memcpy(&before, memory, sizeof(T));
    T second{};
    if (in.count > address + 2) second = data_of<T>(w, in[address + 2].index, l);
    const T after = kLaneFunction<F>(before, data_of<T>(w, in[address + 1].index, l), second);
    std::memcpy(memory, &after, sizeof(T));
    if (!kReturns) return;
    w.vector[in[0].index].lane[l] = static_cast<u32>(before);
    if constexpr (sizeof(T) == 8)
      w.vector[in[0].index + 1].lane[l] = static_cast<u32>(before >> 32);
  });
  note_pending(w, Counter::Lds, kReturns ? in[0].index : 0,
               kReturns ? static_cast<int>(sizeof(T) / 4) : 0);
}

template <class T, class F>
void add_atomic(Opcodes& t, const std::string& name, const std::string& type, F) {
  t.add("ds_" + name + "_" + type, atomic<T, false, F>);
  t.add("ds_" + name + "_rtn_" + type, atomic<T, true, F>);
}

template <class T>
void register_integers(Opcodes& t, const std::string& bits) {
  using S = std::make_signed_t<T>;
  add_atomic<T>(t, "add", "u" + bits, [](T a, T b, T) { return static_cast<T>(a + b); });
  add_atomic<T>(t, "sub", "u" + bits, [](T a, T b, T) { return static_cast<T>(a - b); });
  add_atomic<T>(t, "and", "b" + bits, [](T a, T b, T) { return a & b; });
  add_atomic<T>(t, "or", "b" + bits, [](T a, T b, T) { return a | b; });
  add_atomic<T>(t, "xor", "b" + bits, [](T a, T b, T) { return a ^ b; });
  add_atomic<T>(t, "min", "u" + bits, [](T a, T b, T) { return a < b ? a : b; });
  add_atomic<T>(t, "max", "u" + bits, [](T a, T b, T) { return a > b ? a : b; });
  add_atomic<T>(t, "min", "i" + bits,
                [](T a, T b, T) { return static_cast<S>(a) < static_cast<S>(b) ? a : b; });
  add_atomic<T>(t, "max", "i" + bits,
                [](T a, T b, T) { return static_cast<S>(a) > static_cast<S>(b) ? a : b; });
  add_atomic<T>(t, "inc", "u" + bits,
                [](T a, T b, T) { return a >= b ? T{0} : static_cast<T>(a + 1); });
  add_atomic<T>(t, "wrxchg", "b" + bits, [](T, T b, T) { return b; });
  // gfx9 names the value to compare with first, the later ones second.
  add_atomic<T>(t, "cmpst", "b" + bits, [](T a, T compare, T b) { return a == compare ? b : a; });
  add_atomic<T>(t, "cmpstore", "b" + bits,
                [](T a, T b, T compare) { return a == compare ? b : a; });
}

void register_floats(Opcodes& t) {
  add_atomic<u32>(t, "add", "f32",
                  [](u32 a, u32 b, u32) { return as_bits(as_float(a) + as_float(b)); });
  add_atomic<u32>(t, "min", "f32",
                  [](u32 a, u32 b, u32) { return as_bits(minimum(as_float(a), as_float(b))); });
  add_atomic<u32>(t, "max", "f32",
                  [](u32 a, u32 b, u32) { return as_bits(maximum(as_float(a), as_float(b))); });
  add_atomic<u64>(t, "add", "f64",
                  [](u64 a, u64 b, u64) { return as_bits(as_double(a) + as_double(b)); });
}

}  // namespace

void register_lds(Opcodes& t) {
  t.add("ds_read_b32", read<Form{4}>);
  t.add("ds_read_b64", read<Form{8}>);
  t.add("ds_read_b96", read<Form{12}>);
  t.add("ds_read_b128", read<Form{16}>);
  t.add("ds_read_u8", read<Form{1}>);
  t.add("ds_read_i8", read<Form{1, true}>);
  t.add("ds_read_u16", read<Form{2}>);
  t.add("ds_read_i16", read<Form{2, true}>);
  for (const auto& [name, sign] : {std::pair{"u8", false}, std::pair{"i8", true}})
    for (const bool high : {false, true})
      t.add(std::string("ds_read_") + name + (high ? "_d16_hi" : "_d16"),
            sign ? (high ? read<Form{1, true, Half16::High}> : read<Form{1, true, Half16::Low}>)
                 : (high ? read<Form{1, false, Half16::High}> : read<Form{1, false, Half16::Low}>));
  t.add("ds_read_u16_d16", read<Form{2, false, Half16::Low}>);
  t.add("ds_read_u16_d16_hi", read<Form{2, false, Half16::High}>);
  t.add("ds_write_b8", write<Form{1}>);
  t.add("ds_write_b16", write<Form{2}>);
  t.add("ds_write_b8_d16_hi", write<Form{1, false, Half16::High}>);
  t.add("ds_write_b16_d16_hi", write<Form{2, false, Half16::High}>);
  t.add("ds_write_b32", write<Form{4}>);
  t.add("ds_write_b64", write<Form{8}>);
  t.add("ds_write_b96", write<Form{12}>);
  t.add("ds_write_b128", write<Form{16}>);
  t.add("ds_read2_b32", read_two<4, 1>);
  t.add("ds_read2_b64", read_two<8, 1>);
  t.add("ds_read2st64_b32", read_two<4, 64>);
  t.add("ds_read2st64_b64", read_two<8, 64>);
  t.add("ds_write2_b32", write_two<4, 1>);
  t.add("ds_write2_b64", write_two<8, 1>);
  t.add("ds_write2st64_b32", write_two<4, 64>);
  t.add("ds_write2st64_b64", write_two<8, 64>);
  t.add("ds_read_b64_tr_b16", read_transposed);
  t.add("ds_bpermute_b32", backward_permute);
  t.add("ds_permute_b32", forward_permute);
  t.add("ds_swizzle_b32", swizzle);
  t.add("ds_nop", [](Wave&, const Instruction&) {});
  register_integers<u32>(t, "32");
  register_integers<u64>(t, "64");
  register_floats(t);
}

}  // namespace tessera::amdgpu
