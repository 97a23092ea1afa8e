// The layouts of matrix instructions, against the documented tables as they are written here: for
// each shape, which row and k an element of a lane is. Values are small integers, so sums are
// exact.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/amdgpu/isa/testing.hpp"

namespace tessera::amdgpu::testing {
namespace {

struct Place {
  int block, row, k;  // of a factor's element; of a result's: block, row, column
};

enum class Type { Half, Bfloat, Single, E4m3 };

struct Case {
  std::string instruction, target;
  Type type;
  int rows, depth, blocks, per_lane,
      registers;  // elements of a factor and registers of the result, a lane
  Place (*factor)(int lane, int element);
  Place (*result)(int lane, int reg);
};

// Results.
Place result32(int l, int r) { return {0, 8 * (r / 4) + 4 * (l / 32) + r % 4, l % 32}; }
Place result32_2(int l, int r) { return {r / 16, 8 * (r % 16 / 4) + 4 * (l / 32) + r % 4, l % 32}; }
Place result16(int l, int r) { return {0, 4 * (l / 16) + r, l % 16}; }
Place result16_4(int l, int r) { return {r / 4, 4 * (l / 16) + r % 4, l % 16}; }
Place result4_16(int l, int r) { return {l / 4, r, l % 4}; }
Place result_gfx11(int l, int r) { return {0, 2 * r + l / 16, l % 16}; }
Place result_gfx12(int l, int r) { return {0, 8 * (l / 16) + r, l % 16}; }

const std::vector<Case> kCases{
    {"v_mfma_f32_32x32x8_f16", "gfx942", Type::Half, 32, 8, 1, 4, 16,
     [](int l, int j) { return Place{0, l % 32, 4 * (l / 32) + j}; }, result32},
    {"v_mfma_f32_32x32x8f16", "gfx90a", Type::Half, 32, 8, 1, 4, 16,
     [](int l, int j) { return Place{0, l % 32, 4 * (l / 32) + j}; }, result32},
    {"v_mfma_f32_32x32x8bf16_1k", "gfx90a", Type::Bfloat, 32, 8, 1, 4, 16,
     [](int l, int j) { return Place{0, l % 32, 4 * (l / 32) + j}; }, result32},
    {"v_mfma_f32_32x32x8_bf16", "gfx942", Type::Bfloat, 32, 8, 1, 4, 16,
     [](int l, int j) { return Place{0, l % 32, 4 * (l / 32) + j}; }, result32},
    {"v_mfma_f32_16x16x16_f16", "gfx942", Type::Half, 16, 16, 1, 4, 4,
     [](int l, int j) { return Place{0, l % 16, 4 * (l / 16) + j}; }, result16},
    {"v_mfma_f32_16x16x16_bf16", "gfx942", Type::Bfloat, 16, 16, 1, 4, 4,
     [](int l, int j) { return Place{0, l % 16, 4 * (l / 16) + j}; }, result16},
    {"v_mfma_f32_32x32x16_f16", "gfx950", Type::Half, 32, 16, 1, 8, 16,
     [](int l, int j) { return Place{0, l % 32, 8 * (l / 32) + j}; }, result32},
    {"v_mfma_f32_32x32x16_bf16", "gfx950", Type::Bfloat, 32, 16, 1, 8, 16,
     [](int l, int j) { return Place{0, l % 32, 8 * (l / 32) + j}; }, result32},
    {"v_mfma_f32_16x16x32_f16", "gfx950", Type::Half, 16, 32, 1, 8, 4,
     [](int l, int j) { return Place{0, l % 16, 8 * (l / 16) + j}; }, result16},
    {"v_mfma_f32_16x16x32_bf16", "gfx950", Type::Bfloat, 16, 32, 1, 8, 4,
     [](int l, int j) { return Place{0, l % 16, 8 * (l / 16) + j}; }, result16},
    {"v_mfma_f32_32x32x2_f32", "gfx942", Type::Single, 32, 2, 1, 1, 16,
     [](int l, int) { return Place{0, l % 32, l / 32}; }, result32},
    {"v_mfma_f32_16x16x4_f32", "gfx942", Type::Single, 16, 4, 1, 1, 4,
     [](int l, int) { return Place{0, l % 16, l / 16}; }, result16},
    {"v_mfma_f32_32x32x4_2b_f16", "gfx942", Type::Half, 32, 4, 2, 4, 32,
     [](int l, int j) { return Place{l / 32, l % 32, j}; }, result32_2},
    {"v_mfma_f32_16x16x4_4b_f16", "gfx942", Type::Half, 16, 4, 4, 4, 16,
     [](int l, int j) { return Place{l / 16, l % 16, j}; }, result16_4},
    {"v_mfma_f32_4x4x4_16b_f16", "gfx942", Type::Half, 4, 4, 16, 4, 4,
     [](int l, int j) { return Place{l / 4, l % 4, j}; }, result4_16},
    {"v_mfma_f32_32x32x1_2b_f32", "gfx942", Type::Single, 32, 1, 2, 1, 32,
     [](int l, int) { return Place{l / 32, l % 32, 0}; }, result32_2},
    {"v_mfma_f32_4x4x1_16b_f32", "gfx942", Type::Single, 4, 1, 16, 1, 4,
     [](int l, int) { return Place{l / 4, l % 4, 0}; }, result4_16},
    {"v_mfma_f32_16x16x32_fp8_fp8", "gfx942", Type::E4m3, 16, 32, 1, 8, 4,
     [](int l, int j) { return Place{0, l % 16, 8 * (l / 16) + j}; }, result16},
    {"v_mfma_f32_32x32x16_fp8_fp8", "gfx950", Type::E4m3, 32, 16, 1, 8, 16,
     [](int l, int j) { return Place{0, l % 32, 8 * (l / 32) + j}; }, result32},
    {"v_wmma_f32_16x16x16_f16", "gfx1100", Type::Half, 16, 16, 1, 16, 8,
     [](int l, int j) { return Place{0, l % 16, j}; }, result_gfx11},
    {"v_wmma_f32_16x16x16_bf16", "gfx1100", Type::Bfloat, 16, 16, 1, 16, 8,
     [](int l, int j) { return Place{0, l % 16, j}; }, result_gfx11},
    {"v_wmma_f32_16x16x16_f16", "gfx1201", Type::Half, 16, 16, 1, 8, 8,
     [](int l, int j) { return Place{0, l % 16, 8 * (l / 16) + j}; }, result_gfx12},
    {"v_wmma_f32_16x16x16_bf16", "gfx1201", Type::Bfloat, 16, 16, 1, 8, 8,
     [](int l, int j) { return Place{0, l % 16, 8 * (l / 16) + j}; }, result_gfx12},
    {"v_wmma_f32_16x16x16_fp8_fp8", "gfx1201", Type::E4m3, 16, 16, 1, 8, 8,
     [](int l, int j) { return Place{0, l % 16, 8 * (l / 16) + j}; }, result_gfx12},
};

// -4 .. 4 in each format, written down rather than converted.
u32 encode(Type type, int value, bool one_zero) {
  constexpr u32 kHalf[5] = {0x0000, 0x3c00, 0x4000, 0x4200, 0x4400};
  constexpr u32 kBfloat[5] = {0x0000, 0x3f80, 0x4000, 0x4040, 0x4080};
  constexpr u32 kE4m3[5] = {0x00, 0x38, 0x40, 0x44, 0x48};  // gfx942's exponents are one greater
  const auto size = static_cast<std::size_t>(std::abs(value));
  switch (type) {
    case Type::Half:
      return kHalf[size] | (value < 0 ? 0x8000 : 0);
    case Type::Bfloat:
      return kBfloat[size] | (value < 0 ? 0x8000 : 0);
    case Type::E4m3:
      return (kE4m3[size] + (one_zero && value ? 8 : 0)) | (value < 0 ? 0x80 : 0);
    case Type::Single:
      break;
  }
  return as_bits(static_cast<float>(value));
}

class Matrix : public ::testing::TestWithParam<Case> {
 protected:
  using Factor = std::vector<int>;  // [block][row][k]
  int bits() const {
    return GetParam().type == Type::Single ? 32 : GetParam().type == Type::E4m3 ? 8 : 16;
  }
  int at(const Place& p) const {
    return (p.block * GetParam().rows + p.row) * GetParam().depth + p.k;
  }
  void put(OneWave& wave, int first, const Factor& values) {
    const Case& c = GetParam();
    for (int l = 0; l < static_cast<int>(wave->size); ++l)
      for (int j = 0; j < c.per_lane; ++j) {
        const u32 code = encode(c.type, values[static_cast<std::size_t>(at(c.factor(l, j)))],
                                c.target == "gfx942");
        wave.vector(first + j * bits() / 32, l) |= code << (j * bits() % 32);
      }
  }
};

std::string range(char bank, int first, int count) {
  return count == 1 ? fmt::format("{}{}", bank, first)
                    : fmt::format("{}[{}:{}]", bank, first, first + count - 1);
}

TEST_P(Matrix, ComputesTheProduct) {
  const Case& c = GetParam();
  std::mt19937 random(3);
  const auto some = [&] { return static_cast<int>(random() % 9) - 4; };
  Factor a(static_cast<std::size_t>(c.blocks * c.rows * c.depth)), b(a.size());
  for (Factor* factor : {&a, &b})
    for (int& value : *factor) value = some();
  OneWave wave(c.target);
  put(wave, 0, a);
  put(wave, 8, b);
  for (int l = 0; l < kLanes; ++l)
    for (int r = 0; r < c.registers; ++r)
      wave.vector(kAccumulators + r, l) = wave.vector(16 + r, l) =
          as_bits(static_cast<float>(100 * r + l));
  const int words = c.per_lane * bits() / 32;
  const bool mfma = c.instruction.find("mfma") != std::string::npos;
  if (mfma) wave->set_pair(kExec, 5);  // which it ignores
  const char bank = mfma ? 'a' : 'v';
  const int first = mfma ? 0 : 16, row = mfma ? kAccumulators : 16;
  wave.run(fmt::format("{} {}, {}, {}, {}", c.instruction, range(bank, first, c.registers),
                       range('v', 0, words), range('v', 8, words),
                       range(bank, first, c.registers)));
  for (int l = 0; l < static_cast<int>(wave->size); ++l)
    for (int r = 0; r < c.registers; ++r) {
      const Place place = c.result(l, r);
      int sum = 100 * r + l;
      for (int k = 0; k < c.depth; ++k)
        sum += a[static_cast<std::size_t>(at({place.block, place.row, k}))] *
               b[static_cast<std::size_t>(at({place.block, place.k, k}))];
      ASSERT_EQ(as_float(wave.vector(row + r, l)), static_cast<float>(sum))
          << "lane " << l << ", register " << r;
    }
}

TEST_P(Matrix, TakesAConstantToAddTo) {
  const Case& c = GetParam();
  OneWave wave(c.target);
  const int words = c.per_lane * bits() / 32;
  wave.run(fmt::format("{} {}, {}, {}, 1.0", c.instruction, range('v', 16, c.registers),
                       range('v', 0, words), range('v', 8, words)));
  for (int r = 0; r < c.registers; ++r) EXPECT_EQ(as_float(wave.vector(16 + r, 7)), 1.f);
}

INSTANTIATE_TEST_SUITE_P(All, Matrix, ::testing::ValuesIn(kCases), [](const auto& test) {
  return test.param.instruction + "_" + test.param.target;
});

TEST(MatrixErrors, Gfx11WantsItsFactorsTwice) {
  OneWave wave("gfx1100");
  wave.vector(0, 3) = 0x3c00;
  EXPECT_THROW(wave.run("v_wmma_f32_16x16x16_f16 v[16:23], v[0:7], v[8:15], 0"), Finding);
}

TEST(MatrixErrors, WmmaWantsAllLanes) {
  OneWave wave("gfx1201");
  wave->scalar[kExec] = 1;
  EXPECT_THROW(wave.run("v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[8:11], 0"), Finding);
}

}  // namespace
}  // namespace tessera::amdgpu::testing
