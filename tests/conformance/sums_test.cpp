// Keys that weigh alike. A long sum of equal numbers in one chain of fp32 is rounded the same way
// every time: its error grows with the number of keys instead of its root.

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

// What the keys score: 0, but for all behind the first `high`, or before the last -`high`, which
// score `low`.
struct Scores {
  const char* label;
  std::int64_t high;
  double low;
};
constexpr Scores kScores[] = {{"equal", 0, 0},
                              {"sink", 1, -5},
                              {"sinks_of_four", 4, -0.3},
                              {"half", 1024, -0.7},
                              {"late", -1000, -4}};

// Every number of which a constant is made has its own bits behind a sum's last one.
constexpr double kConstants[] = {1.37, 0.7123, -1.9};

void set_scores(const Operands& o, const Scores& scores) {
  set_each(o.query, [](auto, auto, auto, auto d) { return d == 0 ? 1.0 : 0.0; });
  const std::int64_t keys = o.key.extent.seq;
  set_each(o.key, [&](auto, auto, auto s, auto d) {
    const bool high = scores.high < 0 ? s >= keys + scores.high : s < scores.high;
    return d == 0 && !high ? scores.low : 0.0;
  });
}

// Numbers near `constant`, all of them with `noise` of 0.
void set_near(const Slot& slot, double constant, double noise) {
  set_each(slot, [&](auto b, auto h, auto s, auto d) {
    const double draw = std::sin(static_cast<double>(1 + s * 37 + d * 11 + h * 5 + b));
    return constant * (1 + noise * draw);
  });
}

std::string label_of(const Scores& scores, double noise) {
  return std::string("nearly_equal_") + scores.label + (noise > 0 ? "_noisy" : "");
}

Case case_of(const Scores& scores, double noise, DType dtype, std::int64_t keys) {
  return {.label = label_of(scores, noise),
          .dtype = dtype,
          .seq_q = 3,
          .seq_k = keys,
          .dim = 8,
          .dim_v = 8,
          .scale = 1.0f,
          .gradients = false};
}

void expect_forward_passes(const Scores& scores, double noise, const Case& c) {
  for (const double constant : kConstants) {
    expect_passes(c, [&](Operands& o) {
      set_scores(o, scores);
      set_near(o.value, constant, noise);
    });
  }
}

// Bounds that do not grow with the number of keys are what docs/numerics.md says of our kernels; a
// foreign one is held to the rule alone, which counts what the plain computation loses.
void on_our_kernels(Operands& operands, const std::function<void(const Kernel&)>& check) {
  on_each_kernel(operands, [&](const Kernel& kernel) {
    if (kernel.adapter == nullptr) check(kernel);
  });
}

constexpr double kRoundings = 100 * 0x1p-24;

// One row of fp32 whose keys all have the same value, which is its output then.
void expect_within_roundings(Operands& o, double lse) {
  const double value = o.value.get(0, 0, 0, 0);
  on_our_kernels(o, [&](const Kernel& kernel) {
    o.out.each([&](auto b, auto h, auto s, auto d) {
      EXPECT_NEAR(o.out.get(b, h, s, d), value, kRoundings * value) << kernel.name;
    });
    EXPECT_NEAR(o.lse.get(0, 0, 0, 0), lse, kRoundings) << kernel.name;
  });
}

TEST(Values, NearlyEqualWeightsOfManyKeys) {
  for (const DType dtype : kTypes) {
    for (const Scores& scores : kScores) {
      for (const double noise : {0.0, 0.01}) {
        for (const std::int64_t keys : {2048, 4096})
          expect_forward_passes(scores, noise, case_of(scores, noise, dtype, keys));
      }
    }
  }
}

TEST(Values, NearlyEqualWeightsOfVeryManyKeys) {
  for (const DType dtype : kTypes) {
    for (const Scores& scores : kScores) {
      Case c = case_of(scores, 0, dtype, 16384);
      c.seq_q = 1;
      expect_forward_passes(scores, 0, c);
      c.seq_k = 65536;
      expect_forward_passes(scores, 0, c);
    }
  }
}

