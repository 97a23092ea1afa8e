// Matrix instructions. Products are exact, sums of one instruction are made in 64 bits and rounded
// once: the hardware's order and its treatment of denormals are not modelled.

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

enum class Element : u8 { Half, Bfloat, Single, E4m3, E5m2 };

// blocks independent products D = A B + C of rows x rows matrices, each with `depth` terms.
struct Shape {
  int rows, depth, blocks;
  Element a, b;
};

constexpr int bits_of(Element element) {
  return element == Element::Single                             ? 32
         : element == Element::E4m3 || element == Element::E5m2 ? 8
                                                                : 16;
}

struct Decoder {
  Element element;
  Float8 format;
  double operator()(u32 bits) const {
    switch (element) {
      case Element::Half:
        return half_to_float(bits);
      case Element::Bfloat:
        return bfloat_to_float(bits);
      case Element::Single:
        return as_float(bits);
      case Element::E4m3:
      case Element::E5m2:
        return float8_to_float(bits, format);
    }
    return 0;
  }
};

Decoder decoder(const Wave& w, Element element) {
  const bool one_zero = w.group->target->one_zero_float8;
  return {element, element == Element::E5m2 ? Float8{5, 2, one_zero} : Float8{4, 3, one_zero}};
}

// Element j of a lane's operand, as bits.
u32 element_bits(const Wave& w, int first, int bits, int lane, int j) {
  const int per = 32 / bits;
  const u32 word = w.vector[first + j / per].lane[lane];
  return bits == 32 ? word : word >> (bits * (j % per)) & ((1u << bits) - 1);
}

struct Accumulator {  // C, a register a row of it
  const Wave& w;
  const Operand& operand;
  const u32* row(int r, Row& buffer) const {
    if (operand.kind == OperandKind::Vector) return w.vector[operand.index + r].lane;
    broadcast(scalar_value(w, operand), buffer);
    return buffer.lane;
  }
};

constexpr int kMostTerms = 64;

// A or B of every block as [block][k][row].
template <Shape kShape>
struct Factor {
  alignas(64) double at[kShape.blocks][kShape.depth][kShape.rows];
  Factor(const Wave& w, int first, Element element) {
    static_assert(kShape.depth <= kMostTerms);
    const Decoder decode = decoder(w, element);
    constexpr int kGroups = 64 / kShape.rows / kShape.blocks;  // lanes that share a row, by depth
    constexpr int kPerLane = kShape.depth / kGroups;
    const int bits = bits_of(element);
    for (int l = 0; l < 64; ++l) {
      const int row = l % kShape.rows, other = l / kShape.rows;
      const int block = kGroups == 1 ? other : 0, group = kGroups == 1 ? 0 : other;
      for (int j = 0; j < kPerLane; ++j)
        at[block][group * kPerLane + j][row] = decode(element_bits(w, first, bits, l, j));
    }
  }
};

template <Shape kShape>
void mfma(Wave& w, const Instruction& in) {
  const Modifiers& m = in.modifiers;
  if (m.cbsz || m.abid || m.blgp || m.neg_lo) refuse(in, "a broadcast or permutation of blocks");
  if (in[1].kind != OperandKind::Vector || in[2].kind != OperandKind::Vector)
    refuse(in, "its operands");
  const Factor<kShape> a(w, in[1].index, kShape.a), b(w, in[2].index, kShape.b);
  const Accumulator c{w, in[3]};
  constexpr int kRows = kShape.rows;
  constexpr int kRegisters = kRows * kRows * kShape.blocks / 64,
                kOfBlock = kRows == 4 ? 4 : kRows * kRows / 64;
  for (int r = 0; r < kRegisters; ++r) {
    Row buffer, result;
    const u32* from = c.row(r, buffer);
    for (int part = 0; part < 64 / kRows; ++part) {  // lanes that have a row of D in common
      const int in_block = r % kOfBlock;
      const int block = kRows == 4 ? part : r / kOfBlock;
      const int row = kRows == 4 ? r : 256 / kRows * (in_block / 4) + 4 * part + in_block % 4;
      double sum[kRows];
      for (int n = 0; n < kRows; ++n) sum[n] = as_float(from[part * kRows + n]);
      for (int k = 0; k < kShape.depth; ++k) {
        const double factor = a.at[block][k][row];
        for (int n = 0; n < kRows; ++n) sum[n] += factor * b.at[block][k][n];
      }
      for (int n = 0; n < kRows; ++n)
        result.lane[part * kRows + n] = as_bits(static_cast<float>(sum[n]));
    }
    w.vector[in[0].index + r] = result;  // whatever EXEC says
  }
}

