// What NaN may reach in gradients, and what nobody may touch.

#include <cmath>
#include <string>

#include "tests/conformance/backward_case.hpp"

namespace tessera::testing {
namespace {

TEST(Backward, NaNShowsWhereItIsSeenAndNowhereElse) {
  for (const DType dtype : kTypes) {
    const Case c = gradients({.label = "nan",
                              .dtype = dtype,
                              .batch = 2,
                              .head_q = 4,
                              .head_k = 2,
                              .seq_q = 70,
                              .seq_k = 65,
                              .dim = 16,
                              .dim_v = 16});
    const auto nan_at = [](const Slot& slot, std::int64_t b, std::int64_t h, std::int64_t s) {
      for (std::int64_t d = 0; d < slot.extent.dim; ++d) {
        if (!std::isnan(slot.get(b, h, s, d))) return false;
      }
      return true;
    };
    for (const bool in_query : {true, false}) {
      Operands o(c);
      set_row(in_query ? o.query : o.dout, 1, 2, 33, kNan);
      on_each_kernel(o, [&](const Kernel& kernel) {
        const std::string what = name(c) + ": " + kernel.name;
        o.dq.each([&](auto b, auto h, auto s, auto d) {
          const bool here = b == 1 && h == 2 && s == 33;
          ASSERT_EQ(std::isnan(o.dq.get(b, h, s, d)), here) << what << " row " << s;
        });
        for (const Slot* slot : {&o.dk, &o.dv}) {
          for (std::int64_t key = 0; key < c.seq_k; ++key) {
            ASSERT_TRUE(nan_at(*slot, 1, 1, key)) << what << " key " << key;
            ASSERT_FALSE(nan_at(*slot, 1, 0, key)) << what << " key " << key;
            ASSERT_FALSE(nan_at(*slot, 0, 1, key)) << what << " key " << key;
          }
        }
      });
    }
  }
}

TEST(Backward, NeighboursStayApart) {
  // The middle segment is NaN; the others must not know.
  for (const DType dtype : kTypes) {
    for (const std::int64_t length : {1, 15, 16, 17, 63, 64, 65}) {
      Case c = gradients(packed("neighbours", dtype, {33, 0, 33}, {length, 70, 33}, 40));
      expect_passes(c, [&](Operands& o) {  // nobody asks
        set_rows(o.key, 0, 0, length, length + 70, kInfinity);
        set_rows(o.value, 0, 0, length, length + 70, kNan);
      });
      c.lengths_q = {33, 7, 33};
      Operands o(c);
      set_rows(o.key, 0, 0, length, length + 70, kNan);
      set_rows(o.dout, 0, 0, 33, 40, kNan);
      on_each_kernel(o, [&](const Kernel& kernel) {
        const std::string what = name(c) + ": " + kernel.name;
        o.dq.each([&](auto b, auto h, auto s, auto d) {
          ASSERT_EQ(std::isnan(o.dq.get(b, h, s, d)), s >= 33 && s < 40) << what << " row " << s;
        });
        for (const Slot* slot : {&o.dk, &o.dv}) {
          slot->each([&](auto b, auto h, auto s, auto d) {
            ASSERT_EQ(std::isnan(slot->get(b, h, s, d)), s >= length && s < length + 70)
                << what << " key " << s;
          });
        }
      });
    }
  }
}

TEST(Backward, SlackBehindTheLastSegmentIsNeitherReadNorWritten) {
  for (const DType dtype : kTypes) {
    Case c = gradients(packed("slack", dtype, {33, 20}, {65, 3}, 40));
    c.slack_k = 77;
    expect_passes(c);
    Operands o(c);
    on_each_kernel(o, [&](const Kernel& kernel) {
      for (const Slot* slot : {&o.dk, &o.dv}) {
        slot->each([&](auto b, auto h, auto s, auto d) {
          ASSERT_EQ(std::isnan(slot->get(b, h, s, d)), s >= 68) << kernel.name << " key " << s;
        });
      }
    });
  }
}

}  // namespace
}  // namespace tessera::testing
