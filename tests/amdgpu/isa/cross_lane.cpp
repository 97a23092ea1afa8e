// Instructions that move values between lanes, and the lane selection of DPP.

#include "tests/amdgpu/isa/cross_lane.hpp"

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

// The lane from which `lane` reads, or -1.
int dpp_source(const Dpp& dpp, int lane, int size) {
  const int row = lane & ~15, in_row = lane & 15, amount = dpp.amount;
  switch (dpp.kind) {
    case DppKind::QuadPerm:
      return (lane & ~3) + dpp.select[static_cast<std::size_t>(lane & 3)];
    case DppKind::Dpp8:
      return (lane & ~7) + dpp.select[static_cast<std::size_t>(lane & 7)];
    case DppKind::RowShl:
      return in_row + amount < 16 ? lane + amount : -1;
    case DppKind::RowShr:
      return in_row >= amount ? lane - amount : -1;
    case DppKind::RowRor:
      return row + ((in_row - amount) & 15);
    case DppKind::WaveShl:
      return lane + 1 < size ? lane + 1 : -1;
    case DppKind::WaveRol:
      return (lane + 1) % size;
    case DppKind::WaveShr:
      return lane > 0 ? lane - 1 : -1;
    case DppKind::WaveRor:
      return (lane + size - 1) % size;
    case DppKind::RowMirror:
      return row + 15 - in_row;
    case DppKind::RowHalfMirror:
      return (lane & ~7) + 7 - (lane & 7);
    case DppKind::RowBcast15:
      return lane >= 16 ? row - 1 : -1;
    case DppKind::RowBcast31:
      return lane >= 32 ? 31 : -1;
    case DppKind::RowNewbcast:
    case DppKind::RowShare:
      return row + amount;
    case DppKind::RowXmask:
      return row + (in_row ^ amount);
    case DppKind::None:
      return lane;
  }
  return -1;
}

void read_first_lane(Wave& w, const Instruction& in) {
  Row buffer;
  const u32* from = raw_lanes(w, in, 1, buffer);
  set_scalar(w, in, 0, from[w.active ? std::countr_zero(w.active) : 0]);
}

void read_lane(Wave& w, const Instruction& in) {
  Row buffer;
  const u32* from = raw_lanes(w, in, 1, buffer);
  set_scalar(w, in, 0, from[scalar_value(w, in[2]) & (w.size - 1)]);
}

void write_lane(Wave& w, const Instruction& in) {
  w.vector[in[0].index].lane[scalar_value(w, in[2]) & (w.size - 1)] = scalar_value(w, in[1]);
}

// How many of the mask's bits are below the lane, in its lower or upper half.
template <bool kHigh>
void count_below(Wave& w, const Instruction& in) {
  const Argument<U32> mask(w, in, 1), sum(w, in, 2);
  Row result;
  for (int l = 0; l < kLanes; ++l) {
    const int bits = kHigh ? std::max(l - 32, 0) : std::min(l, 32);
    const u32 below = bits >= 32 ? ~0u : (1u << bits) - 1;
    result.lane[l] = static_cast<u32>(std::popcount(mask[l] & below)) + sum[l];
  }
  store32(w, in, result);
}

// Exchanges the odd rows of `stride` lanes of the first register with the even ones of the second.
template <int kStride>
void swap_rows(Wave& w, const Instruction& in) {
  if (in[0].kind != OperandKind::Vector || in[1].kind != OperandKind::Vector)
    refuse(in, "its operands");
  u32* a = w.vector[in[0].index].lane;
  u32* b = w.vector[in[1].index].lane;
  for (int l = 0; l < kLanes; ++l)
    if (!(l & kStride) && (w.active >> l & 1) && (w.active >> (l + kStride) & 1))
      std::swap(a[l + kStride], b[l]);
}

void swap_registers(Wave& w, const Instruction& in) {
  Row a = w.vector[in[0].index], b = w.vector[in[1].index];
  store_row(w, in[0].index, b.lane);
  store_row(w, in[1].index, a.lane);
}

// v_permlane16: within each row of 16, lane i reads the lane that nibble i of the 64 bits names;
// v_permlanex16 reads it from the other row of the pair.
template <bool kOther>
void permute_row(Wave& w, const Instruction& in) {
  Row buffer, result;
  const u32* from = raw_lanes(w, in, 1, buffer);
  const u64 select = scalar_value(w, in[2]) | static_cast<u64>(scalar_value(w, in[3])) << 32;
  const bool fetch_inactive = in.modifiers.op_sel & 1, bound_control = in.modifiers.op_sel & 2;
  const u32* old = w.vector[in[0].index].lane;
  for (int l = 0; l < kLanes; ++l) {
    const int source =
        ((l & ~15) ^ (kOther ? 16 : 0)) + static_cast<int>(select >> (4 * (l & 15)) & 15);
    const bool valid = fetch_inactive || (w.active >> source & 1);
    result.lane[l] = valid ? from[source] : bound_control ? 0 : old[l];
  }
  store32(w, in, result);
}

void permute_half(Wave& w, const Instruction& in) {  // v_permlane64: exchanges the halves
  Row buffer, result;
  const u32* from = raw_lanes(w, in, 1, buffer);
  for (int l = 0; l < kLanes; ++l) result.lane[l] = from[w.size == 64 ? l ^ 32 : l];
  store32(w, in, result);
}

}  // namespace

void select_lanes(Wave& w, const Instruction& in) {
  const Operand& operand = in[1];
  if (operand.kind != OperandKind::Vector)
    refuse(in, "dpp of an operand that is no vector register");
  const Dpp& dpp = in.dpp;
  const u32* from = w.vector[operand.index].lane;
  u64 written = 0;
  for (int l = 0; l < static_cast<int>(w.size); ++l) {
    const int source = dpp_source(dpp, l, static_cast<int>(w.size));
    const bool valid = source >= 0 && (dpp.fetch_inactive || (w.active >> source & 1));
    w.dpp_row.lane[l] = valid ? from[source] : 0;
    const bool enabled = (dpp.row_mask >> (l / 16) & 1) && (dpp.bank_mask >> (l / 4 % 4) & 1);
    written |= static_cast<u64>(enabled && (valid || dpp.bound_control)) << l;
  }
  w.active &= written;
}

void register_lanes(Opcodes& t) {
  t.add("v_readfirstlane_b32", read_first_lane);
  t.add("v_readlane_b32", read_lane);
  t.add("v_writelane_b32", write_lane);
  t.add("v_mbcnt_lo_u32_b32", count_below<false>);
  t.add("v_mbcnt_hi_u32_b32", count_below<true>);
  t.add("v_permlane32_swap_b32", swap_rows<32>);
  t.add("v_permlane16_swap_b32", swap_rows<16>);
  t.add("v_swap_b32", swap_registers);
  t.add("v_permlane16_b32", permute_row<false>);
  t.add("v_permlanex16_b32", permute_row<true>);
  t.add("v_permlane64_b32", permute_half);
}

}  // namespace tessera::amdgpu
