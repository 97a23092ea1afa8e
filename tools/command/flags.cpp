#include "tools/command/flags.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/io/error.hpp"

namespace tessera::tools {
namespace {

template <class Value>
using Names = std::vector<std::pair<std::string_view, Value>>;

[[noreturn]] void refuse(const std::string& flag, std::string_view text, std::string_view allowed) {
  throw CLI::ValidationError(flag,
                             fmt::format("is '{}'; must be {}", io::printable(text), allowed));
}

/// Of a number that its type cannot hold: whether it is too near to 0, and not too large.
bool vanishes(std::string_view text) {
  return std::abs(std::strtod(std::string(text).c_str(), nullptr)) < 1;
}

/// What is asked for must not become 0, which may mean something else: off, or no score at all.
template <class Number>
[[noreturn]] void refuse_vanishing(const std::string& flag, std::string_view text,
                                   std::string_view allowed) {
  throw CLI::ValidationError(
      flag, fmt::format("is '{}', which {} rounds to 0; must be {}, and 0 or at least {:.1e} in "
                        "magnitude",
                        io::printable(text), sizeof(Number) == sizeof(float) ? "fp32" : "fp64",
                        allowed, std::numeric_limits<Number>::min()));
}

/// The whole text as a number in [low, high]; "nan", spaces and trailing letters are no numbers.
template <class Number>
Number parse_number(const std::string& flag, std::string_view text, Number low, Number high,
                    std::string_view allowed) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = end == text.data() + text.size();
  if constexpr (std::is_floating_point_v<Number>) {
    if (whole && error == std::errc::result_out_of_range && vanishes(text))
      refuse_vanishing<Number>(flag, text, allowed);
  }
  if (error != std::errc{} || !whole || !(value >= low && value <= high))
    refuse(flag, text, allowed);
  return value;
}

/// Numbers between commas. CLI11 would split them too, and drop those that are missing.
std::vector<std::int64_t> parse_numbers(const std::string& flag, std::string_view text,
                                        std::int64_t low, std::int64_t high,
                                        const std::string& allowed) {
  std::vector<std::int64_t> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    if (part.empty()) refuse(flag, text, fmt::format("N,N,..., each {}", allowed));
    numbers.push_back(parse_number(flag, part, low, high, allowed));
    begin = end + 1;
  }
  return numbers;
}

template <class Number>
void add_number(CLI::App& app, const std::string& flag, std::function<void(Number)> set, Number low,
                Number high, const std::string& allowed, const std::string& help) {
  app.add_option_function<std::string>(
         flag,
         [=](const std::string& text) {
           set(parse_number<Number>(flag, text, low, high, allowed));
         },
         help)
      ->type_name(std::is_integral_v<Number> ? "N" : "X");
}

template <class Value>
void add_choice(CLI::App& app, const std::string& flag, std::function<void(Value)> set,
                const Names<Value>& names, const std::string& help) {
  std::string allowed;
  for (const auto& [name, value] : names) allowed.append(allowed.empty() ? "" : "|").append(name);
  app.add_option_function<std::string>(
         flag,
         [=](const std::string& text) {
           for (const auto& [name, value] : names) {
             if (name == text) return set(value);
           }
           refuse(flag, text, allowed);
         },
         help)
      ->type_name(allowed);
}

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;
constexpr std::int64_t kMaxThreads = 512;  // of the library, see docs/architecture.md
constexpr float kMaxScale = 2.358e38f;     // see Args::scale and softcap

const Names<DType> kDTypes{{"fp32", DType::fp32}, {"fp16", DType::fp16}, {"bf16", DType::bf16}};
const Names<Layout> kLayoutNames{
    {"bshd", Layout::bshd}, {"bhsd", Layout::bhsd}, {"shd", Layout::shd}, {"hsd", Layout::hsd}};
const Names<Alignment> kAlignments{{"top-left", Alignment::TopLeft},
                                   {"bottom-right", Alignment::BottomRight}};

}  // namespace

std::string_view to_string(Layout layout) noexcept {
  return kLayoutNames[static_cast<std::size_t>(layout)].first;
}

std::optional<Layout> layout_from(std::string_view text) noexcept {
  for (const auto& [name, layout] : kLayoutNames) {
    if (name == text) return layout;
  }
  return std::nullopt;
}

std::string_view to_string(MaskKind kind) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"none", "causal", "window"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Alignment alignment) noexcept {
  return alignment == Alignment::TopLeft ? "top-left" : "bottom-right";
}

