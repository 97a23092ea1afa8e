#pragma once
// Reading and writing operands a row of lanes at a time, and the loop that most vector
// instructions are: a function of one lane's values.

#include <fmt/core.h>

#include <tuple>
#include <utility>

#include "tests/amdgpu/isa/opcodes.hpp"
#include "tests/amdgpu/isa/state.hpp"

namespace tessera::amdgpu {

[[noreturn]] inline void refuse(const Instruction& in, std::string_view what) {
  throw std::runtime_error(fmt::format("not implemented: {} (in: {})", what, in.text));
}

u32 special_value(const Wave& w, Special special);  // the lower 32 bits
u64 special_value64(const Wave& w, Special special);

// The operand as one 32-bit value, for the scalar units and as a broadcast.
inline u32 scalar_value(const Wave& w, const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::Scalar:
      return w.scalar[operand.index];
    case OperandKind::Constant:
      return operand.value;
    case OperandKind::Special:
      return special_value(w, operand.special);
    case OperandKind::Null:
    case OperandKind::Off:
      return 0;
    default:
      throw std::runtime_error(
          fmt::format("not implemented: the operand '{}' as a scalar", operand.text));
  }
}

inline u64 scalar_value64(const Wave& w, const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::Scalar:
      return operand.count == 1 ? w.scalar[operand.index] : w.pair(operand.index);
    case OperandKind::Constant:
      return operand.value64;
    case OperandKind::Special:
      return special_value64(w, operand.special);
    case OperandKind::Null:
    case OperandKind::Off:
      return 0;
    default:
      throw std::runtime_error(
          fmt::format("not implemented: the operand '{}' as a scalar", operand.text));
  }
}

inline void set_scalar(Wave& w, const Instruction& in, int at, u32 value) {
  const Operand& operand = in[at];
  if (operand.kind == OperandKind::Null) return;
  if (operand.kind != OperandKind::Scalar) refuse(in, "a result that is no scalar register");
  w.scalar[operand.index] = value;
}
inline void set_scalar64(Wave& w, const Instruction& in, int at, u64 value) {
  const Operand& operand = in[at];
  if (operand.kind == OperandKind::Null) return;
  if (operand.kind != OperandKind::Scalar) refuse(in, "a result that is no scalar register");
  w.set_pair(operand.index, value);
}

// A mask of lanes: two registers in a wave of 64, one in a wave of 32.
inline u64 mask_value(const Wave& w, const Operand& operand) {
  return w.size == 64 ? scalar_value64(w, operand) : scalar_value(w, operand);
}
inline void set_mask(Wave& w, const Instruction& in, int at, u64 value) {
  if (in[at].kind == OperandKind::Null) return;
  if (in[at].kind != OperandKind::Scalar) refuse(in, "a mask that is no scalar register");
  w.set_mask(in[at].index, value);
}

inline void broadcast(u32 value, Row& row) {
  for (u32& lane : row.lane) lane = value;
}

u32 part_of(u32 value, Part part, bool extend);

// The lanes of operand `at`, unchanged bits of 32. `buffer` is used if they are not in a register.
inline const u32* raw_lanes(Wave& w, const Instruction& in, int at, Row& buffer) {
  if (in.is_dpp && at == 1) return w.dpp_row.lane;
  const Operand& operand = in[at];
  if (operand.kind == OperandKind::Vector) return w.vector[operand.index].lane;
  broadcast(scalar_value(w, operand), buffer);
  return buffer.lane;
}

void select_parts(const Instruction& in, int at, const u32* from, Row& to);

