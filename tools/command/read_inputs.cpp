// From files and flags to a call: what is read, and what is refused.

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reference/number.hpp"
#include "tools/command/failure.hpp"
#include "tools/command/inputs.hpp"
#include "tools/command/memory.hpp"
#include "tools/io/error.hpp"
#include "tools/io/npy.hpp"
#include "tools/io/safetensors.hpp"

namespace tessera::tools {
namespace {

using io::Array;
using io::Element;

constexpr std::array kStored{"out_full", "lse_full", "out_causal", "lse_causal"};

/// Fills an Inputs; every refusal names file and tensor.
class Reader {
 public:
  explicit Reader(const AttentionFlags& flags) : flags_(flags) {}

  Inputs read() {
    if (flags_.inputs.size() == 1) {
      read_safetensors();
    } else if (flags_.inputs.size() == 3) {
      read_npys();
    } else {
      throw BadInput(fmt::format("IN is {} files; must be one .safetensors or three .npy (q k v)",
                                 flags_.inputs.size()));
    }
    for (auto& [name, array] : inputs_.arrays) keep_address(array);
    choose_layout();
    main_tensors();
    modifiers();
    ranges();
    packing();
    mask();
    scalars();
    return std::move(inputs_);
  }

 private:
  [[noreturn]] void refuse(std::string_view problem) const {
    throw BadInput(fmt::format("{}: {}", inputs_.name, problem));
  }

  /// "k.npy: k <problem>", with the file that holds the tensor.
  [[noreturn]] void refuse_tensor(std::string_view tensor, std::string_view problem) const {
    throw BadInput(fmt::format("{}: {} {}", inputs_.file_of(tensor), tensor, problem));
  }

  void read_safetensors() {
    inputs_.name = flags_.inputs.front();
    const io::SafetensorsFile file = open_safetensors();
    const auto wanted = [&](const std::string& name) {
      return name == "q" || name == "k" || name == "v" ||
             std::ranges::find(kOptionalTensors, name) != kOptionalTensors.end();
    };
    for (const char* name : {"q", "k", "v"}) {
      if (!file.contains(name))
        refuse(fmt::format("has no tensor '{}'; must have q, k and v", name));
    }
    require_memory(inputs_.name, total_size(file.header()));
    for (const auto& [name, entry] : file.header().tensors) {
      const bool stored = std::ranges::find(kStored, name) != kStored.end();
      if (wanted(name)) {
        inputs_.arrays.emplace(name, file.load(name));
      } else if (stored) {
        inputs_.stored.emplace(name, file.load(name));
      } else {
        inputs_.unused.push_back(name);
      }
    }
    const auto& metadata = file.header().metadata;
    if (const auto found = metadata.find("layout"); found != metadata.end())
      metadata_layout_ = found->second;
  }

  static double total_size(const io::SafetensorsHeader& header) {
    double bytes = 0;
    for (const auto& [name, entry] : header.tensors)
      bytes += static_cast<double>(entry.end - entry.begin);
    return bytes;
  }

  io::SafetensorsFile open_safetensors() const {
    const io::InputFile file(inputs_.name);
    std::array<std::byte, 6> start{};
    if (file.size() >= start.size()) file.read(0, start);
    if (io::looks_like_npy(start)) refuse("is a .npy file; three of them are needed: q k v");
    return io::SafetensorsFile(inputs_.name);
  }

  void read_npys() {
    inputs_.name = flags_.inputs.front();
    double bytes = 0;
    for (const std::string& name : flags_.inputs)
      bytes += static_cast<double>(io::InputFile(name).size());
    require_memory(fmt::format("{}", fmt::join(flags_.inputs, " ")), bytes);
    for (std::size_t i = 0; i < 3; ++i) {
      inputs_.arrays.emplace(kNames[i], io::read_npy(flags_.inputs[i]));
      inputs_.files.emplace(kNames[i], flags_.inputs[i]);
    }
  }

