// Results that are right to the last bit or wrong.

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>
#include <vector>

#include "reference/philox.hpp"
#include "tests/conformance/chooser.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

double whole_number(std::int64_t head, std::int64_t key, std::int64_t d) {
  return static_cast<double>((head * 31 + key * 7 + d * 13) % 255 - 127);
}

// Failures of one case: the first few, for a wrong kernel is wrong everywhere.
class Complaints {
 public:
  explicit Complaints(std::string where) : where_(std::move(where)) {}
  ~Complaints() {
    if (count_ == 0) return;
    ADD_FAILURE() << where_ << ": " << count_ << " wrong elements" << text_.str();
  }
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

  std::ostream& add() {
    constexpr int kShown = 3;
    if (count_++ < kShown) return text_ << "\n  ";
    return nowhere_;
  }

 private:
  std::string where_;
  int count_ = 0;
  std::ostringstream text_{};
  std::ostream nowhere_{nullptr};
};

// Row `row` of every head chooses a visible key; out must be its value, lse the score 0.
template <class Target>
void expect_choice(Case c, Target target) {
  c.scale = 1.0f;
  Operands operands(c);
  const Chooser chooser(c.dim, c.seq_k);
  ASSERT_TRUE(chooser.possible());
  chooser.write_keys(operands.key);
  set_each(operands.value, [](auto, auto h, auto s, auto d) { return whole_number(h, s, d); });
  for (std::int64_t b = 0; b < c.batch; ++b) {
    for (std::int64_t h = 0; h < c.head_q; ++h) {
      for (std::int64_t row = 0; row < c.seq_q; ++row) {
        chooser.choose(operands.query, b, h, row, target(h, row));
      }
    }
  }
  // A kernel may fold log2(e) into the queries, and then the score is 0 but for rounding.
  const double lse_bound = 2e-6 * chooser.magnitude();
  on_each_kernel(operands, [&](const Kernel& kernel) {
    Complaints complaints(name(c) + ": " + kernel.name);
    operands.out.each([&](auto b, auto h, auto s, auto d) {
      const double wanted = whole_number(h / c.group(), target(h, s), d);
      if (operands.out.get(b, h, s, d) == wanted) return;
      complaints.add() << "head " << h << " row " << s << " dim " << d << " is "
                       << operands.out.get(b, h, s, d) << ", not " << wanted;
    });
    operands.lse.each([&](auto b, auto h, auto s, auto d) {
      if (std::fabs(operands.lse.get(b, h, s, d)) <= lse_bound) return;
      complaints.add() << "head " << h << " row " << s << ": lse is "
                       << operands.lse.get(b, h, s, d) << ", not 0";
    });
  });
}

TEST(Exact, ChosenKeyAtEveryPlaceOfATile) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t dim : {16, 64, 72, 128}) {
      for (const std::int64_t seq_k : {1, 2, 63, 64, 65, 127, 128, 129, 191, 257, 704, 1025}) {
        const std::int64_t seq_q = std::min<std::int64_t>(seq_k, 257);
        expect_choice({.label = "choice",
                       .dtype = dtype,
                       .head_q = 2,
                       .head_k = 1,
                       .seq_q = seq_q,
                       .seq_k = seq_k,
                       .dim = dim,
                       .dim_v = 16},
                      [&](std::int64_t head, std::int64_t row) {
                        return head == 0 ? row : seq_k - 1 - row;  // both ends
                      });
      }
    }
  }
}

TEST(Exact, ChosenKeyWithWideValues) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t dim_v : {8, 40, 64, 80, 104, 128, 192, 256}) {
      for (const std::int64_t dim : {8, 96, 192}) {
        expect_choice({.label = "choice",
                       .dtype = dtype,
                       .seq_q = 70,
                       .seq_k = 70,
                       .dim = dim,
                       .dim_v = dim_v,
                       .layout = Layout::bshd},
                      [](std::int64_t, std::int64_t row) { return (row * 37) % 70; });
      }
    }
  }
}

