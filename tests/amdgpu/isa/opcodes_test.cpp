// Single instructions against their documented meaning, where compiled kernels do not reach.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/amdgpu/isa/testing.hpp"

namespace tessera::amdgpu::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Runs one instruction on values in v1, v2, v3 of every lane; the result is v0's, in lane 17.
struct Vector {
  OneWave wave;
  explicit Vector(std::string_view target = "gfx942") : wave(target) {}
  u32 operator()(std::string_view text, u32 a, u32 b = 0, u32 c = 0, u32 old = 0) {
    for (int l = 0; l < kLanes; ++l) {
      wave.vector(0, l) = old;
      wave.vector(1, l) = a;
      wave.vector(2, l) = b;
      wave.vector(3, l) = c;
    }
    wave.run(text);
    return wave.vector(0, 17);
  }
  float real(std::string_view text, float a, float b = 0, float c = 0, float old = 0) {
    return as_float((*this)(text, as_bits(a), as_bits(b), as_bits(c), as_bits(old)));
  }
};

TEST(Float, Modifiers) {
  Vector v;
  EXPECT_EQ(v.real("v_add_f32_e64 v0, -v1, |v2|", 3, -5), 2);
  EXPECT_EQ(v.real("v_mul_f32_e64 v0, v1, -|v2| clamp", 3, 5), 0);
  EXPECT_EQ(v.real("v_mul_f32_e64 v0, v1, v2 clamp", 3, 5), 1);
  EXPECT_EQ(v.real("v_add_f32_e64 v0, v1, v2 mul:4", 3, 5), 32);
  EXPECT_EQ(v.real("v_add_f32_e64 v0, v1, v2 div:2", 3, 5), 4);
  EXPECT_EQ(v.real("v_fma_f32 v0, v1, v2, -v3", 3, 5, 7), 8);
  EXPECT_EQ(v.real("v_fmac_f32_e32 v0, v1, v2", 3, 5, 0, 7), 22);
  EXPECT_EQ(v.real("v_fmamk_f32 v0, v1, 0x40000000, v2", 3, 5), 11);
  EXPECT_EQ(v.real("v_fmaak_f32 v0, v1, v2, 0x40000000", 3, 5), 17);
  EXPECT_EQ(v.real("v_add_f32_e32 v0, 1.0, v1", 3), 4);
  EXPECT_EQ(v.real("v_mul_f32_e32 v0, 0.15915494, v1", 1), as_float(0x3e22f983));
}

TEST(Float, MinimumAndMaximum) {
  Vector v;
  EXPECT_EQ(v.real("v_max_f32_e32 v0, v1, v2", kNan, 3), 3);
  EXPECT_EQ(v.real("v_min_f32_e32 v0, v1, v2", 3, kNan), 3);
  EXPECT_EQ(v("v_max_f32_e32 v0, v1, v2", as_bits(-0.f), as_bits(0.f)), as_bits(0.f));
  EXPECT_EQ(v("v_min_f32_e32 v0, v1, v2", as_bits(0.f), as_bits(-0.f)), as_bits(-0.f));
  EXPECT_EQ(v.real("v_max3_f32 v0, v1, v2, v3", -kInfinity, 3, 2), 3);
  EXPECT_EQ(v.real("v_med3_f32 v0, v1, v2, v3", 9, 3, 5), 5);
  EXPECT_TRUE(std::isnan(v.real("v_max_f32_e32 v0, v1, v2", kNan, kNan)));
}

