// Instructions that move values between lanes, or that take parts of registers.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/amdgpu/isa/testing.hpp"

namespace tessera::amdgpu::testing {
namespace {

// v1 holds 100 + lane, v2 7, v0 999.
class Lanes : public ::testing::Test {
 protected:
  Lanes() {
    for (int l = 0; l < kLanes; ++l) {
      wave_.vector(0, l) = 999;
      wave_.vector(1, l) = 100 + static_cast<u32>(l);
      wave_.vector(2, l) = 7;
    }
  }
  // Lane l of v0 must be what f says.
  template <class F>
  void expect(std::string_view text, F f) {
    for (int l = 0; l < kLanes; ++l) wave_.vector(0, l) = 999;
    wave_.run(text);
    for (int l = 0; l < kLanes; ++l)
      EXPECT_EQ(wave_.vector(0, l), static_cast<u32>(f(l))) << text << ", lane " << l;
  }
  OneWave wave_{"gfx942"};
};

TEST_F(Lanes, QuadPermutation) {
  expect("v_mov_b32_dpp v0, v1 quad_perm:[3,0,2,1] row_mask:0xf bank_mask:0xf", [](int l) {
    return 100 + l / 4 * 4 + (l % 4 == 0 ? 3 : l % 4 == 1 ? 0 : l % 4 == 2 ? 2 : 1);
  });
}

TEST_F(Lanes, ShiftsWithinARow) {
  expect("v_mov_b32_dpp v0, v1 row_shr:3 row_mask:0xf bank_mask:0xf",
         [](int l) { return l % 16 >= 3 ? 97 + l : 999; });
  expect("v_mov_b32_dpp v0, v1 row_shr:3 row_mask:0xf bank_mask:0xf bound_ctrl:0",
         [](int l) { return l % 16 >= 3 ? 97 + l : 0; });
  expect("v_mov_b32_dpp v0, v1 row_shl:5 row_mask:0xf bank_mask:0xf",
         [](int l) { return l % 16 < 11 ? 105 + l : 999; });
  expect("v_mov_b32_dpp v0, v1 row_ror:4 row_mask:0xf bank_mask:0xf",
         [](int l) { return 100 + l / 16 * 16 + (l + 12) % 16; });
}

TEST_F(Lanes, Mirrors) {
  expect("v_mov_b32_dpp v0, v1 row_mirror row_mask:0xf bank_mask:0xf",
         [](int l) { return 100 + l / 16 * 16 + 15 - l % 16; });
  expect("v_mov_b32_dpp v0, v1 row_half_mirror row_mask:0xf bank_mask:0xf",
         [](int l) { return 100 + l / 8 * 8 + 7 - l % 8; });
}

TEST_F(Lanes, Broadcasts) {
  expect("v_mov_b32_dpp v0, v1 row_bcast:15 row_mask:0xa bank_mask:0xf",
         [](int l) { return l / 16 % 2 ? 100 + l / 16 * 16 - 1 : 999; });
  expect("v_mov_b32_dpp v0, v1 row_bcast:31 row_mask:0xc bank_mask:0xf",
         [](int l) { return l >= 32 ? 131 : 999; });
  expect("v_mov_b32_dpp v0, v1 row_newbcast:6 row_mask:0xf bank_mask:0xf",
         [](int l) { return 106 + l / 16 * 16; });
  expect("v_mov_b32_dpp v0, v1 row_newbcast:6 row_mask:0xf bank_mask:0x2",
         [](int l) { return l / 4 % 4 == 1 ? 106 + l / 16 * 16 : 999; });
}

TEST_F(Lanes, DppInArithmeticReadsOneSource) {
  expect("v_add_u32_dpp v0, v1, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
         [](int l) { return 200 + (l ^ 1) + l; });
}

TEST_F(Lanes, DppOfALaneThatIsOff) {
  wave_->set_pair(kExec, ~u64{0} << 1);
  expect("v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf",
         [](int l) { return l % 16 == 0 || l == 1 ? 999 : 99 + l; });
}

TEST_F(Lanes, PermutesThroughLds) {
  for (int l = 0; l < kLanes; ++l) wave_.vector(3, l) = 4 * static_cast<u32>((l * 5 + 3) % 64);
  expect("ds_bpermute_b32 v0, v3, v1", [](int l) { return 100 + (l * 5 + 3) % 64; });
  expect("ds_bpermute_b32 v0, v3, v1 offset:8", [](int l) { return 100 + (l * 5 + 5) % 64; });
  std::array<int, 64> from{};
  for (int l = 0; l < 64; ++l) from[static_cast<std::size_t>((l * 5 + 3) % 64)] = l;
  expect("ds_permute_b32 v0, v3, v1",
         [&](int l) { return 100 + from[static_cast<std::size_t>(l)]; });
}

TEST_F(Lanes, Swizzles) {
  expect("ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)", [](int l) { return 100 + (l ^ 16); });
  expect("ds_swizzle_b32 v0, v1 offset:swizzle(REVERSE,8)", [](int l) { return 100 + (l ^ 7); });
  expect("ds_swizzle_b32 v0, v1 offset:swizzle(BROADCAST,8,3)",
         [](int l) { return 100 + l / 8 * 8 + 3; });
  expect("ds_swizzle_b32 v0, v1 offset:swizzle(QUAD_PERM,2,3,0,1)",
         [](int l) { return 100 + (l ^ 2); });
  expect("ds_swizzle_b32 v0, v1 offset:swizzle(BITMASK_PERM,\"01pip\")",
         [](int l) { return 100 + l / 32 * 32 + ((((l & 7) | 8) ^ 2) & 15); });
}

TEST_F(Lanes, ScalarsAndLanes) {
  wave_->set_pair(kExec, u64{0xf0});
  wave_.run("v_readfirstlane_b32 s5, v1");
  EXPECT_EQ(wave_->scalar[5], 104u);
  wave_.run("v_readlane_b32 s6, v1, 63");
  EXPECT_EQ(wave_->scalar[6], 163u);
  wave_->scalar[7] = 5;
  wave_.run("v_writelane_b32 v0, s6, s7");
  EXPECT_EQ(wave_.vector(0, 5), 163u);
  EXPECT_EQ(wave_.vector(0, 6), 999u);
  wave_->set_pair(kExec, ~u64{0});
  expect("v_mbcnt_lo_u32_b32 v0, -1, 0", [](int l) { return l < 32 ? l : 32; });
  expect("v_mbcnt_hi_u32_b32 v0, -1, v2", [](int l) { return 7 + (l < 32 ? 0 : l - 32); });
}

TEST_F(Lanes, PartsBySdwa) {
  for (int l = 0; l < kLanes; ++l) wave_.vector(1, l) = 0x84c2a180u + static_cast<u32>(l);
  expect("v_mov_b32_sdwa v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_2",
         [](int) { return 0xc2; });
  expect("v_mov_b32_sdwa v0, sext(v1) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1",
         [](int) { return 0xffff84c2u; });
  expect(
      "v_add_u32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 "
      "src1_sel:DWORD",
      [](int l) { return ((0x80u + static_cast<u32>(l) + 7) & 0xff) << 8 | (999 & 0xff); });
  expect(
      "v_add_u32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:BYTE_3 "
      "src1_sel:WORD_0",
      [](int) { return 0x8bu << 16; });
}

TEST(LanesGfx950, SwapsHalvesAndRows) {
  OneWave wave("gfx950");
  const auto fill = [&] {
    for (int l = 0; l < kLanes; ++l)
      wave.vector(1, l) = static_cast<u32>(l), wave.vector(2, l) = 1000 + static_cast<u32>(l);
  };
  fill();
  wave.run("v_permlane32_swap_b32_e32 v1, v2");
  for (int l = 0; l < kLanes; ++l) {
    EXPECT_EQ(wave.vector(1, l), static_cast<u32>(l < 32 ? l : 1000 + l - 32));
    EXPECT_EQ(wave.vector(2, l), static_cast<u32>(l < 32 ? l + 32 : 1000 + l));
  }
  fill();
  wave.run("v_permlane16_swap_b32_e32 v1, v2");
  for (int l = 0; l < kLanes; ++l) {
    EXPECT_EQ(wave.vector(1, l), static_cast<u32>(l / 16 % 2 ? 1000 + l - 16 : l));
    EXPECT_EQ(wave.vector(2, l), static_cast<u32>(l / 16 % 2 ? 1000 + l : l + 16));
  }
}

TEST(LanesRdna, PermutesRows) {
  OneWave wave("gfx1100");
  for (int l = 0; l < 32; ++l) wave.vector(1, l) = 100 + static_cast<u32>(l);
  wave->scalar[2] = 0x76543210;
  wave->scalar[3] = 0xfedcba98;
  wave.run("v_permlanex16_b32 v0, v1, s2, s3");
  for (int l = 0; l < 32; ++l) EXPECT_EQ(wave.vector(0, l), 100u + static_cast<u32>(l ^ 16));
  wave->scalar[2] = 0x01234567;
  wave.run("v_permlane16_b32 v0, v1, s2, s3");
  for (int l = 0; l < 8; ++l) EXPECT_EQ(wave.vector(0, 16 + l), 116u + static_cast<u32>(7 - l));
  wave.run("v_mov_b32_dpp v0, v1 row_xmask:5 row_mask:0xf bank_mask:0xf");
  for (int l = 0; l < 32; ++l) EXPECT_EQ(wave.vector(0, l), 100u + static_cast<u32>(l ^ 5));
  wave.run("v_mov_b32_dpp v0, v1 dpp8:[7,6,5,4,3,2,1,0]");
  for (int l = 0; l < 32; ++l) EXPECT_EQ(wave.vector(0, l), 100u + static_cast<u32>(l ^ 7));
}

}  // namespace
}  // namespace tessera::amdgpu::testing