// The instructions of wave32: 16 x 16 x 16.
enum class WmmaLayout { Gfx11, Gfx12 };

template <Element kA, Element kB, WmmaLayout kLayout>
void wmma_as(Wave& w, const Instruction& in) {
  constexpr bool kRepeated = kLayout == WmmaLayout::Gfx11;
  constexpr int kPerLane = kRepeated ? 16 : 8;
  const auto read = [&](int at, Element element, double(&out)[16][16]) {
    const Decoder decode = decoder(w, element);
    for (int l = 0; l < 32; ++l)
      for (int j = 0; j < kPerLane; ++j) {
        const u32 bits = element_bits(w, in[at].index, bits_of(element), l, j);
        if (kRepeated && l >= 16 &&
            bits != element_bits(w, in[at].index, bits_of(element), l - 16, j))
          throw Finding(fmt::format("source {} of a WMMA must be the same in lanes {} and {}",
                                    at - 1, l - 16, l),
                        l);
        out[kRepeated ? j : 8 * (l / 16) + j][l % 16] = decode(bits);
      }
  };
  double a[16][16], b[16][16];
  read(1, kA, a);
  read(2, kB, b);
  const Accumulator c{w, in[3]};
  for (int r = 0; r < 8; ++r) {
    Row buffer, result{};
    const u32* from = c.row(r, buffer);
    for (int half = 0; half < 2; ++half) {
      const int row = kRepeated ? 2 * r + half : 8 * half + r;
      double sum[16];
      for (int n = 0; n < 16; ++n) sum[n] = as_float(from[16 * half + n]);
      for (int k = 0; k < 16; ++k)
        for (int n = 0; n < 16; ++n) sum[n] += a[k][row] * b[k][n];
      for (int n = 0; n < 16; ++n) result.lane[16 * half + n] = as_bits(static_cast<float>(sum[n]));
    }
    w.vector[in[0].index + r] = result;
  }
}

template <Element kA, Element kB>
void wmma(Wave& w, const Instruction& in) {
  if (w.size != 32) refuse(in, "WMMA in a wave of 64");
  if (w.exec() != w.lanes) throw Finding("WMMA with lanes switched off");
  if (in.modifiers.neg_lo || in.modifiers.neg_hi || in.modifiers.op_sel)
    refuse(in, "its modifiers");
  if (w.group->target->generation == Generation::Gfx11)
    wmma_as<kA, kB, WmmaLayout::Gfx11>(w, in);
  else
    wmma_as<kA, kB, WmmaLayout::Gfx12>(w, in);
}

template <int kRows, int kDepth, int kBlocks, Element kA, Element kB = kA>
constexpr Handler shape() {
  return mfma<Shape{kRows, kDepth, kBlocks, kA, kB}>;
}

