// The layouts of matrix instructions, against the documented tables, which are written down here
// once more, for each instruction: of lane l the numbers j of a factor are row (B: column) and
// number k, the sums r row and column. Beside the formulas some places as AMD's matrix instruction
// calculator prints them. Values are small integers, so sums are exact.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "tests/amdgpu/lanes/operations.hpp"

namespace tessera::amdgpu::lanes {
namespace {

struct Place {
  int row, column;  // of a factor: row and k
  friend bool operator==(const Place&, const Place&) = default;
};

enum class Type { Half, Bfloat, Single };

struct Spot {
  int lane, number;
  Place place;
};

struct Case {
  std::string name;
  const Operation* operation;
  Type type;
  int wave, side, depth, numbers, sums;
  Place (*factor)(int l, int j);
  Place (*result)(int l, int r);
  std::vector<Spot> factor_spots, result_spots;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

Place result32(int l, int r) { return {8 * (r / 4) + 4 * (l / 32) + r % 4, l % 32}; }
Place result11(int l, int r) { return {2 * r + l / 16, l % 16}; }
Place result12(int l, int r) { return {8 * (l / 16) + r, l % 16}; }
Place factor8(int l, int j) { return {l % 32, 4 * (l / 32) + j}; }
Place factor16(int l, int j) { return {l % 32, 8 * (l / 32) + j}; }
Place factor11(int l, int j) { return {l % 16, j}; }
Place factor12(int l, int j) { return {l % 16, 8 * (l / 16) + j}; }

const std::vector<Spot> kResult32{{0, 0, {0, 0}},    {33, 0, {4, 1}},  {31, 3, {3, 31}},
                                  {0, 4, {8, 0}},    {32, 7, {15, 0}}, {5, 12, {24, 5}},
                                  {63, 15, {31, 31}}};
const std::vector<Spot> kResult11{
    {0, 0, {0, 0}}, {16, 0, {1, 0}}, {7, 3, {6, 7}}, {31, 7, {15, 15}}};
const std::vector<Spot> kResult12{
    {0, 0, {0, 0}}, {16, 0, {8, 0}}, {7, 3, {3, 7}}, {31, 7, {15, 15}}};
const std::vector<Spot> kFactor8{
    {0, 0, {0, 0}}, {32, 0, {0, 4}}, {31, 3, {31, 3}}, {40, 2, {8, 6}}};
const std::vector<Spot> kFactor16{{0, 7, {0, 7}}, {32, 0, {0, 8}}, {63, 7, {31, 15}}};
const std::vector<Spot> kFactor11{{0, 15, {0, 15}}, {16, 15, {0, 15}}, {31, 2, {15, 2}}};
const std::vector<Spot> kFactor12{{0, 7, {0, 7}}, {16, 0, {0, 8}}, {31, 7, {15, 15}}};

const Case kCases[] = {
    {"mfma_32x32x8_f16", &kMfma32x32x8Half, Type::Half, 64, 32, 8, 4, 16, factor8, result32,
     kFactor8, kResult32},
    {"mfma_32x32x8_bf16", &kMfma32x32x8Bfloat, Type::Bfloat, 64, 32, 8, 4, 16, factor8, result32,
     kFactor8, kResult32},
    {"mfma_32x32x16_f16", &kMfma32x32x16Half, Type::Half, 64, 32, 16, 8, 16, factor16, result32,
     kFactor16, kResult32},
    {"mfma_32x32x16_bf16", &kMfma32x32x16Bfloat, Type::Bfloat, 64, 32, 16, 8, 16, factor16,
     result32, kFactor16, kResult32},
    {"mfma_32x32x2_f32",
     &kMfma32x32x2Single,
     Type::Single,
     64,
     32,
     2,
     1,
     16,
     [](int l, int) { return Place{l % 32, l / 32}; },
     result32,
     {{31, 0, {31, 0}}, {33, 0, {1, 1}}},
     kResult32},
    {"wmma_gfx11_f16", &kWmma11Half, Type::Half, 32, 16, 16, 16, 8, factor11, result11, kFactor11,
     kResult11},
    {"wmma_gfx11_bf16", &kWmma11Bfloat, Type::Bfloat, 32, 16, 16, 16, 8, factor11, result11,
     kFactor11, kResult11},
    {"wmma_gfx12_f16", &kWmma12Half, Type::Half, 32, 16, 16, 8, 8, factor12, result12, kFactor12,
     kResult12},
    {"wmma_gfx12_bf16", &kWmma12Bfloat, Type::Bfloat, 32, 16, 16, 8, 8, factor12, result12,
     kFactor12, kResult12},
};

// -4 … 4 in each format, written down rather than converted.
void put(void* to, int i, Type type, int value) {
  constexpr std::uint16_t kHalf[] = {0x0000, 0x3C00, 0x4000, 0x4200, 0x4400};
  constexpr std::uint16_t kBfloat[] = {0x0000, 0x3F80, 0x4000, 0x4040, 0x4080};
  const std::uint16_t sign = value < 0 ? 0x8000 : 0;
  if (type == Type::Single) {
    static_cast<float*>(to)[i] = static_cast<float>(value);
  } else {
    const auto& table = type == Type::Half ? kHalf : kBfloat;
    static_cast<std::uint16_t*>(to)[i] = table[std::abs(value)] | sign;
  }
}

struct alignas(16) Lane {
  std::uint32_t a[16], b[16];
  float sums[16], result[16];
};

class LanesMatrix : public ::testing::TestWithParam<Case> {};

TEST_P(LanesMatrix, TableIsAsDocumented) {
  const Case& c = GetParam();
  for (const Spot& s : c.factor_spots)
    EXPECT_EQ(c.factor(s.lane, s.number), s.place) << s.lane << ' ' << s.number;
  for (const Spot& s : c.result_spots)
    EXPECT_EQ(c.result(s.lane, s.number), s.place) << s.lane << ' ' << s.number;
}

TEST_P(LanesMatrix, ComputesTheProduct) {
  const Case& c = GetParam();
  std::mt19937 random(5);
  std::vector<std::vector<int>> a(static_cast<std::size_t>(c.side)), b(a);
  for (auto* factor : {&a, &b})
    for (auto& row : *factor)
      for (int k = 0; k < c.depth; ++k) row.push_back(static_cast<int>(random() % 9) - 4);
  const auto at = [](const std::vector<std::vector<int>>& of, int row, int k) {
    return of[static_cast<std::size_t>(row)][static_cast<std::size_t>(k)];
  };
  std::vector<Lane> lanes(static_cast<std::size_t>(c.wave));
  run({.wave = c.wave, .threads = c.wave}, [&] {
    const int l = thread();
    Lane& lane = lanes[static_cast<std::size_t>(l)];
    for (int j = 0; j < c.numbers; ++j) {
      const Place p = c.factor(l, j);
      put(lane.a, j, c.type, at(a, p.row, p.column));
      put(lane.b, j, c.type, at(b, p.row, p.column));
    }
    for (int r = 0; r < c.sums; ++r) lane.sums[r] = static_cast<float>(100 * r + l);
    const Factors factors{lane.a, lane.b, lane.sums};
    meet(*c.operation, &factors, lane.result);
  });
  for (int l = 0; l < c.wave; ++l)
    for (int r = 0; r < c.sums; ++r) {
      const Place p = c.result(l, r);
      int sum = 100 * r + l;
      for (int k = 0; k < c.depth; ++k) sum += at(a, p.row, k) * at(b, p.column, k);
      ASSERT_EQ(lanes[static_cast<std::size_t>(l)].result[r], static_cast<float>(sum))
          << "lane " << l << ", sum " << r;
    }
}

TEST_P(LanesMatrix, IsOfOneWaveSize) {
  const Case& c = GetParam();
  static const Lane lane{};
  const Factors factors{lane.a, lane.b, lane.sums};
  Lane to;
  EXPECT_THROW(run({.wave = 96 - c.wave, .threads = 96 - c.wave},
                   [&] { meet(*c.operation, &factors, to.result); }),
               Failure);
}

INSTANTIATE_TEST_SUITE_P(All, LanesMatrix, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

TEST(LanesMatrixErrors, Gfx11WantsItsFactorsTwice) {
  EXPECT_THROW(run({.wave = 32, .threads = 32},
                   [] {
                     Lane lane{};
                     lane.a[2] = thread() == 3 ? 0x3C00 : 0;
                     const Factors factors{lane.a, lane.b, lane.sums};
                     meet(kWmma11Half, &factors, lane.result);
                   }),
               Failure);
}

}  // namespace
}  // namespace tessera::amdgpu::lanes
