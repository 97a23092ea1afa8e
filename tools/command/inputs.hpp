#pragma once
/// From files to a call: tensors in host memory, and the arguments and options that they and the
/// flags pose.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/args.hpp>
#include <tessera/options.hpp>

#include "tools/command/flags.hpp"
#include "tools/io/array.hpp"

namespace tessera::tools {

/// Tensors that a file may have beside q, k and v.
inline constexpr std::array kOptionalTensors{
    "bias",    "mask",      "alibi_slopes", "sinks",        "key_begin",
    "key_end", "query_end", "cu_seqlens",   "cu_seqlens_q", "cu_seqlens_k"};

inline bool has_batch(Layout layout) noexcept {
  return layout == Layout::bshd || layout == Layout::bhsd;
}
inline bool heads_first(Layout layout) noexcept {
  return layout == Layout::bhsd || layout == Layout::hsd;
}

/// An attention problem with its data, all in host memory. Movable; the pointers in `args` stay
/// valid.
struct Inputs {
  std::string name{};  ///< of the file (the first of three), for messages
  Layout layout = Layout::bshd;
  Args args{};  ///< inputs only: out and lse are absent
  Options options{};
  MaskKind mask = MaskKind::None;
  bool square = true;      ///< as many keys as queries everywhere, so that both alignments are one
  bool converted = false;  ///< are q, k, v another type than in the file
  std::map<std::string, io::Array> arrays{};   ///< what args point into
  std::map<std::string, std::string> files{};  ///< of q, k and v, where each has one of its own
  std::map<std::string, io::Array>
      stored{};                       ///< out_full, lse_full, out_causal, lse_causal, where present
  std::vector<std::string> unused{};  ///< names of the file's other tensors

  bool packed() const noexcept { return args.cu_seqlens_q.data != nullptr; }
  /// Rows of a head that belong to a sequence: the last of packed ones may belong to none.
  std::int64_t rows() const noexcept;
  /// The file to name in a message about tensor `text` ("k") or one that begins with an argument
  /// ("key.extent.seq is 5").
  const std::string& file_of(std::string_view text) const;
  Extents out_extent() const noexcept;
  /// A dense out of the layout of q, and an lse. What they point to has out_extent() elements, and
  /// as many rows.
  Tensor out(void* data) const noexcept;
  Tensor lse(void* data) const noexcept;
  /// Shapes of out and lse in files of this layout.
  std::vector<std::int64_t> out_shape() const;
  std::vector<std::int64_t> lse_shape() const;
};

/// Reads the files that the flags name. Throws io::FileError or BadInput.
Inputs read_inputs(const AttentionFlags& flags);

/// The element type of a file's tensor for one of the library's, and the other way round.
io::Element element_of(DType dtype) noexcept;
std::optional<DType> dtype_of(io::Element element) noexcept;

/// "batch 2, heads 12, seq 256, head_dim 32, fp32, layout bshd", with both numbers where two sides
/// differ.
std::string describe_shape(const Inputs& inputs);
/// "causal (bottom-right), softcap 30, scale 0.125, bias, sinks".
std::string describe_options(const Inputs& inputs);

}  // namespace tessera::tools