TEST(Exact, LastAndFirstVisibleKeyOfAWindow) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t seq : {65, 130, 257}) {
      for (const std::int64_t left : {0, 1, 31, 64}) {
        const Mask mask = Mask::window(left, 0, Alignment::TopLeft);
        expect_choice({.label = "edge",
                       .dtype = dtype,
                       .head_q = 2,
                       .head_k = 1,
                       .seq_q = seq,
                       .seq_k = seq,
                       .dim = 16,
                       .dim_v = 16,
                       .mask = mask},
                      [&](std::int64_t head, std::int64_t row) {
                        return head == 0 ? row : std::max<std::int64_t>(row - left, 0);
                      });
      }
    }
  }
}

TEST(Exact, GeneralKernelWithNeutralModifiers) {
  // Modifiers that change nothing: a boolean mask of ones, a bias of zeros, a sink of −inf.
  for (const DType dtype : kTypes) {
    Case c{.label = "neutral",
           .dtype = dtype,
           .seq_q = 130,
           .seq_k = 130,
           .dim = 16,
           .dim_v = 64,
           .scale = 1.0f,
           .bias = Bias::input,
           .boolean_mask = true,
           .sinks = true};
    Operands operands(c);
    const Chooser chooser(c.dim, c.seq_k);
    chooser.write_keys(operands.key);
    set_all(operands.bias, 0);
    set_all(operands.boolean_mask, 1);
    set_all(operands.sinks, -kInfinity);
    set_each(operands.value, [](auto, auto h, auto s, auto d) { return whole_number(h, s, d); });
    for (std::int64_t row = 0; row < 130; ++row)
      chooser.choose(operands.query, 0, 0, row, 129 - row);
    on_each_kernel(operands, [&](const Kernel& kernel) {
      Complaints complaints(name(c) + ": " + kernel.name);
      operands.out.each([&](auto b, auto h, auto s, auto d) {
        if (operands.out.get(b, h, s, d) == whole_number(0, 129 - s, d)) return;
        complaints.add() << "row " << s << " dim " << d << " is " << operands.out.get(b, h, s, d);
      });
    });
  }
}

// Which keys does a row see? Queries of 0 give all of them the same weight, and values of one
// column a key show it: column d shows key first + d.

void show_keys(const Operands& operands, std::int64_t first) {
  set_all(operands.query, 0);
  set_each(operands.value, [&](auto, auto, auto s, auto d) { return s - first == d ? 1.0 : 0.0; });
}

// Head dimension of value: so many columns, or what a build for shorter heads has.
std::int64_t widest(std::int64_t wanted) { return std::min(wanted, largest_head_dim()); }

template <class Visible>
void expect_seen(const Case& c, Visible visible) {
  Operands operands(c);
  for (std::int64_t first = 0; first < c.seq_k; first += c.dim_v) {
    show_keys(operands, first);
    on_each_kernel(operands, [&](const Kernel& kernel) {
      Complaints complaints(name(c) + ": " + kernel.name);
      operands.out.each([&](auto b, auto h, auto s, auto d) {
        if (first + d >= c.seq_k) return;
        const bool seen = operands.out.get(b, h, s, d) != 0;
        if (seen == visible(b, h, s, first + d)) return;
        complaints.add() << "batch " << b << " head " << h << " row " << s
                         << (seen ? " sees key " : " misses key ") << first + d;
      });
    });
  }
}

TEST(Exact, KeysThatAWindowShows) {
  using Edge = std::optional<std::int64_t>;
  for (const Alignment alignment : kAlignments) {
    for (const auto& [left, right] :
         std::initializer_list<std::pair<Edge, Edge>>{{std::nullopt, 0},
                                                      {0, 0},
                                                      {1, 1},
                                                      {15, 0},
                                                      {16, 17},
                                                      {63, 64},
                                                      {64, std::nullopt},
                                                      {std::nullopt, 5},
                                                      {std::nullopt, std::nullopt}}) {
      for (const auto& [seq_q, seq_k] :
           std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
               {130, 130}, {65, 200}, {200, 65}}) {
        const Case c{.label = "seen",
                     .dtype = DType::bf16,
                     .seq_q = seq_q,
                     .seq_k = seq_k,
                     .dim = 8,
                     .dim_v = widest(256),
                     .mask = Mask::window(left, right, alignment),
                     .lse = false};
        const std::int64_t diagonal = alignment == Alignment::TopLeft ? 0 : seq_k - seq_q;
        expect_seen(c, [&, before = left, after = right](auto, auto, std::int64_t row,
                                                         std::int64_t column) {
          return (!before || column >= row + diagonal - *before) &&
                 (!after || column <= row + diagonal + *after);
        });
      }
    }
  }
}