TEST(Float, Functions) {
  Vector v;
  for (const float x : {-20.25f, -1.f, 0.f, 0.375f, 3.5f, 88.f}) {
    EXPECT_NEAR(v.real("v_exp_f32_e32 v0, v1", x) / std::exp2(static_cast<double>(x)), 1, 2e-7)
        << x;
    if (x <= 0) continue;
    EXPECT_NEAR(v.real("v_log_f32_e32 v0, v1", x), std::log2(static_cast<double>(x)), 1e-6) << x;
    EXPECT_NEAR(v.real("v_rcp_f32_e32 v0, v1", x) * static_cast<double>(x), 1, 2e-7) << x;
    EXPECT_NEAR(v.real("v_rsq_f32_e32 v0, v1", x) * std::sqrt(static_cast<double>(x)), 1, 2e-7)
        << x;
  }
  EXPECT_EQ(v.real("v_exp_f32_e32 v0, v1", -127), 0);  // denormal: flushed
  EXPECT_EQ(v.real("v_exp_f32_e32 v0, v1", -kInfinity), 0);
  EXPECT_EQ(v.real("v_exp_f32_e32 v0, v1", 128), kInfinity);
  EXPECT_EQ(v.real("v_log_f32_e32 v0, v1", 0), -kInfinity);
  EXPECT_EQ(v.real("v_rcp_f32_e32 v0, v1", -0.f), -kInfinity);
  EXPECT_TRUE(std::isnan(v.real("v_log_f32_e32 v0, v1", -1)));
  EXPECT_EQ(v.real("v_ldexp_f32 v0, v1, 5", 3), 96);
  EXPECT_EQ(v.real("v_frexp_mant_f32_e32 v0, v1", 6), 0.75f);
  EXPECT_EQ(v("v_frexp_exp_i32_f32_e32 v0, v1", as_bits(6.f)), 3u);
}

TEST(Float, DenormalsByMode) {
  Vector v;
  const float denormal = as_float(0x00012345);
  EXPECT_EQ(v.real("v_add_f32_e32 v0, v1, v2", denormal, 0), denormal);
  v.wave.run("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0");
  EXPECT_EQ(v.real("v_add_f32_e32 v0, v1, v2", denormal, 0), 0);
  v.wave.run("s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 4)");
  EXPECT_EQ(v.wave->scalar[0], 0xcu);
}

TEST(Half, ConversionsRound) {
  Vector v;
  const std::vector<std::pair<float, u32>> nearest{
      {1.f, 0x3c00},         {1.f + 0x1p-11f, 0x3c00}, {1.f + 0x3p-11f, 0x3c02},
      {65504.f, 0x7bff},     {65519.f, 0x7bff},        {65520.f, 0x7c00},
      {-0x1p-24f, 0x8001},   {0x1p-25f, 0x0000},       {0x1.8p-24f, 0x0002},
      {0x1p-14f, 0x0400},    {kInfinity, 0x7c00},      {0x1.ff8p-15f, 0x03ff},
      {0x1.ffcp-15f, 0x0400}};
  for (const auto& [value, half] : nearest)
    EXPECT_EQ(v("v_cvt_f16_f32_e32 v0, v1", as_bits(value)), half) << value;
  const auto toward_zero = [&](float value) {
    return v("v_cvt_pkrtz_f16_f32 v0, v1, 0", as_bits(value));
  };
  EXPECT_EQ(toward_zero(1.f + 0x3.fp-11f), 0x3c01u);
  EXPECT_EQ(toward_zero(-70000.f), 0xfbffu);
  EXPECT_EQ(toward_zero(0x1.8p-24f), 0x0001u);
  for (u32 half = 0; half < 0x7c00; ++half)
    ASSERT_EQ(v("v_cvt_f16_f32_e32 v0, v1", v("v_cvt_f32_f16_e32 v0, v1", half)), half);
  EXPECT_EQ(v.real("v_cvt_f32_f16_e32 v0, v1", as_float(0x0001)), 0x1p-24f);
  EXPECT_EQ(v.real("v_cvt_f32_f16_e32 v0, v1", as_float(0xfc00)), -kInfinity);
}