// What an argument of a lane function is made from, and what a result becomes.
struct U32 {
  using Type = u32;
  static constexpr int kBits = 32;
  static constexpr bool kFloat = false;
  static u32 get(u32 bits) { return bits; }
  static u32 put(u32 value) { return value; }
};
struct I32 : U32 {
  using Type = i32;
  static i32 get(u32 bits) { return static_cast<i32>(bits); }
  static u32 put(i32 value) { return static_cast<u32>(value); }
};
struct F32 {
  using Type = float;
  static constexpr int kBits = 32;
  static constexpr bool kFloat = true;
  static float get(u32 bits) { return as_float(bits); }
  static u32 put(float value) { return as_bits(value); }
};
struct U16 {
  using Type = u32;
  static constexpr int kBits = 16;
  static constexpr bool kFloat = false;
  static u32 get(u32 bits) { return bits & 0xffff; }
  static u32 put(u32 value) { return value & 0xffff; }
};
struct I16 : U16 {
  using Type = i32;
  static i32 get(u32 bits) { return sign_extend(bits, 16); }
  static u32 put(i32 value) { return static_cast<u32>(value) & 0xffff; }
};
struct F16 {
  using Type = float;
  static constexpr int kBits = 16;
  static constexpr bool kFloat = true;
  static float get(u32 bits) { return half_to_float(bits); }
  static u32 put(float value) { return float_to_half(value); }
};
// For results that the lane function has rounded to half itself.
struct HalfBits : U16 {
  static constexpr bool kFloat = false;
};
struct U64 {
  using Type = u64;
  static constexpr int kBits = 64;
  static constexpr bool kFloat = false;
  static u64 get(u64 bits) { return bits; }
  static u64 put(u64 value) { return value; }
};
struct I64 : U64 {
  using Type = i64;
  static i64 get(u64 bits) { return static_cast<i64>(bits); }
  static u64 put(i64 value) { return static_cast<u64>(value); }
};
struct F64 {
  using Type = double;
  static constexpr int kBits = 64;
  static constexpr bool kFloat = true;
  static double get(u64 bits) { return as_double(bits); }
  static u64 put(double value) { return as_bits(value); }
};

struct alignas(64) WideRow {
  u64 lane[kLanes];
};

// Lanes of a 32-bit operand with its modifiers applied.
inline const u32* lanes32(Wave& w, const Instruction& in, int at, Row& buffer) {
  const Operand& operand = in[at];
  const u32* from = raw_lanes(w, in, at, buffer);
  if (in.sdwa.used && (at == 1 || at == 2)) {
    select_parts(in, at, from, buffer);
    from = buffer.lane;
  }
  if (!operand.negate && !operand.absolute) return from;
  const u32 keep = operand.absolute ? 0x7fffffffu : ~0u, flip = operand.negate ? 0x80000000u : 0u;
  for (int l = 0; l < kLanes; ++l) buffer.lane[l] = (from[l] & keep) ^ flip;
  return buffer.lane;
}

// Lanes of a 16-bit operand, in the lower halves.
inline const u32* lanes16(Wave& w, const Instruction& in, int at, Row& buffer) {
  const Operand& operand = in[at];
  const u32 keep = operand.absolute ? 0x7fffu : 0xffffu, flip = operand.negate ? 0x8000u : 0u;
  if (operand.kind == OperandKind::Constant) {
    broadcast((operand.value16 & keep) ^ flip, buffer);
    return buffer.lane;
  }
  const u32* from = raw_lanes(w, in, at, buffer);
  if (in.sdwa.used && (at == 1 || at == 2)) {
    select_parts(in, at, from, buffer);
    from = buffer.lane;
  }
  const bool high = operand.high || (at > 0 && (in.modifiers.op_sel >> (at - 1) & 1));
  const int shift = high ? 16 : 0;
  for (int l = 0; l < kLanes; ++l) buffer.lane[l] = (from[l] >> shift & keep) ^ flip;
  return buffer.lane;
}

void lanes64(Wave& w, const Instruction& in, int at, bool is_float, WideRow& out);

template <class A>
struct Argument {
  Row buffer;
  const u32* from;
  Argument() {}  // the buffer stays as it is
  Argument(Wave& w, const Instruction& in, int at) { load(w, in, at); }
  Argument(const Argument&) = delete;  // `from` may point at the buffer
  Argument& operator=(const Argument&) = delete;
  void load(Wave& w, const Instruction& in, int at) {
    from = A::kBits == 16 ? lanes16(w, in, at, buffer) : lanes32(w, in, at, buffer);
    if constexpr (A::kFloat && A::kBits == 32) {
      if (w.mode.flush_in32()) [[unlikely]] {
        for (int l = 0; l < kLanes; ++l) buffer.lane[l] = as_bits(flushed(as_float(from[l])));
        from = buffer.lane;
      }
    }
  }
  typename A::Type operator[](int lane) const { return A::get(from[lane]); }
};
template <class A>
  requires(A::kBits == 64)