// So many that whatever grows with the number of keys shows: out is the value that all keys have.
TEST(Values, NearlyEqualWeightsOfAMillionKeys) {
  constexpr std::int64_t kMany = 1 << 20;
  const Scores& sink = kScores[1];
  Case c = case_of(sink, 0, DType::fp32, kMany);
  c.seq_q = 1;
  c.expensive = true;
  const auto fill = [&](Operands& o) {
    set_scores(o, sink);
    set_near(o.value, kConstants[0], 0);
  };
  expect_passes(c, fill);
  Operands o(c);
  fill(o);
  const double lse = std::log(1 + static_cast<double>(kMany - 1) * std::exp(sink.low));
  expect_within_roundings(o, lse);
}

// Maxima that move a little with every block of keys: what is scaled each time is rounded each
// time.
TEST(Values, MaximaThatRiseEvenly) {
  for (const DType dtype : kTypes) {
    for (const double rise : {1e-7, 4e-7, 3e-6, 3e-5}) {
      Case c = case_of(kScores[0], 0, dtype, 65536);
      c.label = "rising_evenly";
      c.seq_q = 1;
      const auto fill = [&](Operands& o) {
        set_each(o.query, [](auto, auto, auto, auto d) { return d == 0 ? 1.0 : 0.0; });
        set_each(o.key, [&](auto, auto, auto s, auto d) {
          return d == 0 ? rise * static_cast<double>(s) : 0.0;
        });
        set_near(o.value, kConstants[0], 0);
      };
      expect_passes(c, fill);
      if (dtype != DType::fp32) continue;
      Operands o(c);
      fill(o);
      double sum = 0;
      for (std::int64_t key = 0; key < c.seq_k; ++key) sum += std::exp(o.key.get(0, 0, key, 0));
      expect_within_roundings(o, std::log(sum));
    }
  }
}

// As many tasks as keep every thread busy: decode cuts keys into parts by that.
TEST(Values, NearlyEqualWeightsOfManyHeads) {
  for (const DType dtype : kTypes) {
    for (const Scores& scores : kScores) {
      Case c = case_of(scores, 0, dtype, 4096);
      c.batch = 8;
      c.head_q = c.head_k = 32;
      c.seq_q = 1;
      c.layout = Layout::repeated_batch;
      expect_passes(c, [&](Operands& o) {
        set_scores(o, scores);
        set_near(o.value, kConstants[0], 0);
      });
    }
  }
}

// What touches scores takes other ways through a kernel, and so do masks.
TEST(Values, NearlyEqualWeightsOfEveryFlavour) {
  for (const DType dtype : kTypes) {
    for (const Scores& scores : kScores) {
      const Case plain = case_of(scores, 0, dtype, 4096);
      Case c = plain;
      c.mask = Mask::causal(Alignment::BottomRight);
      expect_forward_passes(scores, 0, c);
      c.mask = Mask::window(2999, 0, Alignment::BottomRight);
      expect_forward_passes(scores, 0, c);
      c = plain;
      c.sinks = true;
      expect_forward_passes(scores, 0, c);
      c = plain;
      c.dropout = 0.25;
      expect_forward_passes(scores, 0, c);
    }
  }
}

// A score that is itself a long sum of equal products.
TEST(Values, NearlyEqualWeightsOfLongHeads) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t dim : {64, 128, 256, 512}) {
      for (const double constant : kConstants) {
        Case c = case_of(kScores[0], 0, dtype, 128);
        c.label = "equal_products";
        c.dim = c.dim_v = dim;
        c.scale.reset();
        expect_passes(c, [&](Operands& o) {
          for (const Slot* slot : {&o.query, &o.key, &o.value}) set_near(*slot, constant, 0);
        });
      }
    }
  }
}

