// Scalar arithmetic.

#include "tests/amdgpu/isa/lanes.hpp"

namespace tessera::amdgpu {
namespace {

// What an instruction leaves in SCC.
enum class Flag { Kept, NonZero };

template <class T>
T read(const Wave& w, const Instruction& in, int at) {
  if constexpr (sizeof(T) == 8)
    return static_cast<T>(scalar_value64(w, in[at]));
  else
    return static_cast<T>(scalar_value(w, in[at]));
}

template <class T>
void write(Wave& w, const Instruction& in, T value, Flag flag) {
  if constexpr (sizeof(T) == 8)
    set_scalar64(w, in, 0, static_cast<u64>(value));
  else
    set_scalar(w, in, 0, static_cast<u32>(value));
  if (flag == Flag::NonZero) w.scc = value != 0;
}

template <Flag kFlag, class R, class F, class... A>
struct Plain {
  template <std::size_t... I>
  static void run(Wave& w, const Instruction& in, std::index_sequence<I...>) {
    write<R>(w, in, static_cast<R>(kLaneFunction<F>(read<A>(w, in, static_cast<int>(I) + 1)...)),
             kFlag);
  }
  static void execute(Wave& w, const Instruction& in) {
    run(w, in, std::index_sequence_for<A...>{});
  }
};

template <class R, class... A, class F>
constexpr Handler plain(F) {
  return &Plain<Flag::Kept, R, F, A...>::execute;
}
template <class R, class... A, class F>
constexpr Handler flagged(F) {
  return &Plain<Flag::NonZero, R, F, A...>::execute;
}

// Functions that compute SCC themselves: f(a, b, scc in and out).
template <class T, class F>
struct WithFlag {
  static void execute(Wave& w, const Instruction& in) {
    u32 scc = w.scc;
    const T result = kLaneFunction<F>(read<T>(w, in, 1), read<T>(w, in, 2), scc);
    write<T>(w, in, result, Flag::Kept);
    w.scc = scc;
  }
};
template <class T, class F>
constexpr Handler with_flag(F) {
  return &WithFlag<T, F>::execute;
}

template <class T, class F>
struct Comparing {
  static void execute(Wave& w, const Instruction& in) {
    w.scc = kLaneFunction<F>(read<T>(w, in, 0), read<T>(w, in, 1)) ? 1 : 0;
  }
};
template <class T, class F>
constexpr Handler comparing(F) {
  return &Comparing<T, F>::execute;
}

template <class T>
void register_bitwise(Opcodes& t, const std::string& type) {
  t.add("s_and_" + type, flagged<T, T, T>([](T a, T b) { return a & b; }));
  t.add("s_or_" + type, flagged<T, T, T>([](T a, T b) { return a | b; }));
  t.add("s_xor_" + type, flagged<T, T, T>([](T a, T b) { return a ^ b; }));
  t.add("s_andn2_" + type, flagged<T, T, T>([](T a, T b) { return a & ~b; }));
  t.add("s_orn2_" + type, flagged<T, T, T>([](T a, T b) { return a | ~b; }));
  t.add("s_nand_" + type, flagged<T, T, T>([](T a, T b) { return ~(a & b); }));
  t.add("s_nor_" + type, flagged<T, T, T>([](T a, T b) { return ~(a | b); }));
  t.add("s_xnor_" + type, flagged<T, T, T>([](T a, T b) { return ~(a ^ b); }));
  t.add("s_not_" + type, flagged<T, T>([](T a) { return ~a; }));
  t.add("s_mov_" + type, plain<T, T>([](T a) { return a; }));
  t.add("s_wqm_" + type, flagged<T, T>([](T a) {
          T r = 0;
          for (std::size_t i = 0; i < sizeof(T) * 8; i += 4)
            if (a >> i & 15) r |= static_cast<T>(15) << i;
          return r;
        }));
  t.add("s_brev_" + type, plain<T, T>([](T a) {
          T r = 0;
          for (std::size_t i = 0; i < sizeof(T) * 8; ++i)
            r |= (a >> i & 1) << (sizeof(T) * 8 - 1 - i);
          return r;
        }));
  constexpr T kMask = sizeof(T) * 8 - 1;
  t.add("s_lshl_" + type, flagged<T, T, u32>([](T a, u32 b) { return a << (b & kMask); }));
  t.add("s_lshr_" + type, flagged<T, T, u32>([](T a, u32 b) { return a >> (b & kMask); }));
  t.add("s_bfm_" + type, plain<T, u32, u32>([](u32 a, u32 b) {
          return ((T{1} << (a & kMask)) - 1) << (b & kMask);
        }));
}

template <class T>
void register_counts(Opcodes& t, const std::string& type) {
  t.add("s_bcnt1_i32_" + type, flagged<u32, T>([](T a) { return std::popcount(a); }));
  t.add("s_bcnt0_i32_" + type,
        flagged<u32, T>([](T a) { return std::popcount(static_cast<T>(~a)); }));
  t.add("s_ff1_i32_" + type, plain<u32, T>([](T a) { return a ? std::countr_zero(a) : -1; }));
  t.add("s_ff0_i32_" + type, plain<u32, T>([](T a) { return ~a ? std::countr_one(a) : -1; }));
  t.add("s_flbit_i32_" + type, plain<u32, T>([](T a) { return a ? std::countl_zero(a) : -1; }));
}

// EXEC is combined with the operand, and what it was is kept.
template <class T, class F>
struct SaveExec {
  static void execute(Wave& w, const Instruction& in) {
    const T before =
        sizeof(T) == 8 ? static_cast<T>(w.pair(kExec)) : static_cast<T>(w.scalar[kExec]);
    const T after = kLaneFunction<F>(read<T>(w, in, 1), before);
    write<T>(w, in, before, Flag::Kept);
    if constexpr (sizeof(T) == 8)
      w.set_pair(kExec, after);
    else
      w.scalar[kExec] = after;
    w.scc = after != 0;
  }
};
template <class T, class F>
void add_saveexec(Opcodes& t, const std::string& name, F) {
  t.add(name, &SaveExec<T, F>::execute);
}

template <class T>
void register_saveexec(Opcodes& t, const std::string& type) {
  add_saveexec<T>(t, "s_and_saveexec_" + type, [](T a, T e) { return a & e; });
  add_saveexec<T>(t, "s_or_saveexec_" + type, [](T a, T e) { return a | e; });
  add_saveexec<T>(t, "s_xor_saveexec_" + type, [](T a, T e) { return a ^ e; });
  add_saveexec<T>(t, "s_andn2_saveexec_" + type, [](T a, T e) { return a & ~e; });
  add_saveexec<T>(t, "s_orn2_saveexec_" + type, [](T a, T e) { return a | ~e; });
  add_saveexec<T>(t, "s_andn1_saveexec_" + type, [](T a, T e) { return ~a & e; });
  add_saveexec<T>(t, "s_orn1_saveexec_" + type, [](T a, T e) { return ~a | e; });
}

u32 overflows(i64 value) { return value != static_cast<i32>(value); }

void register_sums(Opcodes& t) {
  t.add("s_add_u32", with_flag<u32>([](u32 a, u32 b, u32& scc) { return scc = a + b < a, a + b; }));
  t.add("s_sub_u32", with_flag<u32>([](u32 a, u32 b, u32& scc) { return scc = b > a, a - b; }));
  t.add("s_addc_u32", with_flag<u32>([](u32 a, u32 b, u32& scc) {
          const u64 sum = static_cast<u64>(a) + b + scc;
          return scc = static_cast<u32>(sum >> 32), static_cast<u32>(sum);
        }));
  t.add("s_subb_u32", with_flag<u32>([](u32 a, u32 b, u32& scc) {
          const u64 sum = static_cast<u64>(a) - b - scc;
          return scc = static_cast<u32>(sum >> 32 & 1), static_cast<u32>(sum);
        }));
  t.add("s_add_i32", with_flag<i32>([](i32 a, i32 b, u32& scc) {
          const i64 sum = static_cast<i64>(a) + b;
          return scc = overflows(sum), static_cast<i32>(sum);
        }));
  t.add("s_sub_i32", with_flag<i32>([](i32 a, i32 b, u32& scc) {
          const i64 sum = static_cast<i64>(a) - b;
          return scc = overflows(sum), static_cast<i32>(sum);
        }));
  t.add("s_absdiff_i32",
        flagged<u32, i32, i32>([](i32 a, i32 b) { return std::abs(static_cast<i64>(a) - b); }));
  t.add("s_abs_i32", flagged<u32, i32>([](i32 a) { return std::abs(static_cast<i64>(a)); }));
  t.add("s_add_u64", plain<u64, u64, u64>([](u64 a, u64 b) { return a + b; }));
  t.add("s_sub_u64", plain<u64, u64, u64>([](u64 a, u64 b) { return a - b; }));
  t.add("s_mul_u64", plain<u64, u64, u64>([](u64 a, u64 b) { return a * b; }));
  t.add("s_mul_i32", plain<u32, u32, u32>([](u32 a, u32 b) { return a * b; }));
  t.add("s_mul_hi_u32",
        plain<u32, u32, u32>([](u32 a, u32 b) { return static_cast<u64>(a) * b >> 32; }));
  t.add("s_mul_hi_i32",
        plain<u32, i32, i32>([](i32 a, i32 b) { return static_cast<i64>(a) * b >> 32; }));
  t.add("s_min_i32",
        with_flag<i32>([](i32 a, i32 b, u32& scc) { return scc = a < b, a < b ? a : b; }));
  t.add("s_max_i32",
        with_flag<i32>([](i32 a, i32 b, u32& scc) { return scc = a > b, a > b ? a : b; }));
  t.add("s_min_u32",
        with_flag<u32>([](u32 a, u32 b, u32& scc) { return scc = a < b, a < b ? a : b; }));
  t.add("s_max_u32",
        with_flag<u32>([](u32 a, u32 b, u32& scc) { return scc = a > b, a > b ? a : b; }));
  t.add("s_lshl1_add_u32", with_flag<u32>([](u32 a, u32 b, u32& scc) {
          const u64 sum = (static_cast<u64>(a) << 1) + b;
          return scc = sum >> 32 != 0, static_cast<u32>(sum);
        }));
  t.add("s_lshl2_add_u32", with_flag<u32>([](u32 a, u32 b, u32& scc) {
          const u64 sum = (static_cast<u64>(a) << 2) + b;
          return scc = sum >> 32 != 0, static_cast<u32>(sum);
        }));
  t.add("s_lshl3_add_u32", with_flag<u32>([](u32 a, u32 b, u32& scc) {
          const u64 sum = (static_cast<u64>(a) << 3) + b;
          return scc = sum >> 32 != 0, static_cast<u32>(sum);
        }));
  t.add("s_lshl4_add_u32", with_flag<u32>([](u32 a, u32 b, u32& scc) {
          const u64 sum = (static_cast<u64>(a) << 4) + b;
          return scc = sum >> 32 != 0, static_cast<u32>(sum);
        }));
}

void register_fields(Opcodes& t) {
  t.add("s_ashr_i32", flagged<u32, i32, u32>([](i32 a, u32 b) { return a >> (b & 31); }));
  t.add("s_ashr_i64", flagged<u64, i64, u32>([](i64 a, u32 b) { return a >> (b & 63); }));
  t.add("s_bfe_u32", flagged<u32, u32, u32>([](u32 a, u32 b) {
          const u32 width = b >> 16 & 127;
          return width >= 32 ? a >> (b & 31) : (a >> (b & 31)) & ((1u << width) - 1);
        }));
  t.add("s_bfe_i32", flagged<u32, i32, u32>([](i32 a, u32 b) {
          const u32 width = b >> 16 & 127, offset = b & 31;
          const i32 shifted = a >> offset;
          return width == 0 ? 0
                 : width + offset >= 32
                     ? shifted
                     : sign_extend(static_cast<u32>(shifted), static_cast<int>(width));
        }));
  t.add("s_bfe_u64", flagged<u64, u64, u32>([](u64 a, u32 b) {
          const u32 width = b >> 16 & 127;
          return width >= 64 ? a >> (b & 63) : (a >> (b & 63)) & ((u64{1} << width) - 1);
        }));
  t.add("s_bfe_i64", flagged<u64, i64, u32>([](i64 a, u32 b) {
          const u32 width = b >> 16 & 127, offset = b & 63;
          const i64 shifted = a >> offset;
          return width == 0 ? i64{0}
                 : width + offset >= 64
                     ? shifted
                     : static_cast<i64>(static_cast<u64>(shifted) << (64 - width)) >> (64 - width);
        }));
  t.add("s_sext_i32_i8", plain<u32, u32>([](u32 a) { return sign_extend(a, 8); }));
  t.add("s_sext_i32_i16", plain<u32, u32>([](u32 a) { return sign_extend(a, 16); }));
  t.add("s_pack_ll_b32_b16",
        plain<u32, u32, u32>([](u32 a, u32 b) { return (a & 0xffff) | b << 16; }));
  t.add("s_pack_lh_b32_b16",
        plain<u32, u32, u32>([](u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000u); }));
  t.add("s_pack_hh_b32_b16",
        plain<u32, u32, u32>([](u32 a, u32 b) { return a >> 16 | (b & 0xffff0000u); }));
  t.add("s_pack_hl_b32_b16", plain<u32, u32, u32>([](u32 a, u32 b) { return a >> 16 | b << 16; }));
  t.add("s_flbit_i32", plain<u32, u32>([](u32 a) {
          const u32 changes = a ^ static_cast<u32>(static_cast<i32>(a) >> 31);
          return changes ? std::countl_zero(changes) : -1;
        }));
  t.add("s_bitset0_b32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, 0, scalar_value(w, in[0]) & ~(1u << (scalar_value(w, in[1]) & 31)));
  });
  t.add("s_bitset1_b32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, 0, scalar_value(w, in[0]) | 1u << (scalar_value(w, in[1]) & 31));
  });
}

