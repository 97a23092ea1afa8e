// Compiled memory accesses of every kind, on every target, in every order of the waves.

#include <gtest/gtest.h>

#include <numeric>

#include "tests/amdgpu/isa/testing.hpp"

namespace tessera::amdgpu::testing {
namespace {

class Memory : public ::testing::TestWithParam<std::string> {
 protected:
  CompiledKernels kernels_{"memory", GetParam()};
  bool is_gfx9() const { return GetParam().starts_with("gfx9"); }
};

TEST_P(Memory, EveryWidthThroughLds) {
  std::vector<u8> in(4096);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<u8>(i * 31 + i / 256);
  std::vector<u8> out(12288);
  kernels_.allow(in);
  kernels_.allow(out);
  for (const WaveOrder order : {WaveOrder::Forward, WaveOrder::Reverse, WaveOrder::Random}) {
    std::fill(out.begin(), out.end(), u8{0});
    kernels_.run("widths", 1, 256, Arguments().add(in).add(out), {.order = order, .seed = 5});
    const auto expect = [&](std::size_t to, std::size_t stride, std::size_t bytes) {
      for (std::size_t i = 0; i < 256; ++i)
        ASSERT_EQ(std::memcmp(&out[to + stride * i], &in[stride * (255 - i)], bytes), 0)
            << bytes << " bytes of " << i;
    };
    expect(0, 16, 16);
    expect(4096, 16, 12);
    expect(8192, 8, 8);
    expect(10240, 4, 4);
    expect(11264, 2, 2);
    expect(11776, 1, 1);
  }
}

TEST_P(Memory, BufferBounds) {
  std::vector<int> data(64), out(192, -1), stored(64, -1);
  std::iota(data.begin(), data.end(), 1);
  kernels_.allow(data);
  kernels_.allow(stored);
  kernels_.allow(out);
  const int bound = 50 * 4 - 2;  // not a whole word: word 49 lies outside
  const int flags = is_gfx9() ? 0x27000 : 0x31004000;
  kernels_.run("bounded", 1, 64, Arguments().add(data).add(out).add(stored).add(bound).add(flags));
  const auto word = [&](int i) { return i < 49 ? data[static_cast<std::size_t>(i)] : 0; };
  for (int i = 0; i < 64; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(out[at], word(i)) << i;
    int sum = 0;
    for (int j = 0; j < 4; ++j) sum += word(i + 4 + j);
    EXPECT_EQ(out[64 + at], sum) << i;
    EXPECT_EQ(out[128 + at], i % 2 ? 0 : data[at / 2]) << i;
    EXPECT_EQ(stored[at], i >= 32 && i < 49 ? 1000 + i - 32 : -1) << i;
  }
}

TEST_P(Memory, Atomics) {
  constexpr u32 kGroups = 16, kItems = 256 * kGroups;
  std::vector<u32> sum(4), before(kItems);
  std::vector<u64> wide(2);
  std::vector<float> real(1);
  for (auto* buffer : {&sum, &before}) kernels_.allow(*buffer);
  kernels_.allow(wide);
  kernels_.allow(real);
  kernels_.run("atomics", kGroups, 256, Arguments().add(sum).add(wide).add(real).add(before),
               {.threads = 4});
  EXPECT_EQ(sum[0], kItems);
  EXPECT_EQ(sum[1], kItems - 1);
  EXPECT_EQ(static_cast<int>(sum[2]), -static_cast<int>(kItems - 1));
  EXPECT_EQ(sum[3], ~0u);
  EXPECT_EQ(wide[0], (u64{kItems} * (kItems - 1) / 2) << 20);
  EXPECT_GE(wide[1], 1u);
  EXPECT_LE(wide[1], kItems);
  EXPECT_EQ(real[0], kItems * 0.5f);
  std::sort(before.begin(), before.end());
  for (u32 i = 0; i < kItems; ++i) ASSERT_EQ(before[i], i);
}

TEST_P(Memory, LdsAtomics) {
  std::vector<u32> out(9);
  kernels_.allow(out);
  kernels_.run("lds_atomics", 1, 256, Arguments().add(out));
  for (u32 i = 0; i < 8; ++i) EXPECT_EQ(out[i], 32 * i + 8 * (31 * 32 / 2));
  EXPECT_EQ(out[8], 64u);
}

TEST_P(Memory, GenericPointers) {
  std::vector<int> in(64), out(64);
  std::iota(in.begin(), in.end(), 3);
  kernels_.allow(in);
  kernels_.allow(out);
  kernels_.run("generic", 1, 64, Arguments().add(in).add(out));
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], in[i ^ 2] + (i % 2 ? 1000 : 0)) << i;
}

INSTANTIATE_TEST_SUITE_P(All, Memory, ::testing::ValuesIn(kAllTargets), TargetName{});

class Direct : public Memory {};

TEST_P(Direct, LoadsIntoLds) {
  std::vector<int> in(256), out(256);
  std::iota(in.begin(), in.end(), 9);
  kernels_.allow(in);
  kernels_.allow(out);
  kernels_.run("direct", 1, 256, Arguments().add(in).add(out), {.order = WaveOrder::Reverse});
  for (std::size_t i = 0; i < 256; ++i) EXPECT_EQ(out[i], in[(255 - i) ^ 5]) << i;
}

INSTANTIATE_TEST_SUITE_P(All, Direct, ::testing::Values("gfx942", "gfx950"), TargetName{});

TEST(DirectWide, LoadsAndTransposes) {
  CompiledKernels kernels("memory", "gfx950");
  std::vector<int> in(256), out(256), transposed(128);
  std::iota(in.begin(), in.end(), 0x10000);
  for (auto* buffer : {&in, &out, &transposed}) kernels.allow(*buffer);
  kernels.run("direct_wide", 1, 64, Arguments().add(in).add(out).add(transposed));
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(out[4 * i + j], in[4 * ((63 - i) ^ 9) + j]);
  // Half h of LDS, which lane i of a group of 16 fetches four of; lane l gets column l of 4 rows
  // of 16.
  const auto half = [&](std::size_t h) {
    const int word = in[4 * ((h / 8) ^ 9) + h / 2 % 4];
    return static_cast<u16>(h % 2 ? word >> 16 : word);
  };
  const auto* got = reinterpret_cast<const u16*>(transposed.data());
  for (std::size_t lane = 0; lane < 64; ++lane)
    for (std::size_t row = 0; row < 4; ++row)
      EXPECT_EQ(got[4 * lane + row], half(64 * (lane / 16) + 16 * row + lane % 16))
          << lane << " " << row;
}

}  // namespace
}  // namespace tessera::amdgpu::testing
