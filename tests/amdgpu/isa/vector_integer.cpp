// Vector instructions on 32-bit and 16-bit integers.

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

template <class T>
constexpr T least(T a, T b) {
  return a < b ? a : b;
}
template <class T>
constexpr T greatest(T a, T b) {
  return a > b ? a : b;
}
template <class T>
constexpr T middle(T a, T b, T c) {
  return greatest(least(a, b), least(greatest(a, b), c));
}

u32 bit_count(u32 value) { return static_cast<u32>(std::popcount(value)); }

u32 absolute_difference(u32 a, u32 b) { return a > b ? a - b : b - a; }

u32 sad_u8(u32 a, u32 b, u32 c) {
  for (int i = 0; i < 32; i += 8) c += absolute_difference(a >> i & 0xff, b >> i & 0xff);
  return c;
}

// A byte of the two registers, its sign, or a constant, by each byte of the selector.
u32 permuted(u32 high, u32 low, u32 selector) {
  const u64 both = static_cast<u64>(high) << 32 | low;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 select = selector >> (8 * i) & 0xff;
    u32 byte = 0;
    if (select < 8)
      byte = static_cast<u32>(both >> (8 * select)) & 0xff;
    else if (select < 12)
      byte = (both >> (16 * (select - 8) + 15) & 1) ? 0xff : 0;
    else if (select > 12)
      byte = 0xff;
    result |= byte << (8 * i);
  }
  return result;
}

i32 signed_field(i32 value, u32 offset, u32 width) {
  offset &= 31, width &= 31;
  if (width == 0) return 0;
  const i32 shifted = value >> offset;
  return width + offset < 32 ? sign_extend(static_cast<u32>(shifted), static_cast<int>(width))
                             : shifted;
}

u32 dot4(bool is_signed, u32 a, u32 b, u32 c) {
  for (int i = 0; i < 32; i += 8) {
    const u32 x = a >> i & 0xff, y = b >> i & 0xff;
    c += is_signed ? static_cast<u32>(sign_extend(x, 8) * sign_extend(y, 8)) : x * y;
  }
  return c;
}

void register_bits(Opcodes& t) {
  t.add("v_mov_b32", lanewise<U32, U32>([](u32 a) { return a; }));
  t.add("v_accvgpr_read_b32", t.find("v_mov_b32"));
  t.add("v_accvgpr_write_b32", t.find("v_mov_b32"));
  t.add("v_accvgpr_mov_b32", t.find("v_mov_b32"));
  t.add("v_accvgpr_read", t.find("v_mov_b32"));
  t.add("v_accvgpr_write", t.find("v_mov_b32"));
  t.add("v_not_b32", lanewise<U32, U32>([](u32 a) { return ~a; }));
  t.add("v_bfrev_b32", lanewise<U32, U32>([](u32 a) {
          u32 r = 0;
          for (int i = 0; i < 32; ++i) r |= (a >> i & 1) << (31 - i);
          return r;
        }));
  t.add("v_and_b32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return a & b; }));
  t.add("v_or_b32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return a | b; }));
  t.add("v_xor_b32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return a ^ b; }));
  t.add("v_xnor_b32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return ~(a ^ b); }));
  t.add("v_or3_b32", lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return a | b | c; }));
  t.add("v_xor3_b32", lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return a ^ b ^ c; }));
  t.add("v_and_or_b32",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return (a & b) | c; }));
  t.add("v_lshlrev_b32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return b << (a & 31); }));
  t.add("v_lshrrev_b32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return b >> (a & 31); }));
  t.add("v_ashrrev_i32", lanewise<I32, U32, I32>([](u32 a, i32 b) { return b >> (a & 31); }));
  t.add("v_lshl_or_b32",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; }));
  t.add("v_bfe_u32", lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) {
          return (a >> (b & 31)) & ((1u << (c & 31)) - 1);
        }));
  t.add("v_bfe_i32",
        lanewise<I32, I32, U32, U32>([](i32 a, u32 b, u32 c) { return signed_field(a, b, c); }));
  t.add("v_bfi_b32",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }));
  t.add("v_bfm_b32",
        lanewise<U32, U32, U32>([](u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); }));
  t.add("v_alignbit_b32", lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) {
          return static_cast<u32>((static_cast<u64>(a) << 32 | b) >> (c & 31));
        }));
  t.add("v_alignbyte_b32", lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) {
          return static_cast<u32>((static_cast<u64>(a) << 32 | b) >> (8 * (c & 3)));
        }));
  t.add("v_perm_b32",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return permuted(a, b, c); }));
  t.add("v_bcnt_u32_b32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return bit_count(a) + b; }));
  t.add("v_ffbl_b32",
        lanewise<U32, U32>([](u32 a) { return a ? static_cast<u32>(std::countr_zero(a)) : ~0u; }));
  t.add("v_ffbh_u32",
        lanewise<U32, U32>([](u32 a) { return a ? static_cast<u32>(std::countl_zero(a)) : ~0u; }));
  t.add("v_ffbh_i32", lanewise<U32, U32>([](u32 a) {
          const u32 changes = a ^ static_cast<u32>(static_cast<i32>(a) >> 31);
          return changes ? static_cast<u32>(std::countl_zero(changes)) : ~0u;
        }));
}