TEST(Exact, KeysThatRangesShow) {
  for (const Alignment alignment : kAlignments) {
    const Case c{.label = "seen_ranges",
                 .dtype = DType::fp32,
                 .batch = 5,
                 .seq_q = 70,
                 .seq_k = 128,
                 .dim = 8,
                 .dim_v = widest(128),
                 .mask = Mask::window(20, 10, alignment),
                 .key_begin = {0, 5, 64, 30, 0},
                 .key_end = {128, 100, 65, 500, 1},
                 .query_end = {70, 69, 1, 64, 35},
                 .lse = false};
    expect_seen(c, [&](std::int64_t b, std::int64_t, std::int64_t row, std::int64_t column) {
      const auto i = static_cast<std::size_t>(b);
      const std::int64_t end = std::min(c.key_end[i], 128);
      const std::int64_t diagonal = alignment == Alignment::TopLeft ? 0 : end - c.query_end[i];
      return row < c.query_end[i] && column >= c.key_begin[i] && column < end &&
             column >= row + diagonal - 20 && column <= row + diagonal + 10;
    });
  }
}

TEST(Exact, KeysThatABooleanMaskShows) {
  for (const unsigned broadcast : {kNoBroadcast, kOverHead, kOverRow | kByStride, kOverBatch}) {
    const Case c{.label = "seen_boolean",
                 .dtype = DType::fp16,
                 .batch = 2,
                 .head_q = 2,
                 .head_k = 1,
                 .seq_q = 67,
                 .seq_k = 128,
                 .dim = 8,
                 .dim_v = widest(128),
                 .boolean_mask = true,
                 .boolean_broadcast = broadcast,
                 .lse = false};
    const Operands twin(c);
    const auto index = [&](unsigned axis, std::int64_t i) {
      return (broadcast & axis) != 0 ? 0 : i;
    };
    expect_seen(c, [&](std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) {
      return twin.boolean_mask.get(index(kOverBatch, b), index(kOverHead, h), index(kOverRow, row),
                                   column) != 0;
    });
  }
}

TEST(Exact, WeightsThatDropoutKeeps) {
  for (const DType dtype : kTypes) {
    for (const double p : {0.001, 0.1, 0.5, 0.9}) {
      for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{0xdeadbeef12345678u}}) {
        Case c{.label = "kept",
               .dtype = dtype,
               .batch = 2,
               .head_q = 4,
               .head_k = 2,
               .seq_q = 66,
               .seq_k = 200,
               .dim = 8,
               .dim_v = widest(128),
               .dropout = p,
               .seed = 0x0123456789abcdefu,
               .offset = offset,
               .lse = false};
        c.seed_on_device = offset != 0;
        const auto dropout = reference::Dropout::make(p, c.seed, c.offset);
        expect_seen(c, [&](std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) {
          const auto numbers = dropout.draw(b * c.head_q + h, row, column);
          return numbers[static_cast<std::size_t>(column % 8)] >= dropout.threshold;
        });
      }
    }
  }
}

