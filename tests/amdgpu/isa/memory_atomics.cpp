// Atomics on memory: global_*, flat_* and buffer_*. Host atomics, so that workgroups on several
// threads meet as they would on the device.

#include <atomic>

#include "tests/amdgpu/isa/memory.hpp"

namespace tessera::amdgpu {
namespace {

enum class Kind { Global, Flat, Buffer };

// New value from the old one and the operand; T is u32 or u64.
template <class T, class F>
T apply(T* at, T operand) {
  std::atomic_ref<T> cell(*at);
  T before = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(before, kLaneFunction<F>(before, operand),
                                     std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
  return before;
}

template <class T>
T data_of(const Wave& w, int index, int lane) {
  if constexpr (sizeof(T) == 4)
    return w.vector[index].lane[lane];
  else
    return w.vector[index].lane[lane] | static_cast<u64>(w.vector[index + 1].lane[lane]) << 32;
}
template <class T>
void put_data(Wave& w, int index, int lane, T value) {
  w.vector[index].lane[lane] = static_cast<u32>(value);
  if constexpr (sizeof(T) == 8) w.vector[index + 1].lane[lane] = static_cast<u32>(value >> 32);
}

// Where the operands are: "[result,] address, data, base" or, of buffers, "data, offset,
// descriptor, s".
struct Places {
  int address, data, result;
};
template <Kind kKind>
Places places(const Instruction& in) {
  const bool returns = in.modifiers.returns;
  if (kKind == Kind::Buffer) return {1, 0, returns ? 0 : -1};
  return returns ? Places{1, 2, 0} : Places{0, 1, -1};
}

template <Kind kKind>
Access addresses(Wave& w, const Instruction& in, const Places& at, int bytes) {
  if (kKind == Kind::Buffer) return buffer_addresses(w, in, at.address, bytes);
  const int base = at.data + 1;
  return global_addresses(w, in, at.address, base < in.count ? base : -1);
}

template <Kind kKind, class T, class Each>
void for_lanes(Wave& w, const Instruction& in, Each each) {
  const Places at = places<kKind>(in);
  const Access access = addresses<kKind>(w, in, at, sizeof(T));
  for (int l = 0; l < kLanes; ++l) {
    if (!(access.lanes >> l & 1)) continue;
    if (access.bounded && access.room[l] < static_cast<int>(sizeof(T))) {
      if (at.result >= 0) put_data<T>(w, in[at.result].index, l, 0);
      continue;
    }
    u8* memory = host_memory(w, in, l, access.address[l], sizeof(T), true);
    if (access.address[l] % sizeof(T))
      throw Finding(fmt::format("misaligned: an atomic at {:#x}", access.address[l]), l);
    const T before = each(reinterpret_cast<T*>(memory), in[at.data].index, l);
    if (at.result >= 0) put_data<T>(w, in[at.result].index, l, before);
  }
  const int registers = static_cast<int>(sizeof(T) / 4);
  if (at.result >= 0)
    note_pending(w, Counter::VectorLoads, in[at.result].index, registers);
  else
    note_pending(w, store_counter(w), 0, 0);
  if (kKind == Kind::Flat) note_pending(w, Counter::Lds, 0, 0);
}

template <Kind kKind, class T, class F>
void atomic(Wave& w, const Instruction& in) {
  for_lanes<kKind, T>(w, in, [&](T* memory, int data, int lane) {
    return apply<T, F>(memory, data_of<T>(w, data, lane));
  });
}

// The data is the new value, then the one to compare with.
template <Kind kKind, class T>
void compare_swap(Wave& w, const Instruction& in) {
  for_lanes<kKind, T>(w, in, [&](T* memory, int data, int lane) {
    T expected = data_of<T>(w, data + static_cast<int>(sizeof(T) / 4), lane);
    std::atomic_ref<T>(*memory).compare_exchange_strong(expected, data_of<T>(w, data, lane));
    return expected;
  });
}

template <class T, class F>
void add(Opcodes& t, const std::string& name, F) {
  t.add("global_atomic_" + name, atomic<Kind::Global, T, F>);
  t.add("flat_atomic_" + name, atomic<Kind::Flat, T, F>);
  t.add("buffer_atomic_" + name, atomic<Kind::Buffer, T, F>);
}

template <class T>
void register_integers(Opcodes& t, const std::string& end) {
  using S = std::make_signed_t<T>;
  add<T>(t, "swap" + end, [](T, T b) { return b; });
  add<T>(t, "add" + end, [](T a, T b) { return static_cast<T>(a + b); });
  add<T>(t, "sub" + end, [](T a, T b) { return static_cast<T>(a - b); });
  add<T>(t, "and" + end, [](T a, T b) { return a & b; });
  add<T>(t, "or" + end, [](T a, T b) { return a | b; });
  add<T>(t, "xor" + end, [](T a, T b) { return a ^ b; });
  add<T>(t, "umin" + end, [](T a, T b) { return a < b ? a : b; });
  add<T>(t, "umax" + end, [](T a, T b) { return a > b ? a : b; });
  add<T>(t, "smin" + end, [](T a, T b) { return static_cast<S>(a) < static_cast<S>(b) ? a : b; });
  add<T>(t, "smax" + end, [](T a, T b) { return static_cast<S>(a) > static_cast<S>(b) ? a : b; });
  add<T>(t, "inc" + end, [](T a, T b) { return a >= b ? T{0} : static_cast<T>(a + 1); });
  add<T>(t, "dec" + end, [](T a, T b) { return a == 0 || a > b ? b : static_cast<T>(a - 1); });
  t.add("global_atomic_cmpswap" + end, compare_swap<Kind::Global, T>);
  t.add("flat_atomic_cmpswap" + end, compare_swap<Kind::Flat, T>);
  t.add("buffer_atomic_cmpswap" + end, compare_swap<Kind::Buffer, T>);
}

template <float (*kGet)(u32), u32 (*kPut)(float)>
u32 add_pair(u32 a, u32 b) {
  return kPut(kGet(a & 0xffff) + kGet(b & 0xffff)) | kPut(kGet(a >> 16) + kGet(b >> 16)) << 16;
}

}  // namespace

void register_atomics(Opcodes& t) {
  register_integers<u32>(t, "");
  register_integers<u64>(t, "_x2");
  add<u32>(t, "add_f32", [](u32 a, u32 b) { return as_bits(as_float(a) + as_float(b)); });
  add<u32>(t, "max_f32", [](u32 a, u32 b) { return as_bits(maximum(as_float(a), as_float(b))); });
  add<u32>(t, "min_f32", [](u32 a, u32 b) { return as_bits(minimum(as_float(a), as_float(b))); });
  add<u64>(t, "add_f64", [](u64 a, u64 b) { return as_bits(as_double(a) + as_double(b)); });
  add<u32>(t, "pk_add_f16",
           [](u32 a, u32 b) { return add_pair<half_to_float, float_to_half>(a, b); });
  add<u32>(t, "pk_add_bf16",
           [](u32 a, u32 b) { return add_pair<bfloat_to_float, float_to_bfloat>(a, b); });
}

}  // namespace tessera::amdgpu