void register_sums(Opcodes& t) {
  t.add("v_add_u32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return a + b; }));
  t.add("v_sub_u32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return a - b; }));
  t.add("v_subrev_u32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return b - a; }));
  t.add("v_add_i32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return a + b; }));
  t.add("v_sub_i32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return a - b; }));
  t.add("v_add3_u32", lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return a + b + c; }));
  t.add("v_lshl_add_u32",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }));
  t.add("v_add_lshl_u32",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }));
  t.add("v_xad_u32", lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return (a ^ b) + c; }));
  t.add("v_sad_u32", lanewise<U32, U32, U32, U32>(
                         [](u32 a, u32 b, u32 c) { return absolute_difference(a, b) + c; }));
  t.add("v_sad_u8",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return sad_u8(a, b, c); }));
  t.add("v_min_u32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return least(a, b); }));
  t.add("v_max_u32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return greatest(a, b); }));
  t.add("v_min_i32", lanewise<I32, I32, I32>([](i32 a, i32 b) { return least(a, b); }));
  t.add("v_max_i32", lanewise<I32, I32, I32>([](i32 a, i32 b) { return greatest(a, b); }));
  t.add("v_min3_u32",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return least(least(a, b), c); }));
  t.add("v_max3_u32", lanewise<U32, U32, U32, U32>(
                          [](u32 a, u32 b, u32 c) { return greatest(greatest(a, b), c); }));
  t.add("v_min3_i32",
        lanewise<I32, I32, I32, I32>([](i32 a, i32 b, i32 c) { return least(least(a, b), c); }));
  t.add("v_max3_i32", lanewise<I32, I32, I32, I32>(
                          [](i32 a, i32 b, i32 c) { return greatest(greatest(a, b), c); }));
  t.add("v_med3_u32",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return middle(a, b, c); }));
  t.add("v_med3_i32",
        lanewise<I32, I32, I32, I32>([](i32 a, i32 b, i32 c) { return middle(a, b, c); }));
  t.add("v_maxmin_i32",
        lanewise<I32, I32, I32, I32>([](i32 a, i32 b, i32 c) { return least(greatest(a, b), c); }));
  t.add("v_minmax_i32",
        lanewise<I32, I32, I32, I32>([](i32 a, i32 b, i32 c) { return greatest(least(a, b), c); }));
  t.add("v_maxmin_u32",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return least(greatest(a, b), c); }));
  t.add("v_minmax_u32",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return greatest(least(a, b), c); }));
}