template <class T>
void register_comparisons(Opcodes& t, const std::string& type) {
  t.add("s_cmp_eq_" + type, comparing<T>([](T a, T b) { return a == b; }));
  t.add("s_cmp_lg_" + type, comparing<T>([](T a, T b) { return a != b; }));
  t.add("s_cmp_lt_" + type, comparing<T>([](T a, T b) { return a < b; }));
  t.add("s_cmp_le_" + type, comparing<T>([](T a, T b) { return a <= b; }));
  t.add("s_cmp_gt_" + type, comparing<T>([](T a, T b) { return a > b; }));
  t.add("s_cmp_ge_" + type, comparing<T>([](T a, T b) { return a >= b; }));
}

// Instructions with a 16-bit constant in the place of the second source.
i32 constant16(const Instruction& in, int at) { return sign_extend(in[at].value, 16); }

void register_constants(Opcodes& t) {
  t.add("s_movk_i32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, 0, static_cast<u32>(constant16(in, 1)));
  });
  t.add("s_cmovk_i32", [](Wave& w, const Instruction& in) {
    if (w.scc) set_scalar(w, in, 0, static_cast<u32>(constant16(in, 1)));
  });
  t.add("s_addk_i32", [](Wave& w, const Instruction& in) {
    const i64 sum = static_cast<i64>(static_cast<i32>(scalar_value(w, in[0]))) + constant16(in, 1);
    set_scalar(w, in, 0, static_cast<u32>(sum));
    w.scc = overflows(sum);
  });
  t.add("s_mulk_i32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, 0, scalar_value(w, in[0]) * static_cast<u32>(constant16(in, 1)));
  });
  const auto compare = [&](const char* name, auto signed_test, auto unsigned_test) {
    using S = decltype(signed_test);
    using U = decltype(unsigned_test);
    t.add(std::string("s_cmpk_") + name + "_i32", [](Wave& w, const Instruction& in) {
      w.scc = kLaneFunction<S>(static_cast<i32>(scalar_value(w, in[0])), constant16(in, 1));
    });
    t.add(std::string("s_cmpk_") + name + "_u32", [](Wave& w, const Instruction& in) {
      w.scc = kLaneFunction<U>(scalar_value(w, in[0]), in[1].value & 0xffff);
    });
  };
  compare("eq", [](i32 a, i32 b) { return a == b; }, [](u32 a, u32 b) { return a == b; });
  compare("lg", [](i32 a, i32 b) { return a != b; }, [](u32 a, u32 b) { return a != b; });
  compare("lt", [](i32 a, i32 b) { return a < b; }, [](u32 a, u32 b) { return a < b; });
  compare("le", [](i32 a, i32 b) { return a <= b; }, [](u32 a, u32 b) { return a <= b; });
  compare("gt", [](i32 a, i32 b) { return a > b; }, [](u32 a, u32 b) { return a > b; });
  compare("ge", [](i32 a, i32 b) { return a >= b; }, [](u32 a, u32 b) { return a >= b; });
}

