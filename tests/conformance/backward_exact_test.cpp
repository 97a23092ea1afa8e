// Gradients of which something is known exactly: zeros, the gradient of a chosen row, who sees
// whom.

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/philox.hpp"
#include "tests/conformance/backward_case.hpp"
#include "tests/conformance/chooser.hpp"

namespace tessera::testing {
namespace {

void expect_zero_rows(const Slot& slot, std::int64_t begin, std::int64_t end,
                      const std::string& what) {
  slot.each([&](auto b, auto h, auto s, auto d) {
    if (s < begin || s >= end) return;
    ASSERT_EQ(slot.get(b, h, s, d), 0) << what << " row " << s << " dim " << d;
  });
}

void expect_finite(const Slot& slot, const std::string& what) {
  slot.each([&](auto b, auto h, auto s, auto d) {
    ASSERT_TRUE(std::isfinite(slot.get(b, h, s, d))) << what << " row " << s << " dim " << d;
  });
}

TEST(Backward, KeysOfSegmentsWithoutQueriesHaveNoGradient) {
  // The field's own lengths, too long for the reference: it crashed and hung elsewhere.
  struct Field {
    std::vector<std::int64_t> q, k;
    std::int64_t dim, unseen;
  };
  for (const Field& field : {Field{{0, 1208, 840}, {2538, 1742, 840}, 32, 2538},
                             Field{{0, 0, 1023}, {0, 1, 2045}, 128, 1}}) {
    Case c = gradients(packed("field_unseen", DType::bf16, field.q, field.k, field.dim,
                              Mask::causal(Alignment::BottomRight)));
    c.head_q = 4;
    Operands o(c);
    on_each_kernel(o, [&](const Kernel& kernel) {
      for (const Slot* slot : {&o.dk, &o.dv}) {
        expect_zero_rows(*slot, 0, field.unseen, kernel.name);
        expect_finite(*slot, kernel.name);
      }
      expect_finite(o.dq, kernel.name);
    });
  }
}

TEST(Backward, NobodySeesThemAndTheySeeNobody) {
  // Causal, bottom-right, more rows than keys: the first rows see nothing. Top-left, more keys than
  // rows: nobody sees the last keys.
  for (const DType dtype : kTypes) {
    for (const Keep keep : kKeeps) {
      const Case rows = gradients({.label = "blind_rows",
                                   .dtype = dtype,
                                   .head_q = 2,
                                   .seq_q = 150,
                                   .seq_k = 50,
                                   .dim = 16,
                                   .dim_v = 16,
                                   .mask = Mask::causal(Alignment::BottomRight),
                                   .keep = keep,
                                   .dlse = true});
      expect_passes(rows);
      Operands o(rows);
      on_each_kernel(o, [&](const Kernel& kernel) {
        expect_zero_rows(o.dq, 0, 100, name(rows) + ": " + kernel.name);
      });
      Case keys = rows;
      keys.label = "unseen_keys";
      keys.seq_q = 50;
      keys.seq_k = 150;
      keys.mask = Mask::causal(Alignment::TopLeft);
      expect_passes(keys);
      Operands p(keys);
      on_each_kernel(p, [&](const Kernel& kernel) {
        expect_zero_rows(p.dk, 50, 150, name(keys) + ": " + kernel.name);
        expect_zero_rows(p.dv, 50, 150, name(keys) + ": " + kernel.name);
      });
    }
  }
}

// Weights of exactly 1 and whole numbers: dv is dout of the row that chose the key, dq and dk are
// 0. (In fp32 a weight may be off by the rounding of a score of some thousands.)
TEST(Backward, ChosenKeysTakeTheirRowsGradient) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t seq : {1, 2, 31, 48, 49, 63, 64, 65, 128, 129, 257}) {
      for (const Keep keep : kKeeps) {
        const Case c = gradients({.label = "choice",
                                  .dtype = dtype,
                                  .head_q = 2,
                                  .seq_q = seq,
                                  .seq_k = seq,
                                  .dim = 16,
                                  .dim_v = 16,
                                  .scale = 1.0f,
                                  .keep = keep});
        Operands o(c);
        const Chooser chooser(c.dim, c.seq_k);
        ASSERT_TRUE(chooser.possible());
        chooser.write_keys(o.key);
        const auto number = [](std::int64_t h, std::int64_t s, std::int64_t d) {
          return static_cast<double>((h * 5 + s * 7 + d * 3) % 17 - 8);
        };
        set_each(o.value, [&](auto, auto h, auto s, auto d) { return number(h + 1, s, d); });
        set_each(o.dout, [&](auto, auto h, auto s, auto d) { return number(h, s, d); });
        for (std::int64_t row = 0; row < seq; ++row) {
          chooser.choose(o.query, 0, 0, row, seq - 1 - row);
          chooser.choose(o.query, 0, 1, row, row);
        }
        on_each_kernel(o, [&](const Kernel& kernel) {
          const std::string what = name(c) + ": " + kernel.name;
          o.dv.each([&](auto b, auto h, auto s, auto d) {
            const double wanted = number(0, seq - 1 - s, d) + number(1, s, d);
            const double allowed = dtype == DType::fp32 ? 2e-6 * chooser.magnitude() * 16 : 0;
            ASSERT_NEAR(o.dv.get(b, h, s, d), wanted, allowed) << what << " key " << s;
          });
          expect_zero_rows(o.dq, 0, seq, what + " dq");
          expect_zero_rows(o.dk, 0, seq, what + " dk");
        });
      }
    }
  }
}