  void choose_layout() {
    const std::size_t rank = array("q").shape.size();
    if (flags_.layout) {
      inputs_.layout = *flags_.layout;
    } else if (metadata_layout_) {
      std::string_view text = *metadata_layout_;
      if (text.starts_with("packed ")) text.remove_prefix(7);
      const std::optional<Layout> layout = layout_from(text);
      if (!layout) {
        refuse(fmt::format(
            "its metadata says layout '{}'; must be one of {}, or be overruled with --layout",
            io::printable(*metadata_layout_), kLayouts));
      }
      inputs_.layout = *layout;
    } else {
      inputs_.layout = rank == 3 ? Layout::shd : Layout::bshd;
    }
  }

  /// A null pointer means that a tensor is absent: one without elements gets an address too.
  static void keep_address(Array& array) { array.bytes.reserve(1); }

  Array& array(const std::string& name) { return inputs_.arrays.at(name); }

  /// [batch, head, seq, dim] in whatever order the layout says.
  ConstTensor main_tensor(const char* name, DType dtype) {
    const Array& a = array(name);
    const std::size_t rank = has_batch(inputs_.layout) ? 4 : 3;
    if (a.shape.size() != rank) {
      refuse_tensor(name, fmt::format("has shape {}; layout {} has {} axes (see --layout)",
                                      io::to_string(a.shape), to_string(inputs_.layout), rank));
    }
    const std::int64_t batch = rank == 4 ? a.shape.front() : 1;
    const std::int64_t first = a.shape[rank - 3];
    const std::int64_t second = a.shape[rank - 2];
    const std::int64_t dim = a.shape[rank - 1];
    return heads_first(inputs_.layout)
               ? ConstTensor::bhsd(a.bytes.data(), dtype,
                                   {.batch = batch, .head = first, .seq = second, .dim = dim})
               : ConstTensor::bshd(a.bytes.data(), dtype,
                                   {.batch = batch, .head = second, .seq = first, .dim = dim});
  }

  void main_tensors() {
    const Element stored = array("q").element;
    for (const char* name : kNames) {
      const Element element = array(name).element;
      if (element != Element::f64 && !is_float(element))
        refuse_tensor(name, fmt::format("is {}; must be F32, F16 or BF16", io::name_of(element)));
      if (flags_.dtype) continue;
      if (element == Element::f64)
        refuse_tensor(name, "is F64; must be F32, F16 or BF16, or converted with --dtype");
      if (element != stored) {
        const std::string place = inputs_.files.empty() ? "" : " in " + inputs_.file_of("q");
        refuse_tensor(name, fmt::format("is {}; must be {}, as q is{}, or converted with --dtype",
                                        io::name_of(element), io::name_of(stored), place));
      }
    }
    const DType dtype = flags_.dtype ? *flags_.dtype : dtype_of(stored).value();
    for (const char* name : kNames) convert(name, dtype);
    inputs_.args.query = main_tensor("q", dtype);
    inputs_.args.key = main_tensor("k", dtype);
    inputs_.args.value = main_tensor("v", dtype);
  }

  static bool is_float(Element element) noexcept {
    return element == Element::f32 || element == Element::f16 || element == Element::bf16;
  }

  /// Rounds a tensor of floating-point numbers to `dtype`, once, to nearest.
  void convert(const std::string& name, DType dtype) {
    Array& a = array(name);
    if (a.element == element_of(dtype)) return;
    Array to{element_of(dtype), a.shape, {}};
    keep_address(to);
    const auto count = static_cast<std::int64_t>(a.bytes.size()) / io::size_of(a.element);
    to.bytes.resize(static_cast<std::size_t>(count * size_of(dtype)));
    for (std::int64_t i = 0; i < count; ++i) {
      double value = 0;
      if (a.element == Element::f64) {
        std::memcpy(&value, a.bytes.data() + i * 8, sizeof value);
      } else {
        value = reference::load(dtype_of(a.element).value(), a.bytes.data(), i);
      }
      reference::store(dtype, to.bytes.data(), i, value);
    }
    a = std::move(to);
    if (name == "q" || name == "k" || name == "v") inputs_.converted = true;
  }

  bool present(const std::string& name) const { return inputs_.arrays.contains(name); }