void register_products(Opcodes& t) {
  t.add("v_mul_lo_u32", lanewise<U32, U32, U32>([](u32 a, u32 b) { return a * b; }));
  t.add("v_mul_hi_u32", lanewise<U32, U32, U32>([](u32 a, u32 b) {
          return static_cast<u32>(static_cast<u64>(a) * b >> 32);
        }));
  t.add("v_mul_hi_i32", lanewise<I32, I32, I32>([](i32 a, i32 b) {
          return static_cast<i32>(static_cast<i64>(a) * b >> 32);
        }));
  t.add("v_mul_u32_u24",
        lanewise<U32, U32, U32>([](u32 a, u32 b) { return (a & 0xffffff) * (b & 0xffffff); }));
  t.add("v_mul_hi_u32_u24", lanewise<U32, U32, U32>([](u32 a, u32 b) {
          return static_cast<u32>(static_cast<u64>(a & 0xffffff) * (b & 0xffffff) >> 32);
        }));
  t.add("v_mul_i32_i24", lanewise<U32, U32, U32>([](u32 a, u32 b) {
          return static_cast<u32>(static_cast<i64>(sign_extend(a, 24)) * sign_extend(b, 24));
        }));
  t.add("v_mul_hi_i32_i24", lanewise<U32, U32, U32>([](u32 a, u32 b) {
          return static_cast<u32>(static_cast<i64>(sign_extend(a, 24)) * sign_extend(b, 24) >> 32);
        }));
  t.add("v_mad_u32_u24", lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) {
          return (a & 0xffffff) * (b & 0xffffff) + c;
        }));
  t.add("v_mad_i32_i24", lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) {
          return static_cast<u32>(static_cast<i64>(sign_extend(a, 24)) * sign_extend(b, 24)) + c;
        }));
  t.add("v_mad_u32_u16",
        lanewise<U32, U16, U16, U32>([](u32 a, u32 b, u32 c) { return a * b + c; }));
  t.add("v_mad_i32_i16", lanewise<U32, I16, I16, U32>(
                             [](i32 a, i32 b, u32 c) { return static_cast<u32>(a * b) + c; }));
  t.add("v_dot4_i32_i8",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return dot4(true, a, b, c); }));
  t.add("v_dot4_u32_u8",
        lanewise<U32, U32, U32, U32>([](u32 a, u32 b, u32 c) { return dot4(false, a, b, c); }));
}

