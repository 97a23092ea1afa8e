#include <fmt/core.h>

#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "tests/amdgpu/isa/parse.hpp"

namespace tessera::amdgpu {
namespace {

struct Name {
  std::string_view text;
  int index, count;
};
constexpr std::array<Name, 14> kNames{{{"vcc", kVcc, 2},
                                       {"vcc_lo", kVcc, 1},
                                       {"vcc_hi", kVcc + 1, 1},
                                       {"exec", kExec, 2},
                                       {"exec_lo", kExec, 1},
                                       {"exec_hi", kExec + 1, 1},
                                       {"m0", kM0, 1},
                                       {"flat_scratch", kFlatScratch, 2},
                                       {"flat_scratch_lo", kFlatScratch, 1},
                                       {"flat_scratch_hi", kFlatScratch + 1, 1},
                                       {"xnack_mask", 104, 2},
                                       {"xnack_mask_lo", 104, 1},
                                       {"xnack_mask_hi", 105, 1},
                                       {"", 0, 0}}};

constexpr std::array<std::pair<std::string_view, Special>, 9> kSpecials{
    {{"scc", Special::Scc},
     {"src_scc", Special::Scc},
     {"src_vccz", Special::Vccz},
     {"src_execz", Special::Execz},
     {"src_shared_base", Special::SharedBase},
     {"src_shared_limit", Special::SharedLimit},
     {"src_private_base", Special::PrivateBase},
     {"src_private_limit", Special::PrivateLimit},
     {"", Special::Scc}}};

// "12" or "[12:15]" after the letter; false if it is neither.
bool parse_range(std::string_view text, Operand& into) {
  const bool many = text.size() > 2 && text.front() == '[' && text.back() == ']';
  if (many) text = text.substr(1, text.size() - 2);
  const char* end = text.data() + text.size();
  int first = 0;
  auto parsed = std::from_chars(text.data(), end, first);
  if (parsed.ec != std::errc{}) return false;
  int last = first;
  if (many && parsed.ptr != end) {
    if (*parsed.ptr != ':') return false;
    parsed = std::from_chars(parsed.ptr + 1, end, last);
    if (parsed.ec != std::errc{}) return false;
  }
  if (parsed.ptr != end || last < first) return false;
  into.index = static_cast<u16>(first);
  into.count = static_cast<u8>(last - first + 1);
  return true;
}

bool parse_register(std::string_view text, Operand& into) {
  if (text.ends_with(".l") || text.ends_with(".h")) {
    into.half = true;
    into.high = text.back() == 'h';
    text.remove_suffix(2);
  }
  struct Bank {
    std::string_view letter;
    OperandKind kind;
    int first, limit;
  };
  constexpr std::array<Bank, 4> kBanks{{{"ttmp", OperandKind::Scalar, kTtmp, 16},
                                        {"v", OperandKind::Vector, 0, 256},
                                        {"a", OperandKind::Vector, kAccumulators, 256},
                                        {"s", OperandKind::Scalar, 0, 106}}};
  for (const Bank& bank : kBanks) {
    if (!text.starts_with(bank.letter) || !parse_range(text.substr(bank.letter.size()), into))
      continue;
    if (into.index + into.count > bank.limit) return false;
    into.kind = bank.kind;
    into.index = static_cast<u16>(into.index + bank.first);
    return true;
  }
  return false;
}

bool parse_name(std::string_view text, Operand& into) {
  for (const Name& name : kNames)
    if (name.text == text && !text.empty()) {
      into.kind = OperandKind::Scalar;
      into.index = static_cast<u16>(name.index);
      into.count = static_cast<u8>(name.count);
      return true;
    }
  for (const auto& [name, special] : kSpecials)
    if (name == text && !text.empty()) {
      into.kind = OperandKind::Special;
      into.special = special;
      return true;
    }
  if (text == "off") into.kind = OperandKind::Off;
  if (text == "null") into.kind = OperandKind::Null;
  return into.kind != OperandKind::None;
}

bool parse_constant(std::string_view text, Operand& into) {
  const bool hex = text.find("0x") != text.npos;
  if (!hex && text.find('.') != text.npos) {
    std::size_t used = 0;
    double number = 0;
    try {
      number = std::stod(std::string(text), &used);
    } catch (const std::exception&) {
      return false;
    }
    if (used != text.size()) return false;
    into.is_float = true;
    into.number = number;
    into.value = as_bits(static_cast<float>(number));
    into.value16 = static_cast<u16>(float_to_half(static_cast<float>(number)));
    into.value64 = as_bits(number);
    if (text == "0.15915494" || text == "0.15915494309189532") {  // 1 / (2 pi)
      into.value = 0x3e22f983;
      into.value16 = 0x3118;
      into.value64 = 0x3fc45f306dc9c882;
    }
  } else {
    i64 value = 0;
    try {
      value = parse_integer(text);
    } catch (const Unknown&) {
      return false;
    }
    into.value = static_cast<u32>(value);
    into.value16 = static_cast<u16>(value);
    into.value64 = static_cast<u64>(value);
    into.number = hex ? 1 : 0;  // a literal, which in 64-bit floats is the upper half
  }
  into.kind = OperandKind::Constant;
  return true;
}

bool unwrap(std::string_view& text, std::string_view before, std::string_view after) {
  if (text.size() <= before.size() + after.size() || !text.starts_with(before) ||
      !text.ends_with(after))
    return false;
  text = text.substr(before.size(), text.size() - before.size() - after.size());
  return true;
}

}  // namespace

i64 parse_integer(std::string_view text) {
  const bool minus = text.starts_with('-');
  std::string_view digits = text.substr(minus ? 1 : 0);
  const bool hex = digits.starts_with("0x");
  if (hex) digits.remove_prefix(2);
  u64 value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (error != std::errc{} || end != digits.data() + digits.size())
    throw Unknown(fmt::format("'{}' is no integer", text));
  return minus ? -static_cast<i64>(value) : static_cast<i64>(value);
}

Operand parse_operand(std::string_view text) {
  Operand operand;
  operand.text = text;
  unwrap(text, "lit(", ")");  // a literal whose value an inline constant has too
  unwrap(text, "lit64(", ")");
  if (parse_constant(text, operand)) return operand;
  if (unwrap(text, "neg(", ")"))
    operand.negate = true;
  else if (text.size() > 1 && text[0] == '-' && (text[1] < '0' || text[1] > '9')) {
    operand.negate = true;
    text.remove_prefix(1);
  }
  operand.absolute = unwrap(text, "|", "|") || unwrap(text, "abs(", ")");
  operand.extend = unwrap(text, "sext(", ")");
  if (parse_name(text, operand) || parse_register(text, operand)) return operand;
  if ((operand.negate || operand.absolute) && parse_constant(text, operand)) return operand;
  operand.kind = OperandKind::Text;
  return operand;
}

}  // namespace tessera::amdgpu