TEST(Half, HalvesOfRegisters) {
  Vector v;
  EXPECT_EQ(v("v_add_f16_e32 v0, v1, v2", 0xdead3c00, 0xbeef4000, 0, 0x12345678),
            0x4200u);  // gfx9 clears the rest
  EXPECT_EQ(v("v_pack_b32_f16 v0, v1, v2 op_sel:[1,0,0]", 0x3c000001, 0x00024000), 0x40003c00u);
  EXPECT_EQ(v("v_fma_f16 v0, v1, v2, v3 op_sel:[1,0,0,1]", 0x40000000, 0x4200, 0x3c00, 0x1234),
            0x47001234u);
  Vector rdna("gfx1100");
  EXPECT_EQ(rdna("v_add_f16_e32 v0.l, v1.l, v2.h", 0x3c00, 0x40000000, 0, 0x12345678), 0x12344200u);
  EXPECT_EQ(rdna("v_add_f16_e32 v0.h, v1.l, v2.h", 0x3c00, 0x40000000, 0, 0x12345678), 0x42005678u);
}

TEST(Packed, Halves) {
  Vector v;
  EXPECT_EQ(v("v_pk_add_f16 v0, v1, v2", 0x40003c00, 0x3c004000), 0x42004200u);
  EXPECT_EQ(v("v_pk_mul_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]", 0x40003c00, 0x42004400),
            0x42004800u);
  EXPECT_EQ(v("v_pk_fma_f16 v0, v1, v2, v3 neg_lo:[1,0,0]", 0x40003c00, 0x40004000, 0x3c003c00),
            0x4500bc00u);
  EXPECT_EQ(v("v_pk_add_f16 v0, v1, 1.0 op_sel_hi:[1,0]", 0x40003c00), 0x42004000u);
  EXPECT_EQ(v("v_pk_add_u16 v0, v1, v2", 0xffff0001, 0x00020003), 0x00010004u);
  EXPECT_EQ(v("v_pk_lshlrev_b16 v0, 4, v1 op_sel_hi:[0,1]", 0x12345678), 0x23406780u);
  EXPECT_EQ(
      v.real("v_dot2_f32_f16 v0, v1, v2, v3", as_float(0x40003c00), as_float(0x44004200), 0.5f),
      11.5f);
  EXPECT_EQ(v.real("v_fma_mix_f32 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,0,0]",
                   as_float(0x40000000), 3, 1),
            7);
}

TEST(Packed, Floats) {
  Vector v;
  for (int l = 0; l < kLanes; ++l)
    for (int i = 0; i < 4; ++i) v.wave.vector(4 + i, l) = as_bits(static_cast<float>(i + 1));
  const auto pair = [&] {
    return std::pair{as_float(v.wave.vector(8, 3)), as_float(v.wave.vector(9, 3))};
  };
  v.wave.run("v_pk_mul_f32 v[8:9], v[4:5], v[6:7]");
  EXPECT_EQ(pair(), (std::pair{3.f, 8.f}));
  v.wave.run("v_pk_mul_f32 v[8:9], v[4:5], v[6:7] op_sel_hi:[1,0]");
  EXPECT_EQ(pair(), (std::pair{3.f, 6.f}));
  v.wave.run(
      "v_pk_fma_f32 v[8:9], v[4:5], v[6:7], v[6:7] op_sel:[1,0,0] op_sel_hi:[0,1,1] "
      "neg_hi:[0,0,1]");
  EXPECT_EQ(pair(), (std::pair{9.f, 0.f}));
  v.wave.run("v_pk_add_f32 v[8:9], v[4:5], 1.0 op_sel_hi:[1,0]");
  EXPECT_EQ(pair(), (std::pair{2.f, 3.f}));
  v.wave.run("v_pk_mov_b32 v[8:9], v[4:5], v[6:7] op_sel:[1,0]");
  EXPECT_EQ(pair(), (std::pair{2.f, 3.f}));
}

TEST(Bfloat, Rounds) {
  Vector v("gfx950");
  const auto pair = [&](u32 a, float b) {
    return v("v_cvt_pk_bf16_f32 v0, v1, v2", a, as_bits(b));
  };
  EXPECT_EQ(pair(0x3f808000, 2.f), 0x40003f80u);  // a tie, to even
  EXPECT_EQ(pair(0x3f818000, -2.f), 0xc0003f82u);
  EXPECT_EQ(pair(0x3f808001, kInfinity), 0x7f803f81u);
  EXPECT_EQ(pair(0x7f7fffff, 0) & 0xffff, 0x7f80u);
  EXPECT_EQ(pair(0x7f800001, 0) & 0xffff, 0x7fc0u);
}

