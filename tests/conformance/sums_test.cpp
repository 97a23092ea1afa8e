// Keys that weigh alike. A long sum of equal numbers in one chain of fp32 is rounded the same way
// every time: its error grows with the number of keys instead of its root.

#include <cmath>
#include <cstdint>
#include <string>

#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

// What the keys score: 0, but for all behind the first `high`, which score `low`.
struct Scores {
  const char* label;
  std::int64_t high;
  double low;
};
constexpr Scores kScores[] = {
    {"equal", 0, 0}, {"sink", 1, -5}, {"sinks_of_four", 4, -0.3}, {"half", 1024, -0.7}};

// Every number of which a constant is made has its own bits behind a sum's last one.
constexpr double kConstants[] = {1.37, 0.7123, -1.9};

void set_scores(const Operands& o, const Scores& scores) {
  set_each(o.query, [](auto, auto, auto, auto d) { return d == 0 ? 1.0 : 0.0; });
  set_each(o.key, [&](auto, auto, auto s, auto d) {
    return d == 0 && s >= scores.high ? scores.low : 0.0;
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

}  // namespace
}  // namespace tessera::testing