void register_short(Opcodes& t) {
  t.add("v_mov_b16", lanewise<U16, U16>([](u32 a) { return a; }));
  t.add("v_not_b16", lanewise<U16, U16>([](u32 a) { return ~a; }));
  t.add("v_and_b16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return a & b; }));
  t.add("v_or_b16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return a | b; }));
  t.add("v_xor_b16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return a ^ b; }));
  t.add("v_add_u16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return a + b; }));
  t.add("v_sub_u16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return a - b; }));
  t.add("v_subrev_u16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return b - a; }));
  t.add("v_add_i16", t.find("v_add_u16"));
  t.add("v_sub_i16", t.find("v_sub_u16"));
  t.add("v_mul_lo_u16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return a * b; }));
  t.add("v_mad_u16", lanewise<U16, U16, U16, U16>([](u32 a, u32 b, u32 c) { return a * b + c; }));
  t.add("v_mad_i16", t.find("v_mad_u16"));
  t.add("v_mad_legacy_u16", t.find("v_mad_u16"));
  t.add("v_lshlrev_b16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return b << (a & 15); }));
  t.add("v_lshrrev_b16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return b >> (a & 15); }));
  t.add("v_ashrrev_i16", lanewise<I16, U16, I16>([](u32 a, i32 b) { return b >> (a & 15); }));
  t.add("v_min_u16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return least(a, b); }));
  t.add("v_max_u16", lanewise<U16, U16, U16>([](u32 a, u32 b) { return greatest(a, b); }));
  t.add("v_min_i16", lanewise<I16, I16, I16>([](i32 a, i32 b) { return least(a, b); }));
  t.add("v_max_i16", lanewise<I16, I16, I16>([](i32 a, i32 b) { return greatest(a, b); }));
  t.add("v_sat_pk_u8_i16", lanewise<U16, U32>([](u32 a) {
          const auto byte = [](i32 v) { return static_cast<u32>(least(greatest(v, 0), 255)); };
          return byte(sign_extend(a, 16)) | byte(sign_extend(a >> 16, 16)) << 8;
        }));
}

// Any function of three bits: bit 4a + 2b + c of the table.
void bitop3(Wave& w, const Instruction& in) {
  const Argument<U32> a(w, in, 1), b(w, in, 2), c(w, in, 3);
  Row result{};
  for (u32 i = 0; i < 8; ++i) {
    if (!(in.modifiers.bitop3 >> i & 1)) continue;
    const u32 fa = i & 4 ? 0 : ~0u, fb = i & 2 ? 0 : ~0u, fc = i & 1 ? 0 : ~0u;
    for (int l = 0; l < kLanes; ++l) result.lane[l] |= (a[l] ^ fa) & (b[l] ^ fb) & (c[l] ^ fc);
  }
  store32(w, in, result);
}

void bitop3_short(Wave& w, const Instruction& in) {
  const Argument<U16> a(w, in, 1), b(w, in, 2), c(w, in, 3);
  Row result{};
  for (u32 i = 0; i < 8; ++i) {
    if (!(in.modifiers.bitop3 >> i & 1)) continue;
    const u32 fa = i & 4 ? 0 : ~0u, fb = i & 2 ? 0 : ~0u, fc = i & 1 ? 0 : ~0u;
    for (int l = 0; l < kLanes; ++l)
      result.lane[l] |= (a[l] ^ fa) & (b[l] ^ fb) & (c[l] ^ fc) & 0xffffu;
  }
  store16(w, in, 3, true, result);
}

// Sums with a carry: result, carry out, the two, carry in.
template <class F>
void with_carry(Wave& w, const Instruction& in, bool carries, F sum) {
  Row b1, b2, result;
  const u32* a = lanes32(w, in, 2, b1);
  const u32* b = lanes32(w, in, 3, b2);
  const u64 carry_in = carries ? mask_value(w, in[4]) : 0;
  u64 carry_out = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u64 wide = sum(a[l], b[l], carry_in >> l & 1);
    result.lane[l] = static_cast<u32>(wide);
    carry_out |= (wide >> 32 & 1) << l;
  }
  if (in.is_dpp || in.sdwa.used) refuse(in, "dpp or sdwa with a carry");
  set_mask(w, in, 1, carry_out & w.active);
  store32(w, in, result);
}

void register_carries(Opcodes& t) {
  t.add("v_add_co_u32", [](Wave& w, const Instruction& in) {
    with_carry(w, in, false, [](u64 a, u64 b, u64) { return a + b; });
  });
  t.add("v_sub_co_u32", [](Wave& w, const Instruction& in) {
    with_carry(w, in, false, [](u64 a, u64 b, u64) { return a - b; });
  });
  t.add("v_subrev_co_u32", [](Wave& w, const Instruction& in) {
    with_carry(w, in, false, [](u64 a, u64 b, u64) { return b - a; });
  });
  t.add("v_addc_co_u32", [](Wave& w, const Instruction& in) {
    with_carry(w, in, true, [](u64 a, u64 b, u64 c) { return a + b + c; });
  });
  t.add("v_subb_co_u32", [](Wave& w, const Instruction& in) {
    with_carry(w, in, true, [](u64 a, u64 b, u64 c) { return a - b - c; });
  });
  t.add("v_subbrev_co_u32", [](Wave& w, const Instruction& in) {
    with_carry(w, in, true, [](u64 a, u64 b, u64 c) { return b - a - c; });
  });
}

void select(Wave& w, const Instruction& in) {
  const Argument<U32> no(w, in, 1), yes(w, in, 2);
  const u64 mask = in.count > 3 ? mask_value(w, in[3]) : w.mask(kVcc);  // a dual one names none
  Row result;
  for (int l = 0; l < kLanes; ++l) result.lane[l] = mask >> l & 1 ? yes[l] : no[l];
  store32(w, in, result);
}

void select_short(Wave& w, const Instruction& in) {
  const Argument<U16> no(w, in, 1), yes(w, in, 2);
  const u64 mask = mask_value(w, in[3]);
  Row result;
  for (int l = 0; l < kLanes; ++l) result.lane[l] = mask >> l & 1 ? yes[l] : no[l];
  store16(w, in, 3, false, result);
}

}  // namespace

void register_vector_integer(Opcodes& t) {
  register_bits(t);
  register_sums(t);
  register_products(t);
  register_short(t);
  register_carries(t);
  t.add("v_bitop3_b32", bitop3);
  t.add("v_bitop3_b16", bitop3_short);
  t.add("v_cndmask_b32", select);
  t.add("v_cndmask_b16", select_short);
}

}  // namespace tessera::amdgpu