template <class T>
void register_selection(Opcodes& t, const std::string& type) {
  t.add("s_cselect_" + type, [](Wave& w, const Instruction& in) {
    write<T>(w, in, read<T>(w, in, w.scc ? 1 : 2), Flag::Kept);
  });
  t.add("s_cmov_" + type, [](Wave& w, const Instruction& in) {
    if (w.scc) write<T>(w, in, read<T>(w, in, 1), Flag::Kept);
  });
  t.add(sizeof(T) == 4 ? "s_bitcmp1_b32" : "s_bitcmp1_b64", [](Wave& w, const Instruction& in) {
    w.scc = read<T>(w, in, 0) >> (scalar_value(w, in[1]) & (sizeof(T) * 8 - 1)) & 1;
  });
  t.add(sizeof(T) == 4 ? "s_bitcmp0_b32" : "s_bitcmp0_b64", [](Wave& w, const Instruction& in) {
    w.scc = !(read<T>(w, in, 0) >> (scalar_value(w, in[1]) & (sizeof(T) * 8 - 1)) & 1);
  });
}

// gfx11.5's and gfx12's scalar floats.
void register_floats(Opcodes& t) {
  const auto add = [&](const char* name, auto f) {
    using F = decltype(f);
    t.add(name, [](Wave& w, const Instruction& in) {
      set_scalar(w, in, 0,
                 as_bits(kLaneFunction<F>(as_float(scalar_value(w, in[1])),
                                          as_float(scalar_value(w, in[2])))));
    });
  };
  add("s_add_f32", [](float a, float b) { return a + b; });
  add("s_sub_f32", [](float a, float b) { return a - b; });
  add("s_mul_f32", [](float a, float b) { return a * b; });
  add("s_max_num_f32", [](float a, float b) { return maximum(a, b); });
  add("s_min_num_f32", [](float a, float b) { return minimum(a, b); });
  t.add("s_fmac_f32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, 0,
               as_bits(std::fma(as_float(scalar_value(w, in[1])), as_float(scalar_value(w, in[2])),
                                as_float(scalar_value(w, in[0])))));
  });
  t.add("s_cvt_f32_i32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, 0, as_bits(static_cast<float>(static_cast<i32>(scalar_value(w, in[1])))));
  });
  t.add("s_cvt_f32_u32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, 0, as_bits(static_cast<float>(scalar_value(w, in[1]))));
  });
  const auto add_one = [&](const char* name, auto f) {
    using F = decltype(f);
    t.add(name, [](Wave& w, const Instruction& in) {
      set_scalar(w, in, 0, kLaneFunction<F>(as_float(scalar_value(w, in[1]))));
    });
  };
  add_one("s_cvt_u32_f32", [](float a) {
    return !(a > 0) ? 0u : a >= 0x1p32f ? ~0u : static_cast<u32>(a);
  });
  add_one("s_cvt_i32_f32", [](float a) {
    if (a != a) return 0u;
    return static_cast<u32>(a <= -0x1p31f  ? i64{-0x80000000ll}
                            : a >= 0x1p31f ? i64{0x7fffffff}
                                           : static_cast<i64>(a));
  });
  add_one("s_trunc_f32", [](float a) { return as_bits(std::trunc(a)); });
  add_one("s_floor_f32", [](float a) { return as_bits(std::floor(a)); });
  add_one("s_ceil_f32", [](float a) { return as_bits(std::ceil(a)); });
  add_one("s_rndne_f32", [](float a) { return as_bits(std::nearbyint(a)); });
  add_one("v_s_rcp_f32", [](float a) { return as_bits(flushed(1.f / flushed(a))); });
  add_one("v_s_exp_f32", [](float a) { return as_bits(flushed(exp2f(flushed(a)))); });
  add_one("v_s_log_f32", [](float a) { return as_bits(log2f(flushed(a))); });
  add_one("v_s_sqrt_f32", [](float a) { return as_bits(std::sqrt(flushed(a))); });
  add_one("v_s_rsq_f32", [](float a) {
    return as_bits(static_cast<float>(1.0 / std::sqrt(static_cast<double>(flushed(a)))));
  });
  t.add("s_fmaak_f32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, 0,
               as_bits(std::fma(as_float(scalar_value(w, in[1])), as_float(scalar_value(w, in[2])),
                                as_float(scalar_value(w, in[3])))));
  });
  t.add("s_fmamk_f32", [](Wave& w, const Instruction& in) {
    set_scalar(w, in, 0,
               as_bits(std::fma(as_float(scalar_value(w, in[1])), as_float(scalar_value(w, in[2])),
                                as_float(scalar_value(w, in[3])))));
  });
  const auto compare = [&](const char* name, auto f) {
    using F = decltype(f);
    t.add(name, [](Wave& w, const Instruction& in) {
      w.scc = kLaneFunction<F>(as_float(scalar_value(w, in[0])), as_float(scalar_value(w, in[1])));
    });
  };
  compare("s_cmp_lt_f32", [](float a, float b) { return a < b; });
  compare("s_cmp_le_f32", [](float a, float b) { return a <= b; });
  compare("s_cmp_gt_f32", [](float a, float b) { return a > b; });
  compare("s_cmp_ge_f32", [](float a, float b) { return a >= b; });
  compare("s_cmp_eq_f32", [](float a, float b) { return a == b; });
  compare("s_cmp_lg_f32", [](float a, float b) { return a < b || a > b; });
  compare("s_cmp_neq_f32", [](float a, float b) { return !(a == b); });
  compare("s_cmp_nlt_f32", [](float a, float b) { return !(a < b); });
  compare("s_cmp_ngt_f32", [](float a, float b) { return !(a > b); });
  compare("s_cmp_nle_f32", [](float a, float b) { return !(a <= b); });
  compare("s_cmp_nge_f32", [](float a, float b) { return !(a >= b); });
  compare("s_cmp_u_f32", [](float a, float b) { return a != a || b != b; });
  compare("s_cmp_o_f32", [](float a, float b) { return a == a && b == b; });
}

}  // namespace

void register_scalar(Opcodes& t) {
  register_bitwise<u32>(t, "b32");
  register_bitwise<u64>(t, "b64");
  register_counts<u32>(t, "b32");
  register_counts<u64>(t, "b64");
  register_saveexec<u32>(t, "b32");
  register_saveexec<u64>(t, "b64");
  register_sums(t);
  register_fields(t);
  register_comparisons<i32>(t, "i32");
  register_comparisons<u32>(t, "u32");
  register_comparisons<u64>(t, "u64");
  register_constants(t);
  register_selection<u32>(t, "b32");
  register_selection<u64>(t, "b64");
  register_floats(t);
}

}  // namespace tessera::amdgpu
