// Decode: few rows, many keys, split into parts. (Every forward case runs on decode's kernels,
// too.)

#include <string>
#include <vector>

#include <tessera/attention.hpp>
#include <tessera/plan.hpp>
#include <tessera/stream.hpp>

#include "tests/conformance/chooser.hpp"
#include "tests/conformance/support.hpp"

namespace tessera::testing {
namespace {

Case decode_case(const char* label, DType dtype, std::int64_t seq_k) {
  return {.label = label,
          .dtype = dtype,
          .batch = 2,
          .head_q = 4,
          .head_k = 2,
          .seq_q = 1,
          .seq_k = seq_k,
          .dim = 32,
          .dim_v = 32,
          .mask = Mask::causal(Alignment::BottomRight),
          .operation = Operation::decode};
}

TEST(Decode, LengthsOfTheirOwn) {
  // A cache of some capacity, of which each batch entry has filled a part; behind it lies NaN.
  for (const DType dtype : kTypes) {
    for (const std::int64_t seq_q : {1, 2, 5}) {
      for (const std::int64_t capacity : {64, 1000, 4099}) {
        Case c = decode_case("lengths", dtype, capacity);
        c.batch = 9;
        c.seq_q = seq_q;
        const auto full = static_cast<std::int32_t>(capacity);
        c.key_end = {0, 1, 2, 3, full / 2, full - 1, full, 17, 2 * full};
        expect_passes(c);
        c.mask = Mask::window(20, 0, Alignment::BottomRight);
        c.key_begin = {0, 0, 1, 3, 5, full - 2, 9, 0, full};
        expect_passes(c);
        c.mask = Mask::none();
        c.softcap = 4;
        c.sinks = true;
        expect_passes(c);
      }
    }
  }
}

TEST(Decode, TailsOfAFewKeys) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t whole : {0, 64, 128, 256, 1024, 2048}) {
      for (std::int64_t tail = 1; tail <= 5; ++tail) {
        expect_passes(decode_case("field_tail", dtype, whole + tail));
      }
    }
  }
}

TEST(Decode, PartsWithoutAVisibleKey) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t left : {0, 3, 63, 700}) {
      Case c = decode_case("field_masked_part", dtype, 4099);
      c.mask = Mask::window(left, 0, Alignment::BottomRight);
      expect_passes(c);
    }
    for (const std::int64_t key : {0, 511, 512, 2047, 2048, 4098}) {
      Case c = decode_case("field_masked_part", dtype, 4099);
      c.batch = 1;
      c.boolean_mask = true;
      expect_passes(c, [&](Operands& o) {
        set_all(o.boolean_mask, 0);
        set_column(o.boolean_mask, 0, 1, key, 1);
        set_column(o.boolean_mask, 0, 2, key, 255);
      });
    }
    Case c = decode_case("all_masked", dtype, 2050);
    c.boolean_mask = true;
    expect_passes(c, [](Operands& o) { set_all(o.boolean_mask, 0); });
    c.sinks = true;
    expect_passes(c, [](Operands& o) { set_all(o.boolean_mask, 0); });
  }
}

TEST(Decode, GroupsAndRows) {
  for (const std::int64_t group : {1, 5, 6, 7, 8, 12, 13, 33}) {
    for (const std::int64_t seq_q : {1, 3, 8}) {
      Case c = decode_case("field_group", kTypes[static_cast<std::size_t>(group % 3)], 1031);
      c.batch = 1;
      c.head_q = 2 * group;
      c.dim = 16;
      c.dim_v = 24;
      c.seq_q = seq_q;
      expect_passes(c);
    }
  }
}

TEST(Decode, WideHeads) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t dim : {72, 104, 192, 256, 512}) {
      Case c = decode_case("field_d512", dtype, 333);
      c.batch = 1;
      c.head_q = 8;
      c.head_k = 1;
      c.seq_q = 5;
      c.dim = dim;
      c.dim_v = dim == 192 ? 128 : dim;
      expect_passes(c);
    }
  }
}

TEST(Decode, CachesOfEveryLayout) {
  for (const DType dtype : kTypes) {
    for (int layout = 0; layout <= static_cast<int>(Layout::repeated_seq); ++layout) {
      Case c = decode_case("layout", dtype, 1030);
      c.layout = static_cast<Layout>(layout);
      c.key_end = {1030, 77};
      c.seq_q = 2;
      expect_passes(c);
    }
  }
}

TEST(Decode, ChoosesAKeyInEveryPart) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t seq_k : {1, 63, 1025, 4099}) {
      Case c = decode_case("choice", dtype, seq_k);
      c.scale = 1.0f;
      c.mask = Mask::none();
      Operands o(c);
      const Chooser chooser(c.dim, seq_k);
      chooser.write_keys(o.key);
      const auto number = [](std::int64_t h, std::int64_t s, std::int64_t d) {
        return static_cast<double>((h * 31 + s * 7 + d * 13) % 255 - 127);
      };
      set_each(o.value, [&](auto, auto h, auto s, auto d) { return number(h, s, d); });
      for (std::int64_t first = 0; first < seq_k; first += 257) {
        const auto target = [&](std::int64_t b, std::int64_t h) {
          return (first + b * 1000 + h * 37) % seq_k;
        };
        for (std::int64_t b = 0; b < c.batch; ++b) {
          for (std::int64_t h = 0; h < c.head_q; ++h)
            chooser.choose(o.query, b, h, 0, target(b, h));
        }
        on_each_kernel(o, [&](const Kernel& kernel) {
          o.out.each([&](auto b, auto h, auto s, auto d) {
            ASSERT_EQ(o.out.get(b, h, s, d), number(h / 2, target(b, h), d))
                << name(c) << ": " << kernel.name << " batch " << b << " head " << h;
          });
        });
      }
    }
  }
}

TEST(Decode, AnsweredBitsDependOnTheShapeAlone) {
  // A neighbour's length changes nothing, and nor does what lies behind the own length.
  for (const DType dtype : kTypes) {
    Case c = decode_case("neighbour", dtype, 3001);
    c.key_end = {1700, 3001};
    Operands a(c);
    c.key_end = {1700, 5};
    Operands b(c);
    b.upload();
    on_each_kernel(a, [&](const Kernel& kernel) {
      ASSERT_EQ(execute_on(kernel, b).status, Execution::Status::done);
      for (std::int64_t h = 0; h < c.head_q; ++h) {
        for (std::int64_t d = 0; d < c.dim_v; ++d) {
          ASSERT_EQ(a.out.get(0, h, 0, d), b.out.get(0, h, 0, d)) << kernel.name;
        }
      }
    });
  }
}

}  // namespace
}  // namespace tessera::testing