// Which rows see a key? Queries of 0 weigh all visible keys alike, and rows of dout with one column
// each show in dv who saw the key.
template <class Visible>
void expect_seen(const Case& c, Visible visible) {
  Operands o(c);
  set_all(o.query, 0);
  for (std::int64_t first = 0; first < c.seq_q; first += c.dim_v) {
    for (std::int64_t head = 0; head < c.head_q; ++head) {
      set_each(o.dout, [&](auto, auto h, auto s, auto d) {
        return h == head && s - first == d ? 1.0 : 0.0;
      });
      on_each_kernel(o, [&](const Kernel& kernel) {
        o.dv.each([&](auto b, auto h, auto s, auto d) {
          if (first + d >= c.seq_q || h != head / c.group()) return;
          const bool seen = o.dv.get(b, h, s, d) != 0;
          ASSERT_EQ(seen, visible(b, head, first + d, s))
              << name(c) << ": " << kernel.name << " batch " << b << " head " << head << " row "
              << first + d << " key " << s;
        });
      });
    }
  }
}

TEST(Backward, RowsThatAWindowShows) {
  using Edge = std::optional<std::int64_t>;
  for (const Alignment alignment : kAlignments) {
    for (const auto& [left, right] : std::initializer_list<std::pair<Edge, Edge>>{
             {std::nullopt, 0}, {0, 0}, {15, 0}, {16, 17}, {64, std::nullopt}}) {
      for (const auto& [seq_q, seq_k] :
           std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
               {130, 130}, {65, 200}, {200, 65}}) {
        const Case c = gradients({.label = "seen",
                                  .dtype = DType::bf16,
                                  .seq_q = seq_q,
                                  .seq_k = seq_k,
                                  .dim = 8,
                                  .dim_v = std::min<std::int64_t>(256, largest_head_dim()),
                                  .mask = Mask::window(left, right, alignment)});
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

TEST(Backward, RowsThatRangesShow) {
  for (const Alignment alignment : kAlignments) {
    const Case c = gradients({.label = "seen_ranges",
                              .batch = 5,
                              .seq_q = 70,
                              .seq_k = 128,
                              .dim = 8,
                              .dim_v = std::min<std::int64_t>(128, largest_head_dim()),
                              .mask = Mask::window(20, 10, alignment),
                              .key_begin = {0, 5, 64, 30, 0},
                              .key_end = {128, 100, 65, 500, 1},
                              .query_end = {70, 69, 1, 64, 35}});
    expect_seen(c, [&](std::int64_t b, std::int64_t, std::int64_t row, std::int64_t column) {
      const auto i = static_cast<std::size_t>(b);
      const std::int64_t end = std::min(c.key_end[i], 128);
      const std::int64_t diagonal = alignment == Alignment::TopLeft ? 0 : end - c.query_end[i];
      return row < c.query_end[i] && column >= c.key_begin[i] && column < end &&
             column >= row + diagonal - 20 && column <= row + diagonal + 10;
    });
  }
}

TEST(Backward, WeightsThatForwardsDropoutKept) {
  for (const DType dtype : kTypes) {
    for (const double p : {0.1, 0.9}) {
      const Case c = gradients({.label = "kept",
                                .dtype = dtype,
                                .batch = 2,
                                .head_q = 4,
                                .head_k = 2,
                                .seq_q = 66,
                                .seq_k = 200,
                                .dim = 8,
                                .dim_v = std::min<std::int64_t>(128, largest_head_dim()),
                                .dropout = p,
                                .seed = 0x0123456789abcdefu,
                                .offset = 0xdeadbeef12345678u});
      const auto dropout = reference::Dropout::make(p, c.seed, c.offset);
      expect_seen(c, [&](std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t column) {
        const auto numbers = dropout.draw(b * c.head_q + h, row, column);
        return numbers[static_cast<std::size_t>(column % 8)] >= dropout.threshold;
      });
    }
  }
}

}  // namespace
}  // namespace tessera::testing