struct Argument<A> {
  WideRow buffer;
  Argument() {}
  Argument(Wave& w, const Instruction& in, int at) { load(w, in, at); }
  void load(Wave& w, const Instruction& in, int at) { lanes64(w, in, at, A::kFloat, buffer); }
  typename A::Type operator[](int lane) const { return A::get(buffer.lane[lane]); }
};

// Writes the active lanes of a register.
inline void store_row(Wave& w, int index, const u32* values) {
  u32* to = w.vector[index].lane;
  const u64 active = w.active;
  if (active == ~u64{0}) {
    std::memcpy(to, values, sizeof(Row));
  } else if (active == 0xffffffffu && w.size == 32) {
    std::memcpy(to, values, sizeof(Row) / 2);
  } else {
    for (int l = 0; l < kLanes; ++l) to[l] = (active >> l & 1) ? values[l] : to[l];
  }
}

void store_sdwa(Wave& w, const Instruction& in, Row& values);

inline void store32(Wave& w, const Instruction& in, Row& values) {
  if (in[0].kind != OperandKind::Vector) refuse(in, "a result that is no vector register");
  if (in.sdwa.used) [[unlikely]]
    return store_sdwa(w, in, values);
  store_row(w, in[0].index, values.lane);
}

// A 16-bit result: into the upper half if the instruction says so. The other half is kept, but for
// most instructions of gfx9, which clear it.
void store16(Wave& w, const Instruction& in, int sources, bool keeps, Row& values);
void store64(Wave& w, const Instruction& in, const WideRow& values);

inline float scaled(float value, const Modifiers& modifiers) {
  value *= modifiers.output_scale;
  return modifiers.clamp ? minimum(maximum(value, 0.f), 1.f) : value;
}

template <class F>
inline constexpr F kLaneFunction{};

// Which operand is argument i: an accumulating instruction reads its result register last.
enum class Reads { InOrder, Accumulates };

template <Reads kReads, class R, class F, class... A>
struct Lanewise {
  template <std::size_t... I>
  static void run(Wave& w, const Instruction& in, std::index_sequence<I...>) {
    constexpr int kCount = sizeof...(A);
    std::tuple<Argument<A>...> arguments;
    const auto place = [](int i) {
      return kReads == Reads::Accumulates && i == kCount - 1 ? 0 : i + 1;
    };
    (std::get<I>(arguments).load(w, in, place(static_cast<int>(I))), ...);
    const bool scale = in.modifiers.clamp || in.modifiers.output_scale != 1;
    if constexpr (R::kBits == 64) {
      WideRow result;
      for (int l = 0; l < kLanes; ++l)
        result.lane[l] = R::put(kLaneFunction<F>(std::get<I>(arguments)[l]...));
      if (scale) refuse(in, "clamp or omod on a result of 64 bits");
      store64(w, in, result);
    } else {
      Row result;
      if (R::kFloat && scale) {
        if constexpr (R::kFloat)
          for (int l = 0; l < kLanes; ++l)
            result.lane[l] = R::put(scaled(
                static_cast<float>(kLaneFunction<F>(std::get<I>(arguments)[l]...)), in.modifiers));
      } else {
        if (scale) refuse(in, "clamp on an integer result");
        for (int l = 0; l < kLanes; ++l)
          result.lane[l] = R::put(kLaneFunction<F>(std::get<I>(arguments)[l]...));
      }
      if constexpr (R::kFloat && R::kBits == 32)
        if (w.mode.flush_out32()) [[unlikely]]
          for (u32& lane : result.lane) lane = as_bits(flushed(as_float(lane)));
      if constexpr (R::kBits == 16)
        store16(w, in, kCount, kReads == Reads::Accumulates, result);
      else
        store32(w, in, result);
    }
  }
  static void execute(Wave& w, const Instruction& in) {
    run(w, in, std::index_sequence_for<A...>{});
  }
};

// The handler of an instruction that computes each lane by itself: lanewise<F32, F32,
// F32>([](...)).
template <class R, class... A, class F>
constexpr Handler lanewise(F) {
  return &Lanewise<Reads::InOrder, R, F, A...>::execute;
}
template <class R, class... A, class F>
constexpr Handler accumulating(F) {
  return &Lanewise<Reads::Accumulates, R, F, A...>::execute;
}

}  // namespace tessera::amdgpu
