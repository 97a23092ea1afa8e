#pragma once
// A decoded instruction: what the disassembler's text says, with names resolved.

#include <array>
#include <string>
#include <vector>

#include "tests/amdgpu/isa/formats.hpp"

namespace tessera::amdgpu {

struct Wave;
struct Instruction;
using Handler = void (*)(Wave&, const Instruction&);

inline constexpr int kLanes = 64;             // of a row; a wave of 32 uses the lower half
inline constexpr int kVectorRegisters = 512;  // v0..v255, then a0..a255
inline constexpr int kScalarRegisters = 128;
inline constexpr int kAccumulators = 256;  // where a0 is among the vector registers
// Our own numbers of the scalar registers with names: text is decoded, so encodings do not matter.
inline constexpr int kFlatScratch = 102, kVcc = 106, kTtmp = 108, kM0 = 124, kExec = 126;

enum class OperandKind : u8 { None, Vector, Scalar, Constant, Off, Null, Special, Text };

enum class Special : u8 { Scc, Vccz, Execz, SharedBase, SharedLimit, PrivateBase, PrivateLimit };

struct Operand {
  OperandKind kind = OperandKind::None;
  u16 index = 0;  // register
  u8 count = 1;   // registers
  bool negate = false, absolute = false, extend = false;
  bool is_float = false;  // a constant written as a number with a point
  bool high = false;      // v0.h
  bool half = false;      // v0.l or v0.h
  Special special{};
  u32 value = 0;    // a constant in 32 bits,
  u16 value16 = 0;  // in 16
  u64 value64 = 0;  // and in 64
  double number = 0;
  std::string text{};
};

enum class DppKind : u8 {
  None,
  QuadPerm,
  RowShl,
  RowShr,
  RowRor,
  WaveShl,
  WaveRol,
  WaveShr,
  WaveRor,
  RowMirror,
  RowHalfMirror,
  RowBcast15,
  RowBcast31,
  RowNewbcast,
  RowShare,
  RowXmask,
  Dpp8
};

struct Dpp {
  DppKind kind = DppKind::None;
  std::array<u8, 8> select{};
  u8 amount = 0, row_mask = 15, bank_mask = 15;
  bool bound_control = false, fetch_inactive = false;
};

// Part of a register that SDWA selects.
enum class Part : u8 { Byte0, Byte1, Byte2, Byte3, Word0, Word1, Dword };
enum class Unused : u8 { Pad, Extend, Preserve };

struct Sdwa {
  bool used = false;
  Part destination = Part::Dword, source[2] = {Part::Dword, Part::Dword};
  Unused unused = Unused::Pad;
};

struct Modifiers {
  i32 offset = 0, offset0 = 0, offset1 = 0;
  u32 op_sel = 0, op_sel_hi = 0xff, neg_lo = 0, neg_hi = 0;  // a bit an operand
  bool has_op_sel_hi = false;
  bool clamp = false;
  float output_scale = 1;
  u32 bitop3 = 0, cbsz = 0, abid = 0, blgp = 0;
  u32 byte_sel = 0, scale_sel = 0;
  bool offen = false, idxen = false, lds = false, glc = false, sc0 = false, gds = false;
  bool returns = false;  // an atomic that returns the value before
};

// A set of registers.
struct RegisterSet {
  std::array<u64, kVectorRegisters / 64> vector{};
  std::array<u64, kScalarRegisters / 64> scalar{};
  void add_vector(int first, int count);
  void add_scalar(int first, int count);
  void remove(const RegisterSet& other);
  bool meets(const RegisterSet& other) const {
    u64 common = 0;
    for (std::size_t i = 0; i < vector.size(); ++i) common |= vector[i] & other.vector[i];
    for (std::size_t i = 0; i < scalar.size(); ++i) common |= scalar[i] & other.scalar[i];
    return common != 0;
  }
};

// How many of each counter's operations may remain, or -1: what a wait instruction says.
struct WaitCounts {
  int vector_loads = -1, vector_stores = -1, lds = -1, scalar = -1;
};

struct Instruction {
  Handler handler = nullptr;
  u64 pc = 0;      // offset in the image
  u32 target = 0;  // index of the instruction to which it branches
  u32 opcode_id = 0;
  bool is_dpp = false;
  bool is_load = false;  // writes its first operand when a counter says so
  std::array<Operand, 8> operands{};
  u8 count = 0;  // operands
  Modifiers modifiers{};
  Dpp dpp{};
  Sdwa sdwa{};
  WaitCounts wait{};
  RegisterSet touched{}, written{};
  std::vector<Instruction> second{};  // the other half of a dual instruction
  std::string opcode{}, text{}, problem{};

  const Operand& operator[](int i) const { return operands[static_cast<std::size_t>(i)]; }
};

}  // namespace tessera::amdgpu