  /// A tensor over [batch, head, seq_q, seq_k]; missing axes in front have one entry, which is for
  /// all.
  ConstTensor scores_tensor(const std::string& name, DType dtype) {
    const Array& a = array(name);
    if (a.shape.empty() || a.shape.size() > 4) {
      refuse(fmt::format(
          "{} has shape {}; must have 1 to 4 axes, the last ones of [batch, head, seq_q, seq_k]",
          name, io::to_string(a.shape)));
    }
    std::array<std::int64_t, 4> e{1, 1, 1, 1};
    std::ranges::copy(a.shape, e.end() - static_cast<std::ptrdiff_t>(a.shape.size()));
    return ConstTensor::bhsd(a.bytes.data(), dtype,
                             {.batch = e[0], .head = e[1], .seq = e[2], .dim = e[3]});
  }

  /// fp32 from whatever type fp32 can hold.
  void widen(const std::string& name) {
    if (!is_float(array(name).element)) {
      refuse(fmt::format("{} is {}; must be F32, F16 or BF16", name,
                         io::name_of(array(name).element)));
    }
    convert(name, DType::fp32);
  }

  void modifiers() {
    if (present("bias")) {
      const bool as_query = array("bias").element == element_of(inputs_.args.query.dtype);
      if (!as_query) widen("bias");
      inputs_.args.bias = scores_tensor("bias", as_query ? inputs_.args.query.dtype : DType::fp32);
    }
    if (present("mask")) {
      const Element element = array("mask").element;
      if (element != Element::boolean && element != Element::u8) {
        refuse(fmt::format("mask is {}; must be BOOL or U8 (numbers to be added are a bias)",
                           io::name_of(element)));
      }
      inputs_.args.boolean_mask = scores_tensor("mask", DType::uint8);
    }
    if (present("alibi_slopes")) {
      widen("alibi_slopes");
      const Array& a = array("alibi_slopes");
      if (a.shape.size() != 1 && a.shape.size() != 2) {
        refuse(fmt::format("alibi_slopes has shape {}; must be [head_q] or [batch, head_q]",
                           io::to_string(a.shape)));
      }
      const std::int64_t batch = a.shape.size() == 2 ? a.shape.front() : 1;
      inputs_.args.alibi_slopes =
          ConstTensor::bhsd(a.bytes.data(), DType::fp32, {.batch = batch, .head = a.shape.back()});
    }
    if (present("sinks")) {
      widen("sinks");
      const Array& a = array("sinks");
      if (a.shape.size() != 1)
        refuse(fmt::format("sinks has shape {}; must be [head_q]", io::to_string(a.shape)));
      inputs_.args.sinks = ConstTensor::per_head(a.bytes.data(), DType::fp32, a.shape.front());
    }
  }

  /// Index vectors: int32, or int64 where `wide`.
  ConstVector indices(const std::string& name, bool wide) {
    const Array& a = array(name);
    const bool right = a.element == Element::i32 || (wide && a.element == Element::i64);
    if (!right || a.shape.size() != 1) {
      refuse(fmt::format("{} is {} {}; must be {} with one axis", name, io::name_of(a.element),
                         io::to_string(a.shape), wide ? "I32 or I64" : "I32"));
    }
    return {a.bytes.data(), a.element == Element::i32 ? DType::int32 : DType::int64,
            a.shape.front()};
  }

  void ranges() {
    if (present("key_begin")) inputs_.args.key_begin = indices("key_begin", false);
    if (present("key_end")) inputs_.args.key_end = indices("key_end", false);
    if (present("query_end")) inputs_.args.query_end = indices("query_end", false);
  }

  std::vector<std::int64_t> prefix_sums(const std::string& name, const ConstVector& vector,
                                        std::int64_t total) const {
    if (vector.size < 1)
      refuse(fmt::format("{} is empty; must hold 0 and then the end of each segment", name));
    std::vector<std::int64_t> sums(static_cast<std::size_t>(vector.size));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (vector.dtype == DType::int32) {
        sums[i] = static_cast<const std::int32_t*>(vector.data)[i];
      } else {
        sums[i] = static_cast<const std::int64_t*>(vector.data)[i];
      }
      const std::int64_t before = i == 0 ? 0 : sums[i - 1];
      if (i == 0 && sums[0] != 0) refuse(fmt::format("{}[0] is {}; must be 0", name, sums[0]));
      if (sums[i] < before || sums[i] > total) {
        refuse(fmt::format(
            "{}[{}] is {}; must be from {} (the one before) to {} (the number of tokens)", name, i,
            sums[i], before, total));
      }
    }
    return sums;
  }