void add_attention_flags(CLI::App& app, AttentionFlags& f) {
  app.add_option(
         "IN", f.inputs,
         "One .safetensors file with tensors q, k, v and, where wanted, cu_seqlens (or "
         "cu_seqlens_q "
         "and cu_seqlens_k), bias, mask, alibi_slopes, sinks, key_begin, key_end, query_end; or "
         "three .npy files: q k v")
      ->required();
  add_choice<Layout>(
      app, "--layout", [&](Layout x) { f.layout = x; }, kLayoutNames,
      "Order of the axes of q, k, v and out: batch, sequence, head, dim. Default: what the file's "
      "metadata says, else bshd, or shd for three axes");
  add_choice<DType>(
      app, "--dtype", [&](DType x) { f.dtype = x; }, kDTypes,
      "Convert q, k and v to this type first. Default: as they are");
  add_choice<MaskKind>(
      app, "--mask", [&](MaskKind x) { f.mask = x; },
      {{"none", MaskKind::None}, {"causal", MaskKind::Causal}, {"window", MaskKind::Window}},
      "Which keys a query sees. Default: none (all of them)");
  add_choice<Alignment>(
      app, "--alignment", [&](Alignment x) { f.alignment = x; }, kAlignments,
      "Corner of the score matrix from which the mask's diagonal leaves; needed where there are "
      "more keys than queries, or fewer");
  const std::string side = "a whole number from 0 to 2^63 - 1";
  add_number<std::int64_t>(
      app, "--left", [&](std::int64_t x) { f.left = x; }, 0, kMaxInt, side,
      "With --mask window: how many keys before the diagonal are seen. Default: all");
  add_number<std::int64_t>(
      app, "--right", [&](std::int64_t x) { f.right = x; }, 0, kMaxInt, side,
      "With --mask window: how many keys after the diagonal are seen. Default: all");
  add_number<float>(
      app, "--scale",
      [&](float x) {
        if (std::fpclassify(x) == FP_SUBNORMAL) {
          refuse("--scale", fmt::format("{}", x),
                 "0 or at least 1.1754944e-38 in size: fp32 has no precision below");
        }
        f.scale = x;
      },
      -kMaxScale, kMaxScale, "a number from -2.358e38 to 2.358e38",
      "Factor of the products of q and k. Default: 1/sqrt(head_dim)");
  add_number<float>(
      app, "--softcap", [&](float x) { f.softcap = x; }, 0, kMaxScale,
      "a number from 0 to 2.358e38", "Scores become X*tanh(score/X). Default: 0, which is off");
  add_number<double>(
      app, "--dropout", [&](double x) { f.dropout = x; }, 0, 1, "a number from 0 to 1",
      "Probability that a weight is dropped, from 0 to 1, in steps of 2^-16. Default: 0");
  constexpr std::uint64_t kMaxSeed = std::numeric_limits<std::uint64_t>::max();
  const std::string allowed = "a whole number from 0 to 2^64 - 1";
  add_number<std::uint64_t>(
      app, "--seed", [&](std::uint64_t x) { f.seed = x; }, 0, kMaxSeed, allowed,
      "Seed of dropout's random numbers. Default: 0");
  add_number<std::uint64_t>(
      app, "--offset", [&](std::uint64_t x) { f.offset = x; }, 0, kMaxSeed, allowed,
      "Which of that seed's random numbers dropout takes. Default: 0");
}

void add_bench_flags(CLI::App& app, BenchFlags& f) {
  const std::string extent = fmt::format("a whole number from 1 to {}", kMaxExtent);
  app.add_option_function<std::vector<std::string>>(
         "--seq",
         [&f, extent](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             for (const std::int64_t seq : parse_numbers("--seq", text, 1, kMaxExtent, extent))
               f.seq.push_back(seq);
           }
         },
         "Sequence lengths. Default: 512, 1024, 2048, and 4096 at batch 4")
      ->type_name("N,N,...");
  add_number<std::int64_t>(
      app, "--batch", [&](std::int64_t x) { f.batch = x; }, 1, kMaxExtent, extent,
      "Sequences at a time. Default: 1");
  add_number<std::int64_t>(
      app, "--heads", [&](std::int64_t x) { f.heads = x; }, 1, kMaxExtent, extent,
      "Query heads. Default: 8");
  add_number<std::int64_t>(
      app, "--heads-k", [&](std::int64_t x) { f.heads_k = x; }, 1, kMaxExtent, extent,
      "Key heads; --heads is a multiple of them. Default: as many");
  add_number<std::int64_t>(
      app, "--head-dim", [&](std::int64_t x) { f.head_dim = x; }, 1, kMaxExtent, extent,
      "Head dimension. Default: 64");
  add_choice<DType>(
      app, "--dtype", [&](DType x) { f.dtype = x; }, kDTypes,
      "Type of q, k, v and out. Default: fp32");
  add_choice<MaskKind>(
      app, "--mask", [&](MaskKind x) { f.mask = x; },
      {{"none", MaskKind::None}, {"causal", MaskKind::Causal}},
      "Which keys a query sees. Default: causal");
  add_number<double>(
      app, "--seconds", [&](double x) { f.seconds = x; }, 0.0, 3600.0, "a number from 0 to 3600",
      "Seconds for which each case is repeated, at least. Default: 0.5");
  app.add_flag_callback(
      "--no-naive", [&] { f.naive = false; }, "Do not measure the naive computation");
}

void add_threads_flag(CLI::App& app, std::optional<std::int64_t>& threads) {
  add_number<std::int64_t>(
      app, "--threads", [&](std::int64_t x) { threads = x; }, 1, kMaxThreads,
      fmt::format("a whole number from 1 to {}", kMaxThreads),
      fmt::format("Host threads, from 1 to {}. Default: KOKKOS_NUM_THREADS, else OMP_NUM_THREADS, "
                  "else all cores",
                  kMaxThreads));
}

}  // namespace tessera::tools