TEST(Exact, DropoutOfAPackedSegmentCountsInsideIt) {
  const Case c{.label = "kept_packed",
               .dtype = DType::fp32,
               .head_q = 2,
               .head_k = 2,
               .dim = 8,
               .dim_v = 64,
               .layout = Layout::bshd,
               .packed = true,
               .lengths_q = {33, 0, 20},
               .lengths_k = {40, 7, 64},
               .dropout = 0.4,
               .seed = 99,
               .offset = 1,
               .lse = false};
  Operands operands(c);
  set_all(operands.query, 0);
  const std::vector<std::int64_t> begins_q{0, 33, 33};
  const std::vector<std::int64_t> begins_k{0, 40, 47};
  set_each(operands.value, [](auto, auto, auto s, auto d) {
    const std::int64_t begin = s >= 47 ? 47 : s >= 40 ? 40 : 0;
    return s - begin == d ? 1.0 : 0.0;
  });
  const auto dropout = reference::Dropout::make(c.dropout, c.seed, c.offset);
  on_each_kernel(operands, [&](const Kernel& kernel) {
    for (std::int64_t i = 0; i < 3; ++i) {
      const auto at = static_cast<std::size_t>(i);
      for (std::int64_t h = 0; h < 2; ++h) {
        for (std::int64_t row = 0; row < c.lengths_q[at]; ++row) {
          for (std::int64_t column = 0; column < c.lengths_k[at]; ++column) {
            const auto numbers = dropout.draw(i * 2 + h, row, column);
            const bool kept = numbers[static_cast<std::size_t>(column % 8)] >= dropout.threshold;
            ASSERT_EQ(operands.out.get(0, h, begins_q[at] + row, column) != 0, kept)
                << kernel.name << " segment " << i << " head " << h << " row " << row << " key "
                << column;
          }
        }
      }
    }
  });
}

TEST(Exact, GroupedHeadsEqualRepeatedHeads) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t group : {4, 5}) {
      Case c{.label = "grouped",
             .dtype = dtype,
             .batch = 2,
             .head_q = 2 * group,
             .head_k = 2,
             .seq_q = 65,
             .seq_k = 130,
             .mask = Mask::causal(Alignment::BottomRight)};
      Operands grouped(c);
      c.head_k = c.head_q;
      Operands repeated(c);
      for (const auto& [to, from] :
           {std::tuple{&repeated.key, &grouped.key}, std::tuple{&repeated.value, &grouped.value}}) {
        to->each([&, wide = to, narrow = from](auto b, auto h, auto s, auto d) {
          wide->set(b, h, s, d, narrow->get(b, h / group, s, d));
        });
      }
      const Answer right = answer(grouped);
      on_each_kernel(repeated, [&](const Kernel& kernel) {
        const auto verdict =
            reference::judge(repeated.args(Side::host), repeated.options, right.ref, right.low);
        EXPECT_TRUE(verdict.pass) << kernel.name << ": " << verdict.text;
      });
      on_each_kernel(grouped, [&](const Kernel& kernel) {
        const auto verdict =
            reference::judge(grouped.args(Side::host), grouped.options, right.ref, right.low);
        EXPECT_TRUE(verdict.pass) << kernel.name << ": " << verdict.text;
      });
    }
  }
}

// Equal scores weigh alike, where what rounding a score takes or adds is itself thousands.
TEST(Exact, EqualScoresHoweverLarge) {
  const auto expected = [](std::int64_t d) { return static_cast<double>(1 + d % 5); };
  for (const DType dtype : kTypes) {
    for (const double size : {300.0, 4e3, 4e4, -300.0, -4e3, -4e4}) {
      Operands operands({.label = "equal",
                         .dtype = dtype,
                         .seq_q = 65,
                         .seq_k = 130,
                         .mask = Mask::causal(Alignment::BottomRight)});
      set_each(operands.query, [&](auto, auto, auto, auto) { return size; });
      set_each(operands.key, [&](auto, auto, auto, auto) { return std::fabs(size); });
      set_each(operands.value, [&](auto, auto, auto, auto d) { return expected(d); });
      on_each_kernel(operands, [&](const Kernel& kernel) {
        operands.out.each([&](auto b, auto h, auto s, auto d) {
          ASSERT_NEAR(operands.out.get(b, h, s, d), expected(d), 0x1p-8 * expected(d))
              << kernel.name << ", " << size << ", row " << s;
        });
      });
    }
  }
}

}  // namespace
}  // namespace tessera::testing
