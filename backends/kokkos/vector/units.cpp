#include "backends/kokkos/vector/units.hpp"

#include <array>
#include <utility>

#include <tessera/error.hpp>

#include "backends/kokkos/vector/vector.hpp"
#include "tessera_head_dims.hpp"

#if defined(TESSERA_VECTOR_X86)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace tessera::kokkos::vector {
namespace {

#if defined(TESSERA_VECTOR_X86)
// What -march=x86-64-v3 and -v4 let the compiler use, by those of their features that clang 14 can
// ask for; it knows no levels here. No processor has AVX2 without F16C, LZCNT and MOVBE.
bool has_avx2() noexcept {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool has_avx512() noexcept {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

#if defined(TESSERA_EMULATED_ISA)
#define TESSERA_BF16(isa) isa##_emulated
bool has_avx512_bf16() noexcept { return has_avx512(); }
bool has_amx_bf16() noexcept { return has_avx512(); }
#else
#define TESSERA_BF16(isa) isa
// Feature bits that not every compiler has a name for.
bool has_avx512_bf16() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return has_avx512() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 &&
         (eax >> 5 & 1) != 0;
}
// The system must let the process use tile registers, too.
bool has_amx_bf16() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kTiles = 1u << 24 | 1u << 22;  // AMX-TILE, AMX-BF16
  if (!has_avx512_bf16() || __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 ||
      (edx & kTiles) != kTiles) {
    return false;
  }
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif
#endif

}  // namespace

std::span<const Choice> choices() noexcept {
#define TESSERA_FORWARD_CHOICE_(isa, available) \
  {&tessera_vector_##isa, nullptr, nullptr, "forward.vector." #isa, {}, {}, available}
#define TESSERA_FORWARD_CHOICE(isa, available) TESSERA_FORWARD_CHOICE_(isa, available)
#define TESSERA_CHOICE(isa, available) \
  {&tessera_vector_##isa,              \
   &tessera_vector_backward_##isa,     \
   &tessera_vector_decode_##isa,       \
   "forward.vector." #isa,             \
   "backward.vector." #isa,            \
   "decode.vector." #isa,              \
   available}
#if defined(TESSERA_VECTOR_X86)
  static const auto all = [] {
    std::array choices{Choice TESSERA_FORWARD_CHOICE(TESSERA_BF16(amx_bf16), has_amx_bf16()),
                       Choice TESSERA_FORWARD_CHOICE(TESSERA_BF16(avx512_bf16), has_avx512_bf16()),
                       Choice TESSERA_CHOICE(avx512, has_avx512()),
                       Choice TESSERA_CHOICE(avx2, has_avx2()),
                       Choice TESSERA_CHOICE(portable, true)};
    // Where it was measured on Intel's, the dot product of pairs does less than two products of
    // fp32.
    if (!__builtin_cpu_is("amd")) std::swap(choices[1], choices[2]);
    return choices;
  }();
#else
  static const Choice all[] = {TESSERA_CHOICE(portable, true)};
#endif
#undef TESSERA_CHOICE
#undef TESSERA_FORWARD_CHOICE
#undef TESSERA_FORWARD_CHOICE_
  return all;
}

std::string_view best_isa() noexcept {
  for (const Choice& choice : choices()) {
    if (choice.available && choice.backward != nullptr) return choice.unit->name;
  }
  return "portable";
}

std::string reject(const Choice& choice, const Problem& p) {
  const Index widest = kernel::larger(p.query.extent.dim, p.value.extent.dim);
  if (!choice.available) return "this processor lacks its instructions";
  if (widest > TESSERA_BUILD_HEAD_DIM_MAX) {
    return "head_dim " + std::to_string(widest) + " is above the largest that was built (" +
           std::to_string(TESSERA_BUILD_HEAD_DIM_MAX) + ", see TESSERA_HEAD_DIMS)";
  }
  return {};
}

bool general(const Problem& p) {
  return p.softcap || p.alibi_slopes || p.bias || p.boolean_mask || p.sinks ||
         p.options.dropout > 0 || p.options.accumulate == Accumulate::fp16;
}
Flavour flavour(const Problem& p) { return general(p) ? Flavour::General : Flavour::Plain; }

Element element(DType dtype) {
  switch (dtype) {
    case DType::fp16:
      return Element::fp16;
    case DType::bf16:
      return Element::bf16;
    default:
      return Element::fp32;
  }
}

Index most_rows(const Problem& p) {
  return p.packed && p.options.max_seq_q > 0 ? p.options.max_seq_q : p.query.extent.seq;
}
Index most_keys(const Problem& p) {
  return p.packed && p.options.max_seq_k > 0 ? p.options.max_seq_k : p.key.extent.seq;
}
bool by_stretches(const Problem& p) {
  return p.query.dtype == DType::fp32 && most_keys(p) > kStretchKeys;
}
Index sequences(const Problem& p) { return p.packed ? p.packed->segments : p.query.extent.batch; }

std::size_t prefix_bytes(const Problem& p) {
  // Segments are a number that nobody has allocated yet: what does not fit in memory saturates.
  constexpr Index kMostSegments = Index{1} << 55;
  const Index bytes =
      p.packed ? (kernel::smaller(p.packed->segments, kMostSegments) + 1) * Index{sizeof(Index)}
               : 0;
  return static_cast<std::size_t>(round_up(bytes, Index{128}));
}

void check_workspace(const void* workspace, std::size_t needed,
                     const backend::Candidate& candidate) {
  if (workspace == nullptr || needed <= candidate.workspace) return;
  throw DeviceError("the execution space has more threads than when the plan was made: " +
                    std::to_string(needed) + " bytes of workspace are needed, not " +
                    std::to_string(candidate.workspace));
}

bool tiny(double flops) { return flops < 1e6; }

}  // namespace tessera::kokkos::vector
