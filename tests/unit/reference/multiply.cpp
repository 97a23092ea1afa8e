// The matrix product of every instruction set, against three loops.

#include "reference/multiply.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/fill.hpp"

namespace tessera::reference {
namespace {

template <class Real>
void expect_product(int level, std::int64_t rows, std::int64_t inner, std::int64_t columns,
                    bool transposed, bool add, bool magnitudes) {
  const auto number = [](std::int64_t i) {  // small integers: sums are exact
    return static_cast<Real>(
        static_cast<std::int64_t>(random_bits(1, static_cast<std::uint64_t>(i)) % 17) - 8);
  };
  Panel<Real> b;
  b.resize(inner, columns);
  std::vector<Real> line(static_cast<std::size_t>(columns));
  for (std::int64_t k = 0; k < inner; ++k) {
    for (std::int64_t c = 0; c < columns; ++c)
      line[static_cast<std::size_t>(c)] = number(1000 + k * columns + c);
    b.set_row(k, line.data());
  }
  std::vector<Real> a(static_cast<std::size_t>(rows * inner)), absolute_a(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = number(static_cast<std::int64_t>(i));
    absolute_a[i] = std::abs(a[i]) + 1;
  }
  const std::int64_t strips = strips_for<Real>(columns);
  const std::int64_t width = strips * kLanes<Real>;
  std::vector<Real> c(static_cast<std::size_t>(rows * width), Real{3}),
      absolute_c(c.size(), Real{4});
  const std::int64_t a_row = transposed ? 1 : inner;
  const std::int64_t a_inner = transposed ? rows : 1;
  multiply_at(level, Product<Real>{.a = a.data(),
                                   .absolute_a = magnitudes ? absolute_a.data() : nullptr,
                                   .a_row = a_row,
                                   .a_inner = a_inner,
                                   .b = b.strip(0, 0),
                                   .b_strip = inner * kLanes<Real>,
                                   .c = c.data(),
                                   .absolute_c = magnitudes ? absolute_c.data() : nullptr,
                                   .c_row = width,
                                   .rows = rows,
                                   .inner = inner,
                                   .strips = strips,
                                   .add = add});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t n = 0; n < columns; ++n) {
      Real sum = add ? Real{3} : Real{0}, absolute = add ? Real{4} : Real{0};
      for (std::int64_t k = 0; k < inner; ++k) {
        const auto at = static_cast<std::size_t>(r * a_row + k * a_inner);
        sum += a[at] * b.at(k, n);
        absolute += absolute_a[at] * std::abs(b.at(k, n));
      }
      const auto at = static_cast<std::size_t>(r * width + n);
      ASSERT_EQ(c[at], sum) << level << ' ' << r << ' ' << n;
      ASSERT_EQ(absolute_c[at], magnitudes ? absolute : Real{4}) << level << ' ' << r << ' ' << n;
    }
  }
}

TEST(Multiply, EveryInstructionSetEqualsThreeLoops) {
  for (int level = 0; level <= best_level(); ++level) {
    for (std::int64_t rows : {1, 3, 4, 11}) {
      for (std::int64_t columns : {1, 8, 16, 17, 50}) {
        for (int flags = 0; flags < 8; ++flags) {
          for (std::int64_t inner : {0, 1, 13}) {
            expect_product<double>(level, rows, inner, columns, (flags & 1) != 0, (flags & 2) != 0,
                                   (flags & 4) != 0);
            expect_product<float>(level, rows, inner, columns, (flags & 1) != 0, (flags & 2) != 0,
                                  (flags & 4) != 0);
          }
        }
      }
    }
  }
}

TEST(Panel, KnowsWhetherItIsFinite) {
  for (double special : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    Panel<double> panel;
    panel.resize(3, 5);
    const double line[5] = {1, -2, 3, 4, 5};
    const double bad[5] = {1, 2, special, 4, 5};
    panel.set_row(0, line);
    panel.set_column(1, line);
    EXPECT_TRUE(panel.finite);
    panel.set_column(1, bad);
    EXPECT_FALSE(panel.finite);
    EXPECT_EQ(panel.at(0, 0), 1);
    EXPECT_EQ(panel.at(1, 1), 2);
    panel.resize(3, 5);
    EXPECT_TRUE(panel.finite);
    panel.set_row(2, bad);
    EXPECT_FALSE(panel.finite);
  }
}

}  // namespace
}  // namespace tessera::reference
