#include <fmt/core.h>

#include <array>
#include <utility>

#include "tests/amdgpu/isa/parse.hpp"

namespace tessera::amdgpu {
namespace {

using Setter = void (*)(Instruction&, std::string_view);

std::vector<u32> parse_list(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    throw Unknown(fmt::format("'{}' is no list", text));
  std::vector<u32> list;
  for (const auto part : split(text.substr(1, text.size() - 2), ','))
    list.push_back(static_cast<u32>(parse_integer(trimmed(part))));
  return list;
}

u32 parse_bits(std::string_view text) {
  u32 bits = 0, at = 0;
  for (const u32 bit : parse_list(text)) bits |= bit << at++;
  return bits;
}

u8 parse_amount(std::string_view text) { return static_cast<u8>(parse_integer(text)); }

Part parse_part(std::string_view text) {
  constexpr std::array<std::string_view, 7> kParts{"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                                   "WORD_0", "WORD_1", "DWORD"};
  for (std::size_t i = 0; i < kParts.size(); ++i)
    if (kParts[i] == text) return static_cast<Part>(i);
  throw Unknown(fmt::format("'{}' is no part of a register", text));
}

Unused parse_unused(std::string_view text) {
  if (text == "UNUSED_PAD") return Unused::Pad;
  if (text == "UNUSED_SEXT") return Unused::Extend;
  if (text == "UNUSED_PRESERVE") return Unused::Preserve;
  throw Unknown(fmt::format("dst_unused:{}", text));
}

template <DppKind kKind>
void set_dpp(Instruction& into, std::string_view value) {
  into.dpp.kind = kKind;
  if constexpr (kKind == DppKind::QuadPerm || kKind == DppKind::Dpp8) {
    const auto list = parse_list(value);
    if (list.size() != (kKind == DppKind::Dpp8 ? 8u : 4u))
      throw Unknown("a lane list of another length");
    for (std::size_t i = 0; i < list.size(); ++i) into.dpp.select[i] = static_cast<u8>(list[i]);
  } else if (!value.empty()) {
    into.dpp.amount = parse_amount(value);
  }
}

void set_row_bcast(Instruction& into, std::string_view value) {
  if (value != "15" && value != "31") throw Unknown(fmt::format("row_bcast:{}", value));
  into.dpp.kind = value == "15" ? DppKind::RowBcast15 : DppKind::RowBcast31;
}

void set_scale(Instruction& into, std::string_view value, bool divide) {
  const auto amount = static_cast<float>(parse_integer(value));
  into.modifiers.output_scale = divide ? 1 / amount : amount;
}

// "swizzle(BITMASK_PERM,"00pip")" as the 16 bits that encode it.
i32 parse_swizzle(std::string_view text) {
  const auto parts = split(text.substr(8, text.size() - 9), ',');
  const auto number = [&](std::size_t i) {
    return static_cast<u32>(parse_integer(trimmed(parts.at(i))));
  };
  const auto name = trimmed(parts.at(0));
  u32 keep = 31, set = 0, flip = 0;
  if (name == "QUAD_PERM")
    return static_cast<i32>(0x8000 | number(1) | number(2) << 2 | number(3) << 4 | number(4) << 6);
  if (name == "BROADCAST") {
    keep = 32 - number(1);
    set = number(2);
  } else if (name == "SWAP") {
    flip = number(1);
  } else if (name == "REVERSE") {
    flip = number(1) - 1;
  } else if (name == "BITMASK_PERM") {
    auto mask = trimmed(parts.at(1));
    if (mask.size() != 7) throw Unknown(fmt::format("the mask {}", mask));
    keep = 0;
    for (const char c : mask.substr(1, 5)) {
      keep = keep << 1 | (c == 'p' || c == 'i');
      set = set << 1 | (c == '1');
      flip = flip << 1 | (c == 'i');
    }
  } else {
    throw Unknown(fmt::format("the swizzle {}", text));
  }
  return static_cast<i32>(keep | set << 5 | flip << 10);
}

void set_offset(Instruction& into, std::string_view value) {
  into.modifiers.offset = value.starts_with("swizzle(") && value.back() == ')'
                              ? parse_swizzle(value)
                              : static_cast<i32>(parse_integer(value));
}

void ignore(Instruction&, std::string_view) {}

constexpr std::array<std::pair<std::string_view, Setter>, 53> kModifiers{{
    {"offset", set_offset},
    {"offset0",
     [](Instruction& i, std::string_view v) {
       i.modifiers.offset0 = static_cast<i32>(parse_integer(v));
     }},
    {"offset1",
     [](Instruction& i, std::string_view v) {
       i.modifiers.offset1 = static_cast<i32>(parse_integer(v));
     }},
    {"op_sel", [](Instruction& i, std::string_view v) { i.modifiers.op_sel = parse_bits(v); }},
    {"op_sel_hi",
     [](Instruction& i, std::string_view v) {
       i.modifiers.op_sel_hi = parse_bits(v);
       i.modifiers.has_op_sel_hi = true;
     }},
    {"neg_lo", [](Instruction& i, std::string_view v) { i.modifiers.neg_lo = parse_bits(v); }},
    {"neg_hi", [](Instruction& i, std::string_view v) { i.modifiers.neg_hi = parse_bits(v); }},
    {"neg", [](Instruction& i, std::string_view v) { i.modifiers.neg_lo = parse_bits(v); }},
    {"clamp", [](Instruction& i, std::string_view) { i.modifiers.clamp = true; }},
    {"mul", [](Instruction& i, std::string_view v) { set_scale(i, v, false); }},
    {"div", [](Instruction& i, std::string_view v) { set_scale(i, v, true); }},
    {"bitop3", [](Instruction& i,
                  std::string_view v) { i.modifiers.bitop3 = static_cast<u32>(parse_integer(v)); }},
    {"cbsz", [](Instruction& i,
                std::string_view v) { i.modifiers.cbsz = static_cast<u32>(parse_integer(v)); }},
    {"abid", [](Instruction& i,
                std::string_view v) { i.modifiers.abid = static_cast<u32>(parse_integer(v)); }},
    {"blgp", [](Instruction& i,
                std::string_view v) { i.modifiers.blgp = static_cast<u32>(parse_integer(v)); }},
    {"byte_sel",
     [](Instruction& i, std::string_view v) {
       i.modifiers.byte_sel = static_cast<u32>(parse_integer(v));
     }},
    {"offen", [](Instruction& i, std::string_view) { i.modifiers.offen = true; }},
    {"idxen", [](Instruction& i, std::string_view) { i.modifiers.idxen = true; }},
    {"lds", [](Instruction& i, std::string_view) { i.modifiers.lds = true; }},
    {"glc", [](Instruction& i, std::string_view) { i.modifiers.glc = true; }},
    {"sc0", [](Instruction& i, std::string_view) { i.modifiers.sc0 = true; }},
    {"th",
     [](Instruction& i, std::string_view v) {
       if (v == "TH_ATOMIC_RETURN" || v.starts_with("TH_ATOMIC_RETURN")) i.modifiers.glc = true;
     }},
    {"quad_perm", set_dpp<DppKind::QuadPerm>},
    {"row_shl", set_dpp<DppKind::RowShl>},
    {"row_shr", set_dpp<DppKind::RowShr>},
    {"row_ror", set_dpp<DppKind::RowRor>},
    {"wave_shl", set_dpp<DppKind::WaveShl>},
    {"wave_rol", set_dpp<DppKind::WaveRol>},
    {"wave_shr", set_dpp<DppKind::WaveShr>},
    {"wave_ror", set_dpp<DppKind::WaveRor>},
    {"row_mirror", set_dpp<DppKind::RowMirror>},
    {"row_half_mirror", set_dpp<DppKind::RowHalfMirror>},
    {"row_bcast", set_row_bcast},
    {"row_newbcast", set_dpp<DppKind::RowNewbcast>},
    {"row_share", set_dpp<DppKind::RowShare>},
    {"row_xmask", set_dpp<DppKind::RowXmask>},
    {"dpp8", set_dpp<DppKind::Dpp8>},
    {"row_mask", [](Instruction& i, std::string_view v) { i.dpp.row_mask = parse_amount(v); }},
    {"bank_mask", [](Instruction& i, std::string_view v) { i.dpp.bank_mask = parse_amount(v); }},
    // Either number means that lanes without a source read 0; without it they are not written.
    {"bound_ctrl", [](Instruction& i, std::string_view) { i.dpp.bound_control = true; }},
    {"fi", [](Instruction& i, std::string_view v) { i.dpp.fetch_inactive = v == "1"; }},
    {"dst_sel",
     [](Instruction& i, std::string_view v) {
       i.sdwa.used = true;
       i.sdwa.destination = parse_part(v);
     }},
    {"dst_unused", [](Instruction& i, std::string_view v) { i.sdwa.unused = parse_unused(v); }},
    {"src0_sel",
     [](Instruction& i, std::string_view v) {
       i.sdwa.used = true;
       i.sdwa.source[0] = parse_part(v);
     }},
    {"src1_sel",
     [](Instruction& i, std::string_view v) {
       i.sdwa.used = true;
       i.sdwa.source[1] = parse_part(v);
     }},
    {"gds", [](Instruction&, std::string_view) { throw Unknown("gds is not simulated"); }},
    // Caches and their hints: memory is one here.
    {"slc", ignore},
    {"dlc", ignore},
    {"scc", ignore},
    {"nt", ignore},
    {"sc1", ignore},
    {"nv", ignore},
    {"scope", ignore},
}};

}  // namespace

void parse_modifier(std::string_view text, Instruction& into) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  const auto value = colon == text.npos ? std::string_view{} : text.substr(colon + 1);
  for (const auto& [key, set] : kModifiers)
    if (key == name) return set(into, value);
  throw Unknown(fmt::format("the modifier '{}' is not implemented", text));
}

}  // namespace tessera::amdgpu