  static std::int64_t longest(const std::vector<std::int64_t>& sums) {
    std::int64_t result = 0;
    for (std::size_t i = 1; i < sums.size(); ++i) result = std::max(result, sums[i] - sums[i - 1]);
    return result;
  }

  void packing() {
    const bool both = present("cu_seqlens");
    const bool q = present("cu_seqlens_q");
    const bool k = present("cu_seqlens_k");
    if ((both && (q || k)) || q != k) {
      refuse("must have cu_seqlens, or cu_seqlens_q and cu_seqlens_k, or none of them");
    }
    if (!both && !q) return;
    const std::string name_q = both ? "cu_seqlens" : "cu_seqlens_q";
    const std::string name_k = both ? "cu_seqlens" : "cu_seqlens_k";
    Args& args = inputs_.args;
    args.cu_seqlens_q = indices(name_q, true);
    args.cu_seqlens_k = indices(name_k, true);
    sums_q_ = prefix_sums(name_q, args.cu_seqlens_q, args.query.extent.seq);
    sums_k_ = prefix_sums(name_k, args.cu_seqlens_k, args.key.extent.seq);
    // A bias or mask of a larger maximum says what the maximum is meant to be.
    Options& options = inputs_.options;
    options.max_seq_q = longest(sums_q_);
    options.max_seq_k = longest(sums_k_);
    for (const ConstTensor& t : {args.bias, args.boolean_mask}) {
      if (t.data == nullptr) continue;
      options.max_seq_q = std::max(options.max_seq_q, t.extent.seq);
      options.max_seq_k = std::max(options.max_seq_k, t.extent.dim);
    }
  }

  /// Are there as many keys as queries everywhere? Then both alignments are one.
  bool square() const {
    const Args& args = inputs_.args;
    if (inputs_.packed()) return sums_q_ == sums_k_;
    return args.query.extent.seq == args.key.extent.seq && args.key_end.data == nullptr &&
           args.query_end.data == nullptr;
  }

  void mask() {
    const bool window = flags_.mask == MaskKind::Window;
    if (!window && (flags_.left || flags_.right))
      throw BadInput("--left and --right need --mask window");
    if (window && !flags_.left && !flags_.right)
      throw BadInput("--mask window needs --left, --right or both");
    inputs_.mask = flags_.mask;
    inputs_.square = square();
    if (flags_.mask == MaskKind::None) {
      if (flags_.alignment) throw BadInput("--alignment needs --mask causal or window");
      return;
    }
    if (!flags_.alignment && !inputs_.square) {
      refuse(
          fmt::format("has not as many keys as queries, so --mask {} needs --alignment top-left or "
                      "bottom-right",
                      to_string(flags_.mask)));
    }
    const Alignment alignment = flags_.alignment.value_or(Alignment::BottomRight);
    inputs_.options.mask =
        window ? Mask::window(flags_.left, flags_.right, alignment) : Mask::causal(alignment);
  }

  void scalars() {
    inputs_.args.scale = flags_.scale;
    inputs_.args.softcap = flags_.softcap;
    inputs_.args.seed = flags_.seed;
    inputs_.args.offset = flags_.offset;
    inputs_.options.dropout = flags_.dropout;
  }

  static constexpr std::array<const char*, 3> kNames{"q", "k", "v"};

  const AttentionFlags& flags_;
  Inputs inputs_;
  std::optional<std::string> metadata_layout_;
  std::vector<std::int64_t> sums_q_, sums_k_;
};

}  // namespace

Inputs read_inputs(const AttentionFlags& flags) { return Reader(flags).read(); }

}  // namespace tessera::tools
