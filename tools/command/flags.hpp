#pragma once
/// What can be asked for on the command line, parsed and checked one by one.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/dtype.hpp>
#include <tessera/options.hpp>

namespace CLI {
class App;
}

namespace tessera::tools {

/// Order of the axes in files, outermost first. Three letters: no batch axis, packed or a single
/// sequence.
enum class Layout : std::uint8_t { bshd, bhsd, shd, hsd };

std::string_view to_string(Layout layout) noexcept;
/// nullopt if there is no such layout.
std::optional<Layout> layout_from(std::string_view text) noexcept;
inline constexpr const char* kLayouts = "bshd, bhsd, shd, hsd";

enum class MaskKind : std::uint8_t { None, Causal, Window };

std::string_view to_string(MaskKind kind) noexcept;
std::string_view to_string(Alignment alignment) noexcept;

/// Which attention is computed on a file's tensors: of `run` and `check`.
struct AttentionFlags {
  std::vector<std::string> inputs{};
  std::optional<Layout> layout{};
  std::optional<DType> dtype{};
  MaskKind mask = MaskKind::None;
  std::optional<Alignment> alignment{};
  std::optional<std::int64_t> left{};
  std::optional<std::int64_t> right{};
  std::optional<float> scale{};
  float softcap = 0;
  double dropout = 0;
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};

/// What `bench` measures; the default cases if seq and batch are empty.
struct BenchFlags {
  std::vector<std::int64_t> seq{};
  std::optional<std::int64_t> batch{};
  std::int64_t heads = 8;
  std::optional<std::int64_t> heads_k{};
  std::int64_t head_dim = 64;
  DType dtype = DType::fp32;
  MaskKind mask = MaskKind::Causal;
  double seconds = 0.5;  ///< at least so long for each case
  bool naive = true;
};

void add_attention_flags(CLI::App& app, AttentionFlags& flags);
void add_bench_flags(CLI::App& app, BenchFlags& flags);
void add_threads_flag(CLI::App& app, std::optional<std::int64_t>& threads);

}  // namespace tessera::tools