TEST(Float8, Converts) {
  Vector ocp("gfx950"), own("gfx942");
  const auto four = [](Vector& v, float a, float b) {
    return v("v_cvt_pk_fp8_f32 v0, v1, v2", as_bits(a), as_bits(b)) & 0xffff;
  };
  EXPECT_EQ(four(ocp, 1, -448), 0xfe38u);
  EXPECT_EQ(four(ocp, 1000, 0x1p-9f), 0x017eu);
  EXPECT_EQ(four(own, 1, -240), 0xff40u);
  EXPECT_EQ(four(own, -0.f, 17), 0x6000u);  // one zero; a tie to 16
  EXPECT_EQ(
      ocp("v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", as_bits(1.f), as_bits(2.f), 0, 0x1234),
      0x40381234u);
  EXPECT_EQ(ocp.real("v_cvt_f32_bf8_sdwa v0, v1 src0_sel:BYTE_1", as_float(0x00007b00)), 57344);
  EXPECT_EQ(ocp.real("v_cvt_f32_fp8_e32 v0, v1", as_float(0x7e)), 448);
  EXPECT_TRUE(std::isnan(own.real("v_cvt_f32_fp8_e32 v0, v1", as_float(0x80))));
  for (u32 code = 0; code < 0x7f; ++code)
    EXPECT_EQ(four(ocp, ocp.real("v_cvt_f32_fp8_e32 v0, v1", as_float(code)), 0) & 0xff, code);
}

TEST(Integer, BitsAndBytes) {
  Vector v("gfx950");
  EXPECT_EQ(v("v_perm_b32 v0, v1, v2, v3", 0x07060504, 0x03020100, 0x0c0d0207), 0x00ff0207u);
  EXPECT_EQ(v("v_perm_b32 v0, v1, v2, v3", 0x80000000, 0x00008000, 0x0b0a0908), 0xff0000ffu);
  EXPECT_EQ(v("v_bfi_b32 v0, v1, v2, v3", 0xff00ff00, 0x12345678, 0x9abcdef0), 0x12bc56f0u);
  EXPECT_EQ(v("v_bfe_i32 v0, v1, 4, 8", 0x00000f80), 0xfffffff8u);
  EXPECT_EQ(v("v_alignbit_b32 v0, v1, v2, 8", 0x12345678, 0x9abcdef0), 0x789abcdeu);
  EXPECT_EQ(v("v_mad_u32_u24 v0, v1, v2, v3", 0xff000003, 5, 7), 22u);
  EXPECT_EQ(v("v_bitop3_b32 v0, v1, v2, v3 bitop3:0x78", 0xf0f0, 0xff00, 0xaaaa),
            (0xf0f0u ^ (0xff00u & 0xaaaau)));
  EXPECT_EQ(v("v_sad_u8 v0, v1, v2, v3", 0x01020304, 0x04030201, 100), 108u);
  EXPECT_EQ(v("v_cndmask_b32_e64 v0, v1, -v2, s[4:5]", 1, 2), 1u);
}

TEST(Integer, CarriesAndMasks) {
  Vector v;
  v.wave->set_pair(kExec, u64{0xff});
  v("v_add_co_u32_e32 v0, vcc, v1, v2", 0xffffffff, 1);
  EXPECT_EQ(v.wave->pair(kVcc), 0xffu);
  v("v_addc_co_u32_e64 v0, s[10:11], v1, v2, vcc", 5, 6);
  EXPECT_EQ(v.wave.vector(0, 7), 12u);
  EXPECT_EQ(v.wave->pair(10), 0u);
  v("v_cmp_gt_u32_e64 s[8:9], v1, 4", 5);
  EXPECT_EQ(v.wave->pair(8), 0xffu);
  v("v_cmpx_ne_u32_e32 vcc, v1, v2", 5, 5);
  EXPECT_EQ(v.wave->exec(), 0u);
  Vector rdna("gfx1100");
  rdna("v_cmpx_eq_u32_e32 5, v1", 5);
  EXPECT_EQ(rdna.wave->exec(), 0xffffffffu);
  rdna("v_cmp_class_f32_e64 s3, v1, 0x204", as_bits(-kInfinity));
  EXPECT_EQ(rdna.wave->scalar[3], 0xffffffffu);
}

