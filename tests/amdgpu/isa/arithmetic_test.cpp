// Compiled arithmetic on every target, optimised and not: the same bits as the host's.

#include "tests/amdgpu/isa/kernels/arithmetic.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <tuple>

#include "tests/amdgpu/isa/testing.hpp"

namespace tessera::amdgpu::testing {
namespace {

constexpr int kItems = 512;

class Arithmetic : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  CompiledKernels kernels_{"arithmetic", std::get<0>(GetParam()), std::get<1>(GetParam())};

  // f(in, out) on the host against the kernel, bit by bit; NaNs are equal.
  template <class T, class F>
  void compare(const std::string& kernel, std::vector<T> in, int results, Arguments tail,
               F on_host) {
    std::vector<T> out(static_cast<std::size_t>(kItems * results));
    kernels_.allow(in);
    kernels_.allow(out);
    Arguments arguments;
    arguments.add(in).add(out);
    std::vector<u8> bytes = arguments;
    const std::vector<u8>& rest = tail;
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    kernels_.run(kernel, kItems / 64, 64, bytes);
    for (int i = 0; i < kItems; ++i) {
      std::vector<T> expected(static_cast<std::size_t>(results));
      on_host(in.data() + 4 * i, expected.data());
      for (int r = 0; r < results; ++r) {
        const T got = out[static_cast<std::size_t>(i * results + r)],
                want = expected[static_cast<std::size_t>(r)];
        const bool both_nan = got != got && want != want;
        ASSERT_TRUE(both_nan || std::memcmp(&got, &want, sizeof(T)) == 0)
            << kernel << ", item " << i << ", result " << r << ": " << got << ", must be " << want;
      }
    }
  }
};

// Whole ranges of bits, with small and extreme values among them.
template <class T>
std::vector<T> some_bits() {
  std::mt19937_64 random(7);
  std::vector<T> values(4 * kItems);
  for (T& value : values) {
    const u64 bits = random();
    value = static_cast<T>(random() % 3 ? bits >> (random() % (8 * sizeof(T)))
                           : (bits & 1) ? ~u64{0}
                                        : bits & 15);
  }
  return values;
}

// Three in four are ordinary; then zeros, infinities, NaNs, denormals and the ends of the range.
// The fourth of each item is an integer that all types hold.
template <class T>
std::vector<T> some_numbers() {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> exponent(-std::numeric_limits<T>::max_exponent + 1,
                                                  std::numeric_limits<T>::max_exponent - 1);
  const std::vector<T> special{0,
                               T{-0.0},
                               1,
                               -1,
                               std::numeric_limits<T>::infinity(),
                               -std::numeric_limits<T>::infinity(),
                               std::numeric_limits<T>::quiet_NaN(),
                               std::numeric_limits<T>::denorm_min() * 77,
                               std::numeric_limits<T>::max(),
                               std::numeric_limits<T>::min()};
  std::vector<T> values(4 * kItems);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto kind = random() % 8;
    values[i] =
        static_cast<T>(kind < 4 ? normal(random) : normal(random) * std::exp2(exponent(random)));
    if (kind == 7) values[i] = special[random() % special.size()];
    if (i % 4 >= (sizeof(T) == 4 ? 3 : 2))
      values[i] = static_cast<T>(static_cast<int>(random() % 200001) - 100000);
  }
  return values;
}

TEST_P(Arithmetic, Integers) {
  compare("run_integers", some_bits<int>(), kIntegerResults, Arguments().add(-987654),
          [](const int* in, int* out) { integers(in, -987654, out); });
}
TEST_P(Arithmetic, Longs) {
  compare("run_longs", some_bits<long>(), kLongResults, Arguments().add(-98765432101234l),
          [](const long* in, long* out) { longs(in, -98765432101234l, out); });
}
TEST_P(Arithmetic, Floats) {
  compare("run_floats", some_numbers<float>(), kFloatResults, Arguments().add(1.7f),
          [](const float* in, float* out) { floats(in, 1.7f, out); });
}
TEST_P(Arithmetic, Doubles) {
  compare("run_doubles", some_numbers<double>(), kDoubleResults, Arguments().add(-3.14159),
          [](const double* in, double* out) { doubles(in, -3.14159, out); });
}
TEST_P(Arithmetic, Shorts) {
  compare("run_shorts", some_bits<short>(), kShortResults, Arguments(),
          [](const short* in, short* out) { shorts(in, out); });
}

TEST_P(Arithmetic, CallsAndPrivateArrays) {
  std::vector<float> in(40), out(128);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * i);
  kernels_.allow(in);
  kernels_.allow(out);
  kernels_.run("run_calls", 2, 64, Arguments().add(in).add(out));
  const auto table = [&](std::size_t first, float scale, int at) {
    return in[first + static_cast<std::size_t>(at & 31)] * scale +
           in[first + static_cast<std::size_t>(at * 5 & 31)] * scale;
  };
  for (int i = 0; i < 128; ++i)
    EXPECT_EQ(out[static_cast<std::size_t>(i)], table(0, 2, i) + table(1, 4, i + 3)) << i;
}

INSTANTIATE_TEST_SUITE_P(All, Arithmetic,
                         ::testing::Combine(::testing::ValuesIn(kAllTargets),
                                            ::testing::Values("O3", "O0")),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + std::get<1>(test.param);
                         });

}  // namespace
}  // namespace tessera::amdgpu::testing