void register_halves(Opcodes& t) {
  t.add("v_mfma_f32_32x32x8_f16", shape<32, 8, 1, Element::Half>());
  t.add("v_mfma_f32_16x16x16_f16", shape<16, 16, 1, Element::Half>());
  t.add("v_mfma_f32_32x32x4_2b_f16", shape<32, 4, 2, Element::Half>());
  t.add("v_mfma_f32_16x16x4_4b_f16", shape<16, 4, 4, Element::Half>());
  t.add("v_mfma_f32_4x4x4_16b_f16", shape<4, 4, 16, Element::Half>());
  t.add("v_mfma_f32_32x32x8_bf16", shape<32, 8, 1, Element::Bfloat>());
  t.add("v_mfma_f32_16x16x16_bf16", shape<16, 16, 1, Element::Bfloat>());
  t.add("v_mfma_f32_32x32x4_2b_bf16", shape<32, 4, 2, Element::Bfloat>());
  t.add("v_mfma_f32_16x16x4_4b_bf16", shape<16, 4, 4, Element::Bfloat>());
  t.add("v_mfma_f32_4x4x4_16b_bf16", shape<4, 4, 16, Element::Bfloat>());
  // gfx950
  t.add("v_mfma_f32_32x32x16_f16", shape<32, 16, 1, Element::Half>());
  t.add("v_mfma_f32_16x16x32_f16", shape<16, 32, 1, Element::Half>());
  t.add("v_mfma_f32_32x32x16_bf16", shape<32, 16, 1, Element::Bfloat>());
  t.add("v_mfma_f32_16x16x32_bf16", shape<16, 32, 1, Element::Bfloat>());
  // gfx90a's names
  for (const char* size : {"32x32x8", "16x16x16"}) {
    t.add(std::string("v_mfma_f32_") + size + "f16",
          t.find(std::string("v_mfma_f32_") + size + "_f16"));
    t.add(std::string("v_mfma_f32_") + size + "bf16_1k",
          t.find(std::string("v_mfma_f32_") + size + "_bf16"));
  }
  t.add("v_mfma_f32_32x32x4f16", t.find("v_mfma_f32_32x32x4_2b_f16"));
  t.add("v_mfma_f32_16x16x4f16", t.find("v_mfma_f32_16x16x4_4b_f16"));
  t.add("v_mfma_f32_4x4x4f16", t.find("v_mfma_f32_4x4x4_16b_f16"));
  t.add("v_mfma_f32_32x32x4bf16_1k", t.find("v_mfma_f32_32x32x4_2b_bf16"));
  t.add("v_mfma_f32_16x16x4bf16_1k", t.find("v_mfma_f32_16x16x4_4b_bf16"));
  t.add("v_mfma_f32_4x4x4bf16_1k", t.find("v_mfma_f32_4x4x4_16b_bf16"));
}

void register_singles(Opcodes& t) {
  t.add("v_mfma_f32_32x32x2_f32", shape<32, 2, 1, Element::Single>());
  t.add("v_mfma_f32_16x16x4_f32", shape<16, 4, 1, Element::Single>());
  t.add("v_mfma_f32_32x32x1_2b_f32", shape<32, 1, 2, Element::Single>());
  t.add("v_mfma_f32_16x16x1_4b_f32", shape<16, 1, 4, Element::Single>());
  t.add("v_mfma_f32_4x4x1_16b_f32", shape<4, 1, 16, Element::Single>());
  t.add("v_mfma_f32_32x32x2f32", t.find("v_mfma_f32_32x32x2_f32"));
  t.add("v_mfma_f32_16x16x4f32", t.find("v_mfma_f32_16x16x4_f32"));
  t.add("v_mfma_f32_32x32x1f32", t.find("v_mfma_f32_32x32x1_2b_f32"));
  t.add("v_mfma_f32_16x16x1f32", t.find("v_mfma_f32_16x16x1_4b_f32"));
  t.add("v_mfma_f32_4x4x1f32", t.find("v_mfma_f32_4x4x1_16b_f32"));
}

template <Element kA, Element kB>
void register_bytes(Opcodes& t, const std::string& types) {
  t.add("v_mfma_f32_16x16x32_" + types, shape<16, 32, 1, kA, kB>());
  t.add("v_mfma_f32_32x32x16_" + types, shape<32, 16, 1, kA, kB>());
  t.add("v_wmma_f32_16x16x16_" + types, wmma<kA, kB>);
}

}  // namespace

void register_matrix(Opcodes& t) {
  register_halves(t);
  register_singles(t);
  register_bytes<Element::E4m3, Element::E4m3>(t, "fp8_fp8");
  register_bytes<Element::E4m3, Element::E5m2>(t, "fp8_bf8");
  register_bytes<Element::E5m2, Element::E4m3>(t, "bf8_fp8");
  register_bytes<Element::E5m2, Element::E5m2>(t, "bf8_bf8");
  t.add("v_wmma_f32_16x16x16_f16", wmma<Element::Half, Element::Half>);
  t.add("v_wmma_f32_16x16x16_bf16", wmma<Element::Bfloat, Element::Bfloat>);
}

}  // namespace tessera::amdgpu
