#include "tests/amdgpu/isa/opcodes.hpp"

#include <array>
#include <utility>

namespace tessera::amdgpu {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

// gfx11 and gfx12 names -> ours, whole words.
constexpr std::array<Pair, 58> kRenamed{{
    {"v_add_nc_u32", "v_add_u32"},
    {"v_sub_nc_u32", "v_sub_u32"},
    {"v_subrev_nc_u32", "v_subrev_u32"},
    {"v_add_co_ci_u32", "v_addc_co_u32"},
    {"v_sub_co_ci_u32", "v_subb_co_u32"},
    {"v_subrev_co_ci_u32", "v_subbrev_co_u32"},
    {"v_add_nc_u16", "v_add_u16"},
    {"v_sub_nc_u16", "v_sub_u16"},
    {"v_add_nc_i32", "v_add_i32"},
    {"v_sub_nc_i32", "v_sub_i32"},
    {"v_add_nc_i16", "v_add_i16"},
    {"v_sub_nc_i16", "v_sub_i16"},
    {"v_max_num_f32", "v_max_f32"},
    {"v_min_num_f32", "v_min_f32"},
    {"v_max_num_f16", "v_max_f16"},
    {"v_min_num_f16", "v_min_f16"},
    {"v_max_num_f64", "v_max_f64"},
    {"v_min_num_f64", "v_min_f64"},
    {"v_max3_num_f32", "v_max3_f32"},
    {"v_min3_num_f32", "v_min3_f32"},
    {"v_max3_num_f16", "v_max3_f16"},
    {"v_min3_num_f16", "v_min3_f16"},
    {"v_med3_num_f32", "v_med3_f32"},
    {"v_med3_num_f16", "v_med3_f16"},
    {"v_maxmin_num_f32", "v_maxmin_f32"},
    {"v_minmax_num_f32", "v_minmax_f32"},
    {"v_pk_max_num_f16", "v_pk_max_f16"},
    {"v_pk_min_num_f16", "v_pk_min_f16"},
    {"v_cvt_pk_rtz_f16_f32", "v_cvt_pkrtz_f16_f32"},
    {"v_cvt_pkrtz_f16_f32", "v_cvt_pkrtz_f16_f32"},
    {"v_mul_legacy_f32", "v_mul_legacy_f32"},
    {"v_mul_dx9_zero_f32", "v_mul_legacy_f32"},
    {"v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32"},
    {"v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32"},
    {"v_ashrrev_i64", "v_ashrrev_i64"},
    {"v_mad_co_u64_u32", "v_mad_u64_u32"},
    {"v_mad_co_i64_i32", "v_mad_i64_i32"},
    {"v_and_b16", "v_and_b16"},
    {"v_or_b16", "v_or_b16"},
    {"v_ldexp_f32", "v_ldexp_f32"},
    {"s_add_co_i32", "s_add_i32"},
    {"s_sub_co_i32", "s_sub_i32"},
    {"s_add_co_u32", "s_add_u32"},
    {"s_sub_co_u32", "s_sub_u32"},
    {"s_add_co_ci_u32", "s_addc_u32"},
    {"s_sub_co_ci_u32", "s_subb_u32"},
    {"s_addk_co_i32", "s_addk_i32"},
    {"s_add_nc_u64", "s_add_u64"},
    {"s_sub_nc_u64", "s_sub_u64"},
    {"s_cls_i32", "s_flbit_i32"},
    {"s_clz_i32_u32", "s_flbit_i32_b32"},
    {"s_clz_i32_u64", "s_flbit_i32_b64"},
    {"s_ctz_i32_b32", "s_ff1_i32_b32"},
    {"s_ctz_i32_b64", "s_ff1_i32_b64"},
    {"v_clz_i32_u32", "v_ffbh_u32"},
    {"v_ctz_i32_b32", "v_ffbl_b32"},
    {"v_cls_i32", "v_ffbh_i32"},
    {"s_barrier_leave", "s_barrier_leave"},
}};

// Parts of names, in memory instructions and bitwise ones.
constexpr std::array<Pair, 34> kParts{{
    {"_and_not1_", "_andn2_"},
    {"_or_not1_", "_orn2_"},
    {"_and_not0_", "_andn1_"},
    {"_or_not0_", "_orn1_"},
    {"_load_b32", "_load_dword"},
    {"_load_b64", "_load_dwordx2"},
    {"_load_b96", "_load_dwordx3"},
    {"_load_b128", "_load_dwordx4"},
    {"_load_b256", "_load_dwordx8"},
    {"_load_b512", "_load_dwordx16"},
    {"_store_b8", "_store_byte"},
    {"_store_b16", "_store_short"},
    {"_store_b32", "_store_dword"},
    {"_store_b64", "_store_dwordx2"},
    {"_store_b96", "_store_dwordx3"},
    {"_store_b128", "_store_dwordx4"},
    {"_store_d16_hi_b8", "_store_byte_d16_hi"},
    {"_store_d16_hi_b16", "_store_short_d16_hi"},
    {"_load_u8", "_load_ubyte"},
    {"_load_i8", "_load_sbyte"},
    {"_load_u16", "_load_ushort"},
    {"_load_i16", "_load_sshort"},
    {"_load_d16_hi_b16", "_load_short_d16_hi"},
    {"_load_d16_b16", "_load_short_d16"},
    {"_load_d16_hi_u8", "_load_ubyte_d16_hi"},
    {"_load_d16_u8", "_load_ubyte_d16"},
    {"_load_d16_hi_i8", "_load_sbyte_d16_hi"},
    {"_load_d16_i8", "_load_sbyte_d16"},
    {"_atomic_add_u32", "_atomic_add"},
    {"_atomic_add_u64", "_atomic_add_x2"},
    {"_atomic_cmpswap_b32", "_atomic_cmpswap"},
    {"_atomic_cmpswap_b64", "_atomic_cmpswap_x2"},
    {"_atomic_swap_b32", "_atomic_swap"},
    {"_atomic_swap_b64", "_atomic_swap_x2"},
}};

constexpr std::array<Pair, 17> kLdsParts{{
    {"ds_load_b", "ds_read_b"},
    {"ds_load_u", "ds_read_u"},
    {"ds_load_i", "ds_read_i"},
    {"ds_load_2addr_stride64_b", "ds_read2st64_b"},
    {"ds_load_2addr_b", "ds_read2_b"},
    {"ds_store_2addr_stride64_b", "ds_write2st64_b"},
    {"ds_store_2addr_b", "ds_write2_b"},
    {"ds_store_b", "ds_write_b"},
    {"ds_load_tr", "ds_read_tr"},
    {"ds_load_addtid", "ds_read_addtid"},
    {"ds_store_addtid", "ds_write_addtid"},
    {"ds_storexchg_rtn", "ds_wrxchg_rtn"},
    {"ds_cmpstore_rtn", "ds_cmpstore_rtn"},
    {"ds_max_num_", "ds_max_"},
    {"ds_min_num_", "ds_min_"},
    {"ds_sub_clamp", "ds_sub_clamp"},
    {"ds_bpermute_fi", "ds_bpermute_fi"},
}};

// The rest of the 32- and 64-bit integer atomics: "_atomic_and_b64" -> "_atomic_and_x2".
std::string renamed_atomic(std::string name) {
  constexpr std::array<Pair, 20> kAtomics{
      {{"_atomic_and_b32", "_atomic_and"},         {"_atomic_and_b64", "_atomic_and_x2"},
       {"_atomic_or_b32", "_atomic_or"},           {"_atomic_or_b64", "_atomic_or_x2"},
       {"_atomic_xor_b32", "_atomic_xor"},         {"_atomic_xor_b64", "_atomic_xor_x2"},
       {"_atomic_sub_u32", "_atomic_sub"},         {"_atomic_sub_u64", "_atomic_sub_x2"},
       {"_atomic_min_i32", "_atomic_smin"},        {"_atomic_min_i64", "_atomic_smin_x2"},
       {"_atomic_max_i32", "_atomic_smax"},        {"_atomic_max_i64", "_atomic_smax_x2"},
       {"_atomic_min_u32", "_atomic_umin"},        {"_atomic_min_u64", "_atomic_umin_x2"},
       {"_atomic_max_u32", "_atomic_umax"},        {"_atomic_max_u64", "_atomic_umax_x2"},
       {"_atomic_inc_u32", "_atomic_inc"},         {"_atomic_dec_u32", "_atomic_dec"},
       {"_atomic_max_num_f32", "_atomic_max_f32"}, {"_atomic_min_num_f32", "_atomic_min_f32"}}};
  for (const auto& [from, to] : kAtomics)
    if (name.ends_with(from)) return name.substr(0, name.size() - from.size()) + std::string(to);
  return name;
}

std::string renamed(std::string name) {
  for (const auto& [from, to] : kRenamed)
    if (name == from) return std::string(to);
  if (name.starts_with("v_dual_")) return renamed("v_" + name.substr(7));
  if (name.starts_with("ds_"))
    for (const auto& [from, to] : kLdsParts)
      if (name.starts_with(from)) {
        name = std::string(to) + name.substr(from.size());
        break;
      }
  if (name.starts_with("ds_") || name.starts_with("v_")) return name;
  if (name.find("_atomic_") != std::string::npos) name = renamed_atomic(std::move(name));
  for (const auto& [from, to] : kParts) {
    const auto at = name.find(from);
    if (at == std::string::npos) continue;
    const bool bitwise = from.back() == '_';
    if (bitwise || at + from.size() == name.size())
      return name.substr(0, at) + std::string(to) + name.substr(at + from.size());
  }
  return name;
}

}  // namespace

std::string canonical_name(std::string_view mnemonic, Generation generation) {
  std::string name(mnemonic);
  for (const std::string_view suffix : {"_e64_dpp", "_dpp", "_sdwa", "_e32", "_e64"})
    if (name.ends_with(suffix)) {
      name.resize(name.size() - suffix.size());
      break;
    }
  return generation == Generation::Gfx9 ? name : renamed(std::move(name));
}

const Opcodes& opcodes() {
  static const Opcodes kTable = [] {
    Opcodes table;
    for (const auto fill :
         {register_scalar, register_scalar_memory, register_control, register_vector_integer,
          register_vector_float, register_vector_half, register_vector_packed,
          register_vector_convert, register_vector_compare, register_vector_wide, register_division,
          register_lanes, register_matrix, register_global, register_buffer, register_atomics,
          register_lds})
      fill(table);
    return table;
  }();
  return kTable;
}

}  // namespace tessera::amdgpu