// Of many keys dq is a long sum, of many rows dk and dv are.
TEST(Values, NearlyEqualWeightsAndTheirGradients) {
  for (const DType dtype : kTypes) {
    for (const Scores& scores : kScores) {
      for (const double noise : {0.0, 0.01}) {
        for (const auto& [rows, keys] : {std::pair{3, 4096}, {4096, 3}, {2048, 40}}) {
          Case c = case_of(scores, noise, dtype, keys);
          c.operation = Operation::backward;
          c.seq_q = rows;
          for (const double constant : kConstants) {
            expect_passes(c, [&](Operands& o) {
              set_scores(o, scores);
              set_near(o.value, constant, noise);
              set_near(o.dout, constant, noise);
            });
          }
        }
      }
    }
  }
}

// Gradients that are long sums, a third of them of one number and the others of another, and known:
// all scores are 0, the first or every third of the values is 1, the others are -1/2, dout is g. So
// P = 1/keys, O = 0 and dS = g·V/keys.
void expect_long_sums(std::int64_t rows, std::int64_t keys, unsigned over, bool every_third) {
  constexpr double kGradient = 0.7123, kFirst = 1.37, kSecond = -0.61, kQuery = -1.9;
  Case c = case_of(kScores[0], 0, DType::fp32, keys);
  c.label = "long_sums";
  c.operation = Operation::backward;
  c.seq_q = rows;
  c.bias = over == 0 ? Bias::none : Bias::fp32;
  c.bias_broadcast = over;
  c.dbias = over != 0;
  Operands o(c);
  const auto number = [=](std::int64_t key) {
    return (every_third ? key % 3 == 0 : key < keys / 3) ? 1.0 : -0.5;
  };
  // The first dimension makes scores, the second gradients.
  set_each(o.query, [&](auto, auto, auto, auto d) { return d == 1 ? kQuery : 0.0; });
  set_each(o.key, [&](auto, auto, auto s, auto d) {
    return d == 0 ? (number(s) > 0 ? kFirst : kSecond) : 0.0;
  });
  set_each(o.value, [&](auto, auto, auto s, auto d) { return d == 0 ? number(s) : 0.0; });
  set_each(o.dout, [&](auto, auto, auto, auto d) { return d == 0 ? kGradient : 0.0; });
  if (over != 0) set_all(o.bias, 0);
  const double weight = 1.0 / static_cast<double>(keys);
  const auto n = static_cast<double>(rows);
  on_our_kernels(o, [&](const Kernel& kernel) {
    const auto near = [&](const Slot& slot, std::int64_t s, std::int64_t d, double right,
                          double summed) {
      EXPECT_NEAR(slot.get(0, 0, s, d), right, kRoundings * summed)
          << kernel.name << " rows " << rows << " broadcast " << over << " at " << s << ", " << d;
    };
    const double dq = kGradient * (kFirst - kSecond) / 3;
    for (const std::int64_t row : {std::int64_t{0}, rows - 1}) near(o.dq, row, 0, dq, dq);
    for (const std::int64_t key : {std::int64_t{0}, keys - 1}) {
      const double ds = kGradient * number(key) * weight, all = n * std::fabs(ds * kQuery);
      near(o.dk, key, 1, n * ds * kQuery, all);
      near(o.dv, key, 0, n * weight * kGradient, n * weight * kGradient);
    }
    if (over == 0) return;
    // A row's gradients add up to 0.
    const bool over_keys = (over & kOverColumn) != 0;
    const double summed = kGradient * ((over & kOverRow) != 0 ? n : 1.0);
    near(o.dbias, 0, 0, over_keys ? 0 : summed * weight, over_keys ? summed : summed * weight);
  });
}

TEST(Values, GradientsThatAreLongSums) {
  constexpr std::int64_t kMany = 65535;
  for (const unsigned over : {0u, kOverColumn, kOverRow, kOverRow | kOverColumn}) {
    for (const bool every_third : {false, true}) {
      expect_long_sums(2, kMany, over, every_third);
      expect_long_sums(kMany, 6, over, every_third);
    }
  }
  // Blocks of keys are many, too.
  for (const bool every_third : {false, true}) expect_long_sums(1, 3 << 18, 0, every_third);
}

}  // namespace
}  // namespace tessera::testing