TEST(Scalar, Arithmetic) {
  OneWave wave("gfx942");
  const auto scalar = [&](std::string_view text, u32 a, u32 b) {
    wave->scalar[1] = a;
    wave->scalar[2] = b;
    wave.run(text);
    return std::pair{wave->scalar[0], wave->scc};
  };
  using R = std::pair<u32, u32>;
  EXPECT_EQ(scalar("s_add_u32 s0, s1, s2", ~0u, 2), (R{1, 1}));
  EXPECT_EQ(scalar("s_addc_u32 s0, s1, s2", 3, 4), (R{8, 0}));
  EXPECT_EQ(scalar("s_add_i32 s0, s1, s2", 0x7fffffff, 1), (R{0x80000000, 1}));
  EXPECT_EQ(scalar("s_sub_u32 s0, s1, s2", 3, 4), (R{~0u, 1}));
  EXPECT_EQ(scalar("s_bfe_i32 s0, s1, 0x80004", 0xf80, 0), (R{0xfffffff8, 1}));
  EXPECT_EQ(scalar("s_bfe_u32 s0, s1, 0x80004", 0xf80, 0), (R{0xf8, 1}));
  EXPECT_EQ(scalar("s_bfe_i64 s[0:1], s[2:3], 0x200000", 0, 0x80000001), (R{0x80000001, 1}));
  EXPECT_EQ(wave->scalar[1], ~0u);
  EXPECT_EQ(scalar("s_andn2_b32 s0, s1, s2", 0xff, 0xff), (R{0, 0}));
  EXPECT_EQ(scalar("s_min_i32 s0, s1, s2", ~0u, 1), (R{~0u, 1}));
  EXPECT_EQ(scalar("s_ff1_i32_b32 s0, s1", 0x50, 0).first, 4u);
  EXPECT_EQ(scalar("s_pack_ll_b32_b16 s0, s1, s2", 0x11112222, 0x33334444).first, 0x44442222u);
  EXPECT_EQ(scalar("s_mul_hi_u32 s0, s1, s2", 0x80000000, 6).first, 3u);
  EXPECT_EQ(scalar("s_movk_i32 s0, 0xff80", 0, 0).first, 0xffffff80u);
  wave->set_pair(kExec, 0xf0);
  wave->set_pair(4, 0x3c);
  wave.run("s_and_saveexec_b64 s[6:7], s[4:5]");
  EXPECT_EQ(wave->exec(), 0x30u);
  EXPECT_EQ(wave->pair(6), 0xf0u);
  wave.run("s_mov_b64 s[6:7], -2");
  EXPECT_EQ(wave->pair(6), ~u64{1});
}

TEST(Decoding, RefusesWhatItDoesNotKnow) {
  const Target& target = *find_target("gfx942");
  for (const char* text :
       {"v_frobnicate_b32 v0, v1", "v_mov_b32_e32 v0, q1", "v_mov_b32_e32 v0, v256",
        "v_mov_b32_e32 v0, v1 row_zigzag:3", "ds_read_b32 v0, v1 gds", "s_mov_b32 s0, s106",
        "ds_swizzle_b32 v0, v1 offset:swizzle(FFT,3)"})
    EXPECT_NE(decode(text, target).problem, "") << text;
  EXPECT_EQ(decode("v_mov_b32_e32 v0, v255", target).problem, "");
}

}  // namespace
}  // namespace tessera::amdgpu::testing
